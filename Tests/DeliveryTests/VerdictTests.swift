import Delivery
import Testing

@Suite struct VerdictTests {
    private func verdict(_ status: Int, body: String = "", retryAfter: String? = nil) -> Verdict {
        var reply = UplinkReply(status: status, body: Array(body.utf8))
        if let retryAfter { reply.headers = [.init("retry-after", retryAfter)] }
        return Verdict(UplinkOutcome(.reply(reply)))
    }

    @Test(arguments: -10...700)
    func acceptsNothingButSuccess(status: Int) {
        #expect((verdict(status) == .accepted) == (200...299).contains(status))
        #expect(!verdict(status).word.isEmpty)
    }

    @Test(arguments: [
        (100, Verdict.misconfigured(status: 100)), (204, .accepted),
        (302, .retry(.redirected(status: 302), after: nil)),
        (400, .split(status: 400)), (401, .authStop(status: 401)), (402, .authStop(status: 402)),
        (403, .authStop(status: 403)), (404, .goneStop(status: 404)), (405, .misconfigured(status: 405)),
        (407, .authStop(status: 407)), (408, .retry(.status(408), after: nil)), (409, .retry(.conflict, after: nil)),
        (410, .goneStop(status: 410)), (411, .misconfigured(status: 411)), (412, .misconfigured(status: 412)),
        (413, .tooLarge(status: 413, after: nil)), (414, .tooLarge(status: 414, after: nil)), (415, .encodingRefused),
        (418, .misconfigured(status: 418)), (421, .retry(.status(421), after: nil)), (422, .split(status: 422)),
        (423, .retry(.status(423), after: nil)), (424, .retry(.status(424), after: nil)),
        (425, .retry(.status(425), after: nil)), (428, .misconfigured(status: 428)),
        (429, .retry(.status(429), after: nil)), (431, .misconfigured(status: 431)), (451, .misconfigured(status: 451)),
        (499, .misconfigured(status: 499)), (500, .retry(.status(500), after: nil)), (501, .misconfigured(status: 501)),
        (503, .retry(.status(503), after: nil)), (505, .misconfigured(status: 505)),
        (511, .retry(.redirected(status: 511), after: nil)), (529, .retry(.status(529), after: nil)),
        (600, .retry(.status(600), after: nil)), (0, .retry(.status(0), after: nil)),
        (-1, .retry(.status(-1), after: nil)),
    ])
    func readsTheStatus(status: Int, expected: Verdict) {
        #expect(verdict(status) == expected)
    }

    @Test func honoursRetryAfterWhereItMeansSomething() {
        #expect(verdict(429, retryAfter: "30") == .retry(.status(429), after: .seconds(30)))
        #expect(verdict(503, retryAfter: "30") == .retry(.status(503), after: .seconds(30)))
        #expect(verdict(413, retryAfter: "30") == .tooLarge(status: 413, after: .seconds(30)))
        #expect(verdict(200, retryAfter: "30") == .accepted)
    }

    @Test(arguments: [
        (#"{"error":"asset_taken"}"#, true), ("{ \"x\" : 1,\n \"error\" : \"asset_taken\" }", true),
        (#"{"error":"in progress"}"#, false), ("", false), ("asset_taken", false),
    ])
    func knowsACollisionFromAConflict(body: String, taken: Bool) {
        #expect(verdict(409, body: body) == (taken ? .collision : .retry(.conflict, after: nil)))
    }

    @Test(arguments: [
        TransportFailure.resolve("x"), .connect("x"), .tls("x"), .timeout("x"), .closedWithoutReply("x"), .broken("x"),
    ])
    func retriesWhatDidNotReachTheServer(failure: TransportFailure) {
        #expect(Verdict(UplinkOutcome(.failed(failure))) == .retry(.transport(failure), after: nil))
    }

    @Test func countsABrokenReplyByItsStatus() {
        #expect(Verdict(UplinkOutcome(.reply(UplinkReply(status: 200, bodyIncomplete: true)))) == .accepted)
    }
}
