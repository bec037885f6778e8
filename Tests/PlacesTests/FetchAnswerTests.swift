import Protocols
import Testing
import WaypostCore

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
        let (tag, date) = (#"W/"7""#, "Tue, 14 Nov 2023 22:13:20 GMT")
        let version = ListVersion(tag: tag, modified: date)
        #expect(answer(200, [("etag", tag), ("last-modified", date)], body: [1]) == .list([1], version))
        let conditions: [UplinkRequest.Header] = [.init("If-None-Match", tag), .init("If-Modified-Since", date)]
        #expect(version.conditions == conditions)
        #expect(answer(200, [("etag", "")], body: [1]) == .list([1], ListVersion()))
        #expect(ListVersion(tag: "a\nb", modified: String(repeating: "x", count: 2000)).conditions.isEmpty)
    }

    @Test func unchangedCountsOnlyWhereAConditionWasSent() {
        #expect(answer(304, version: ListVersion(tag: "\"a\"")) == .unchanged)
        for version in [nil, ListVersion()] { #expect(answer(304, version: version) == refused(304)) }
    }

    private func refused(_ status: Int, asked: Duration? = nil, isUnauthorised: Bool = false) -> FetchAnswer {
        .failed("the server answered with status \(status)", asked: asked, isUnauthorised: isUnauthorised)
    }

    @Test func allElseChangesNothing() {
        func failed(_ words: String) -> FetchAnswer { .failed(words, asked: nil, isUnauthorised: false) }
        #expect(answer(200, body: [1], cut: true) == failed("the answer broke off"))
        guard case .failed(let words, nil, false) = answer(200, body: Array("<html><title>Hi".utf8)) else {
            Issue.record("a page is no list")
            return
        }
        #expect(words.hasPrefix("the server answered with status 200 and a web page (\"Hi\")"), "\(words)")
        #expect(answer(200, body: [1, 2, 3, 4], cut: true) == failed("the answer has more than 0 MiB"))
        #expect(answer(503, [("retry-after", "120")]) == refused(503, asked: .seconds(120)))
        for status in [401, 403] { #expect(answer(status) == refused(status, isUnauthorised: true)) }
        for status in [201, 204, 206, 301, 404, 500] { #expect(answer(status, body: [1]) == refused(status)) }
        let late = UplinkOutcome(.failed(.timeout("late")))
        #expect(FetchAnswer(late, version: nil, bytesMax: 4) == failed("late"))
    }

    @Test func whatIsKeptIsReadBackOrNotAtAll() throws {
        let version = ListVersion(tag: "\"é\\\"", modified: nil)
        let list = StoredList(
            address: "abc", version: version, receivedMs: 1_700_000_000_000, reply: Array("{}\n[\n".utf8))
        let bytes = list.bytes
        #expect(StoredList(bytes) == list)
        let accepted = bytes.indices.filter { index in
            var damaged = bytes
            damaged[index] ^= 0x20
            return StoredList(damaged) == list || StoredList(Array(bytes[..<index])) != nil
        }
        #expect(accepted == [], "changed at or cut before one of these bytes")
        #expect(StoredList([]) == nil && StoredList(bytes + [0]) == nil)
        let bare = StoredList(address: "", version: ListVersion(), receivedMs: nil, reply: [])
        #expect(StoredList(bare.bytes) == bare)
    }
}
