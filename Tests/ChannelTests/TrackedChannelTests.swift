import Positioning
import Testing

@testable import Channel

@Suite("The channel of a trackable") struct TrackedChannelTests {
    @Test func aChannelWithoutAnAnswerIsTriedAgain() {
        let rig = Rig()
        rig.jitter = 0
        rig.attach("a")
        rig.connect()
        #expect(rig.pass(.seconds(10)).channelStates == [.suspended])
        #expect(throws: ChannelClient.Refusal.channelAway) { try rig.publish() }
        #expect(rig.pass(.seconds(11.9)).sent == [])
        #expect(rig.pass(.seconds(0.1)).sent == ["attach tracking:a"])
        #expect(rig.attached().channelStates == [.attached])
    }

    @Test func oneThatTheServiceDetachesIsAttachedAgainAtOnce() {
        let rig = Rig.entered()
        let detached = #"{"action":13,"channel":"tracking:a","error":{"code":90198,"statusCode":500}}"#
        #expect(rig.receive(detached).texts == [#"{"action":10,"channel":"tracking:a","flags":720896}"#])
        #expect(rig.receive(detached).channelStates == [.suspended])
        #expect(rig.pass(.seconds(15)).sent == ["attach tracking:a"])
        #expect(rig.attached().sent == ["presence 1 enter tracking:a"])
    }

    @Test func oneThatFailsLeavesTheOthersAlone() throws {
        let rig = Rig.entered(["a", "b"])
        let effects = rig.receive(#"{"action":9,"channel":"tracking:a","error":{"code":90005,"statusCode":400}}"#)
        #expect(effects.channelStates == [.failed] && rig.state == .connected)
        #expect(throws: ChannelClient.Refusal.channelAway) { try rig.publish(1, of: "a") }
        try rig.publish(1, of: "b")
        // It needs a person.
        #expect(rig.pass(.seconds(3600)).sent == [])
        #expect(rig.act { $0.retry(at: $1) }.sent == ["attach tracking:a"])
    }

    @Test func aTokenThatPermitsTooLittleIsRenewedOnce() {
        let rig = Rig.entered()
        let refusal = #"{"action":9,"channel":"tracking:a","error":{"code":40160,"statusCode":401}}"#
        #expect(rig.receive(refusal).renewals == 1)
        let effects = rig.act { $0.credentialRenewed(.token(ChannelSecret("t2")), at: $1) }
        #expect(effects.sent == ["authorize"] && effects.renewals == 0)
        #expect(rig.receive(#"{"action":0}"#) == [])
        #expect(rig.connect().sent == ["attach tracking:a"])
        let again = rig.receive(refusal)
        #expect(again.renewals == 0 && again.channelStates == [.failed] && rig.state == .connected)
    }

    @Test func withoutAnotherTokenItFails() {
        let rig = Rig.entered()
        rig.receive(#"{"action":9,"channel":"tracking:a","error":{"code":40160,"statusCode":401}}"#)
        let effects = rig.act { $0.credentialUnavailable("none", isFinal: false, jitter: 0, at: $1) }
        #expect(effects.channelStates == [.failed])
    }

    // Our presence.

    @Test func entersAgainUnlessTheServiceHasKeptIt() {
        let rig = Rig.entered()
        #expect(rig.attached(isResumed: true).sent == [])
        #expect(rig.attached().sent == ["presence 1 enter tracking:a"])
    }

    @Test func tellsTheLastResolutionOnceASecond() {
        let rig = Rig.entered()
        rig.pass(.seconds(10))
        func attach(_ ms: Int64) -> [String] {
            rig.attach(
                "a", PublisherPresence(resolution: Resolution(priority: .high, intervalMs: ms, displacement: 0))
            ).texts
        }
        #expect(attach(100).count == 1)
        #expect(attach(200) == [])
        rig.receive(#"{"action":1,"msgSerial":1,"count":1}"#)
        #expect(attach(300) == [])
        let later = rig.pass(second).texts
        #expect(later.count == 1 && later[0].contains(#""presence":[{"action":4"#))
        #expect(later[0].contains(#"\"desiredInterval\":300"#))
        // Nothing more before it is answered.
        #expect(attach(400) == [] && rig.pass(.seconds(9)).texts == [])
        #expect(rig.receive(#"{"action":1,"msgSerial":2}"#).texts.count == 1)
        #expect(attach(400) == [])
    }

    @Test(arguments: [(91_001, 400, true), (42_911, 429, true), (50_000, 500, true), (40_012, 400, false)])
    func aRefusedEntryIsRepeatedUnlessItIsFinal(code: Int, status: Int, isRepeated: Bool) {
        let rig = Rig()
        rig.attach("a")
        rig.connect()
        rig.attached()
        let effects = rig.receive(
            #"{"action":2,"msgSerial":0,"count":1,"error":{"code":\#(code),"statusCode":\#(status)}}"#)
        #expect(effects.warnings.isEmpty == isRepeated)
        #expect(rig.pass(.seconds(14.9)).sent == [])
        #expect(rig.pass(.seconds(0.1)).sent == (isRepeated ? ["presence 1 enter tracking:a"] : []))
    }

    @Test func manyTrackablesEnterBelowTheLimitOfTheService() {
        let rig = Rig()
        let names = (0..<200).map { "t\($0)" }
        for name in names { rig.attach(name) }
        #expect(rig.attach("one more").isEmpty)
        rig.connect()
        for name in names { rig.attached(name) }
        var counts = [rig.effects.sent.count { $0.hasPrefix("presence") }]
        for _ in 0..<5 { counts.append(rig.pass(second).sent.count) }
        #expect(counts == [40, 40, 40, 40, 40, 0])
    }

    // Messages.

    @Test func oneMessageOfEachNameIsInFlight() throws {
        let rig = Rig.entered()
        #expect(
            try rig.publish(7).texts[0].hasPrefix(
                #"{"action":15,"channel":"tracking:a","msgSerial":1,"messages":[{"id":"q-7","name":"enhanced","data":"{\"#
            ))
        #expect(throws: ChannelClient.Refusal.inFlight) { try rig.publish(8) }
        try rig.publish(7, .raw)
        #expect(throws: ChannelClient.Refusal.unknownTrackable) { try rig.publish(7, of: "b") }
        #expect(rig.receive(#"{"action":1,"msgSerial":1,"count":2,"res":[{}]}"#).settled == ["q-7 taken", "q-7 taken"])
        try rig.publish(8)
    }

    @Test func whatTheServicePassesOverIsSentAgain() throws {
        let rig = Rig.entered(["a", "b"])
        try rig.publish(7, of: "a")
        try rig.publish(8, of: "b")
        #expect(rig.receive(#"{"action":1,"msgSerial":3,"count":1}"#).settled == ["q-7 refused 0", "q-8 taken"])
        #expect(rig.receive(#"{"action":1,"msgSerial":3,"count":1}"#).settled == [])
    }

    @Test func atMostFortyInASecond() throws {
        let rig = Rig.entered()
        rig.pass(.seconds(5))
        for number in 0..<40 {
            try rig.publish(number)
            rig.receive(#"{"action":1,"msgSerial":\#(number + 1)}"#)
            rig.pass(.milliseconds(10))
        }
        #expect(throws: ChannelClient.Refusal.tooMany) { try rig.publish(40) }
        rig.pass(.milliseconds(600))
        try rig.publish(40)
    }

    @Test func aMessageThatTheTokenDoesNotPermitIsRepeatedOnce() throws {
        let rig = Rig.entered()
        try rig.publish(7)
        let refusal = #","count":1,"error":{"code":40160,"statusCode":401}}"#
        let effects = rig.receive(#"{"action":2,"msgSerial":1"# + refusal)
        #expect(effects.renewals == 1 && effects.settled == [])
        #expect(throws: ChannelClient.Refusal.inFlight) { try rig.publish(8) }
        rig.act { $0.credentialRenewed(.token(ChannelSecret("t2")), at: $1) }
        #expect(rig.connect().sent == ["message 2 q-7 tracking:a"])
        let again = rig.receive(#"{"action":2,"msgSerial":2"# + refusal)
        #expect(again.settled == ["q-7 refused 40160"] && again.channelStates == [.failed])
    }

    @Test func aTokenThatNeverComesIsWaitedForAMinute() throws {
        let rig = Rig.entered()
        try rig.publish(7)
        rig.receive(#"{"action":2,"msgSerial":1,"error":{"code":40160,"statusCode":401}}"#)
        #expect(rig.pass(.seconds(59)).settled == [])
        #expect(rig.pass(.seconds(1)).settled == ["q-7 refused 100002"] && rig.state == .connected)
        try rig.publish(8)
    }

    @Test func aMessageThatWaitsForATokenIsSettledWhenItCloses() throws {
        let rig = Rig.entered()
        try rig.publish(7)
        rig.receive(#"{"action":2,"msgSerial":1,"error":{"code":40160,"statusCode":401}}"#)
        #expect(rig.act { $0.close(at: $1) }.settled == ["q-7 unanswered"])
    }

    // States.

    @Test func onlineFromTheFirstLocation() throws {
        let rig = Rig.entered()
        #expect(rig.effects.trackableStates == [])
        try rig.publish(7)
        #expect(rig.receive(#"{"action":1,"msgSerial":1}"#).trackableStates == [.online])
        rig.pass(.seconds(60))
        #expect(rig.lose().trackableStates == [.offline])
        rig.connect("c")
        #expect(rig.attached(isResumed: true).trackableStates == [])
        #expect(rig.receive(#"{"action":1,"msgSerial":2}"#).trackableStates == [.online])
        #expect(rig.act { $0.leave("a", at: $1) }.trackableStates == [.offline])
    }

    @Test func publishingWhereViewersAreNotHeardOf() throws {
        let rig = Rig()
        rig.attach("a")
        rig.connect()
        rig.receive(#"{"action":11,"channel":"tracking:a","flags":196608}"#)
        try rig.publish(7)
        #expect(rig.receive(#"{"action":1,"msgSerial":0,"count":2}"#).trackableStates == [.publishing])
    }

    @Test func theTableOfStates() {
        let links = ChannelLink.allCases
        for connection in links {
            for channel in links {
                for (isShown, isSubscribed) in [(false, false), (false, true), (true, false), (true, true)] {
                    let state = TrackableState(
                        connection: connection, channel: channel, isShown: isShown, isSubscribed: isSubscribed)
                    let expected: TrackableState =
                        if connection == .failed || (connection == .online && channel == .failed) {
                            .failed
                        } else if connection == .online, channel == .online, isShown {
                            isSubscribed ? .online : .publishing
                        } else {
                            .offline
                        }
                    #expect(state == expected)
                }
            }
        }
        #expect(ConnectionState.allCases.filter { $0.link == .online } == [.connected])
        #expect(ConnectionState.allCases.filter { $0.link == .failed } == [.failed])
        #expect(ChannelState.allCases.filter { $0.link == .online } == [.attached])
        #expect(ChannelState.allCases.filter { $0.link == .failed } == [.failed])
    }

    @Test(arguments: [
        (400, true), (401, true), (429, false), (499, true), (500, false), (504, false), (505, false), (0, false),
    ])
    func classesOfErrors(status: Int, isFatal: Bool) {
        let error = ChannelError(statusCode: status)
        #expect(error.isFatal == isFatal && error.isRetriable != isFatal)
    }
}
