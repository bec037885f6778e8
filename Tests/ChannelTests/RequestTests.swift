import Testing
import WaypostCore

@testable import Channel

/// The service where no WebSocket comes through: messages as requests, and viewers asked for.
@Suite struct RequestTests {
    private let nobody = "[]"
    private let ada = #"""
        [{"action":1,"clientId":"ada","connectionId":"x","id":"x:0:0","timestamp":5,"data":
        "{\"type\":\"SUBSCRIBER\",\"resolution\":{\"accuracy\":\"HIGH\",\"desiredInterval\":500,\"minimumDisplacement\":2}}"}]
        """#

    /// Two minutes without a connection.
    private func suspended(_ trackables: [String] = ["a"], _ change: (inout ChannelClient.Settings) -> Void = { _ in })
        -> Rig
    {
        let rig = Rig(credential: .token(ChannelSecret("t1")), change)
        for trackable in trackables { rig.attach(trackable) }
        rig.passRefusing(.seconds(121))
        #expect(rig.state == .suspended)
        return rig
    }

    /// The service has said that nobody watches, and takes messages by requests.
    private func publishing() -> Rig {
        let rig = suspended()
        rig.answer(rig.effects.requests.last, 200, nobody)
        return rig
    }

    @Test func asksWhoWatchesOnceTheConnectionIsLongGone() {
        let rig = Rig()
        rig.attach("a b")
        #expect(rig.passRefusing(.seconds(119)).requests.isEmpty, "the connection may come back")
        let request = rig.passRefusing(.seconds(2)).requests.first
        #expect(request?.description == "GET h/channels/tracking%3Aa%20b/presence?limit=1000")
        #expect(request?.credential == .token(ChannelSecret("t1")) && !rig.client.takesMessages)
        #expect(rig.answer(request, 200, nobody).contains(.requestsArrive(true)))
        #expect(rig.client.takesMessages)
    }

    @Test func withoutAnAnswerItAsksWithTheNextAttemptToConnect() {
        let rig = suspended()
        rig.answer(rig.effects.requests.last, nil, "")
        rig.lose()
        rig.effects = []
        while rig.effects.isEmpty { rig.pass(.seconds(1)) }
        #expect(rig.effects.openings.count == 1 && rig.effects.requests.count == 1, "one wake-up for both")
    }

    @Test func aMessageThatTheServiceHasIsPublished() throws {
        let rig = publishing()
        let request = try #require(try rig.publish(7).requests.first)
        #expect(request.description == "POST h/channels/tracking%3Aa/messages")
        let body = String(decoding: request.body ?? [], as: UTF8.self)
        #expect(body.hasPrefix(#"{"id":"q-7","name":"enhanced","data":"{\"location\":"#))
        #expect(throws: ChannelClient.Refusal.inFlight) { try rig.publish(8) }
        let effects = rig.answer(request, 201, #"{"channel":"tracking:a","messageId":"m"}"#)
        #expect(effects.settled == ["q-7 taken"])
        #expect(effects.contains(.trackableChanged("a", .publishing, nil)))
        #expect(rig.answer(request, 201, "{}").isEmpty, "an answer comes once")
    }

    /// Where there is no answer, nobody knows who watches.
    @Test func viewersAreTheOnesThatTheLastAnswerNames() {
        for status in [200, nil] as [Int?] {
            let rig = suspended()
            #expect(rig.answer(rig.effects.requests.last, 200, ada).viewers == ["+x:ada 500"])
            let again = rig.passRefusing(.seconds(30)).requests
            #expect(again.count == 1, "every 30 s")
            let effects = rig.answer(again.last, status, status == nil ? "" : nobody)
            #expect(effects.viewers == ["-x:ada"])
            #expect(effects.contains(.requestsArrive(false)) == (status == nil))
            if status == nil { #expect(throws: ChannelClient.Refusal.notConnected) { try rig.publish() } }
        }
    }

    @Test func theConnectionIsBetterAndTakesOver() throws {
        let rig = publishing()
        let request = try rig.publish(7).requests.first
        rig.effects = []
        while rig.effects.openings.isEmpty { rig.pass(.seconds(1)) }
        let effects = rig.connect()
        #expect(effects.settled == ["q-7 unanswered"], "its location comes again with the next message")
        #expect(effects.contains(.requestsArrive(false)))
        #expect(rig.answer(request, 201, "{}").isEmpty)
        #expect(rig.passRefusing(.seconds(5)).requests.isEmpty)
    }

    @Test func anotherHostIsAskedAtOnce() {
        let rig = suspended { $0.fallbackHosts = ["f"] }
        for status in [nil, 503, 200] as [Int?] {
            // 200 with a page: somebody in between answers everything.
            let effects = rig.answer(rig.effects.requests.last, status, "<html>")
            #expect(!rig.client.takesMessages)
            if status == nil { #expect(effects.requests.map(\.host) == ["f"]) }
        }
        #expect(rig.passRefusing(.seconds(60)).requests.first?.host == "h", "the next round begins")
    }

    @Test func aRefusedTokenIsFetchedAgainEverLater() {
        let rig = suspended()
        let refusal = #"{"error":{"code":40142,"statusCode":401,"message":"expired"}}"#
        #expect(rig.answer(rig.effects.requests.last, 401, refusal).renewals == 1)
        rig.renew("t2")
        let next = rig.passRefusing(.seconds(31)).requests.last
        #expect(next?.credential == .token(ChannelSecret("t2")))
        #expect(rig.answer(next, 401, refusal).renewals == 0)
        #expect(rig.client.problems.count == 1 && rig.state == .suspended)
        let later = rig.pass(.seconds(15))
        #expect(later.renewals == 1 && later.requests.isEmpty, "nothing is asked with a token that is refused")
        rig.renew("t3")
        rig.answer(rig.passRefusing(.seconds(31)).requests.last, 200, nobody)
        #expect(rig.client.problems == [] && rig.client.takesMessages)
    }

    /// It was reached, and takes messages.
    @Test func anAnswerThatIsTooLongNamesNobody() throws {
        let rig = suspended()
        let long = "[" + String(repeating: " ", count: ServiceRequest.answerBytesMax - 1)
        rig.answer(rig.effects.requests.last, 200, long)
        #expect(rig.client.takesMessages)
        #expect(try rig.publish().requests.count == 1)
    }

    @Test func aTokenThatMayNotAskStillPublishes() throws {
        let rig = suspended()
        rig.answer(
            rig.effects.requests.last, 401, #"{"error":{"code":40160,"statusCode":401,"message":"no subscribe"}}"#)
        #expect(try rig.publish().requests.count == 1)
    }

    @Test func aRefusedMessageIsToldOfWithItsReason() throws {
        let rig = publishing()
        let request = try rig.publish(7).requests.first
        let effects = rig.answer(request, 413, #"{"error":{"code":40009,"statusCode":413}}"#)
        #expect(effects.settled == ["q-7 refused 40009"])
        #expect(rig.client.takesMessages)
    }
}

extension Rig {
    @discardableResult
    fileprivate func answer(_ request: ServiceRequest?, _ status: Int?, _ body: String) -> [ChannelClient.Effect] {
        guard let request else { return [] }
        return act {
            $0.answered(request.number, status: status, body: Array(body.utf8), jitter: jitter, at: $1)
        }
    }

    /// No WebSocket comes through meanwhile.
    @discardableResult
    fileprivate func passRefusing(_ duration: Duration) -> [ChannelClient.Effect] {
        let first = effects.count
        for _ in 0..<Int(duration.seconds) {
            if client.state == .connecting || client.state == .suspended { lose() }
            pass(.seconds(1))
        }
        return Array(effects[first...])
    }
}

extension Duration {
    fileprivate var seconds: Int64 { components.seconds }
}

extension [ChannelClient.Effect] {
    fileprivate var requests: [ServiceRequest] {
        compactMap { if case .request(let request) = $0 { request } else { nil } }
    }
}
