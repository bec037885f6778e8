import Testing

@testable import waypost_collector

@Suite struct NativeBatchTests {
    private func batch(_ record: String) throws(NativeBatch.ShapeProblem) -> NativeBatch {
        let text = #"{"device":"d","outbox":"7f3a91c2","batch_id":"b","locations":[\#(record)]}"#
        return try NativeBatch(Array(text.utf8))
    }

    @Test func aRecordWithoutAPositionIsStoredAndNotShown() throws {
        let rows = try batch(
            #"{"clock_ms":1700000000500,"seq":1,"moving":false,"event":"settings","settings":{"version":17}}"#
        ).rows
        #expect(rows.map(\.seq) == [1])
        #expect(rows[0].location == nil)
    }

    @Test func anActivityHasAWordAndPercent() throws {
        func rows(_ activity: String) throws -> Int {
            let place = #""location":{"lat":1.5,"lon":2.5},"timeStamp":1700000000,"time_ms":1700000000123"#
            return try batch(#"{"seq":1,"activity":\#(activity),\#(place)}"#).rows.count
        }
        #expect(try rows(#"{"type":"on_foot","confidence":85}"#) == 1)
        for wrong in [#""on_foot""#, #"{"type":5,"confidence":85}"#, #"{"type":"on_foot","confidence":101}"#] {
            #expect(throws: NativeBatch.ShapeProblem.self) { try rows(wrong) }
        }
    }

    @Test(arguments: [
        #"{"seq":1}"#, #"{"seq":1,"event":"settings","time_ms":5}"#, #"{"seq":1,"event":"settings","timeStamp":5}"#,
        #"{"seq":1,"event":"settings","settings":"x"}"#, #"{"seq":1,"event":"settings","location":{}}"#,
    ])
    func halfARecordIsRefused(record: String) {
        #expect(throws: NativeBatch.ShapeProblem.self) { try batch(record) }
    }
}
