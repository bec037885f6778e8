import Delivery
import Positioning
import Testing

@testable import Places

@Suite struct FetchAnswerTests {
    private func answer(
        _ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = [], cut: Bool = false,
        version: ListVersion? = nil
    ) -> FetchAnswer {
        let reply = UplinkReply(
            status: status, headers: headers.map { .init($0.0, $0.1) }, body: body, bodyIncomplete: cut)
        return FetchAnswer(UplinkOutcome(.reply(reply)), version: version, bytesMax: 4)
    }

    @Test func aWholeAnswerIsAList() {
        let version = ListVersion(tag: "W/\"7\"", modified: "Tue, 14 Nov 2023 22:13:20 GMT")
        #expect(
            answer(200, [("etag", "W/\"7\""), ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT")], body: [1])
                == .list([1], version))
        #expect(
            version.conditions == [
                .init("If-None-Match", "W/\"7\""), .init("If-Modified-Since", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ])
        #expect(answer(200, [("etag", "")], body: [1]) == .list([1], ListVersion()))
        #expect(ListVersion(tag: "a\nb", modified: String(repeating: "x", count: 2000)).conditions.isEmpty)
    }

    @Test func unchangedCountsOnlyWhereAConditionWasSent() {
        #expect(answer(304, version: ListVersion(tag: "\"a\"")) == .unchanged)
        for version in [nil, ListVersion()] {
            #expect(
                answer(304, version: version)
                    == .failed("the server answered with status 304", asked: nil, isUnauthorised: false))
        }
    }

    @Test func allElseChangesNothing() {
        #expect(answer(200, body: [1], cut: true) == .failed("the answer broke off", asked: nil, isUnauthorised: false))
        #expect(
            answer(200, body: [1, 2, 3, 4], cut: true)
                == .failed("the answer has more than 0 MiB", asked: nil, isUnauthorised: false))
        #expect(
            answer(503, [("retry-after", "120")])
                == .failed("the server answered with status 503", asked: .seconds(120), isUnauthorised: false))
        for status in [401, 403] {
            #expect(
                answer(status)
                    == .failed("the server answered with status \(status)", asked: nil, isUnauthorised: true))
        }
        for status in [201, 204, 206, 301, 404, 500] {
            #expect(
                answer(status, body: [1])
                    == .failed("the server answered with status \(status)", asked: nil, isUnauthorised: false))
        }
        #expect(
            FetchAnswer(UplinkOutcome(.failed(.timeout("late"))), version: nil, bytesMax: 4)
                == .failed("late", asked: nil, isUnauthorised: false))
    }

    @Test func whatIsKeptIsReadBackOrNotAtAll() throws {
        let version = ListVersion(tag: "\"é\\\"", modified: nil)
        let list = StoredList(
            address: "abc", version: version, receivedMs: 1_700_000_000_000, reply: Array("{}\n[\n".utf8))
        let bytes = list.bytes
        #expect(StoredList(bytes) == list)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x20
            #expect(StoredList(damaged) != list)
            #expect(StoredList(Array(bytes[..<index])) == nil)
        }
        #expect(StoredList([]) == nil && StoredList(bytes + [0]) == nil)
        let bare = StoredList(address: "", version: ListVersion(), receivedMs: nil, reply: [])
        #expect(StoredList(bare.bytes) == bare)
    }
}
