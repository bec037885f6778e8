import Testing
import WaypostCore

@testable import Channel

@Suite("The channel of a trackable") struct TrackedChannelTests {
    @Test func aChannelWithoutAnAnswerIsTriedAgain() {
        let rig = Rig.connected(jitter: 0)
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
        #expect(rig.receive(detached).sent == [], "it waits, whatever the service says")
        #expect(rig.pass(.seconds(15)).sent == ["attach tracking:a"])
        #expect(rig.attached().sent == ["presence 1 enter tracking:a"])
    }

    static let storms: [[String]] = [
        [#"{"action":13,"channel":"tracking:a"}"#],
        [#"{"action":11,"channel":"tracking:a","flags":720896}"#],
        [#"{"action":13,"channel":"tracking:a"}"#, #"{"action":11,"channel":"tracking:a","flags":720896}"#],
    ]

    /// For an hour each second a hundred frames come that want an answer.
    @Test(arguments: storms, [true, false]) func answersToAStormAreFew(storm: [String], isAcknowledged: Bool) {
        let rig = Rig.entered()
        var sent = 0
        for second in 0..<3600 {
            for frame in (0..<(second % 60 == 0 ? 100 : 2)).flatMap({ _ in storm }) { rig.receive(frame) }
            rig.pass(.seconds(1))
            if isAcknowledged { rig.receive(#"{"action":1,"msgSerial":0,"count":100000}"#) }
            sent += rig.effects.sent.count
            rig.effects = []
        }
        #expect(rig.state == .connected && sent < 800, "\(sent)")
    }

    @Test func aMessageWithoutAnAnswerIsAProblemAfterAMinute() throws {
        let rig = Rig.entered(["a", "b"])
        try rig.publish(7, of: "b")
        rig.pass(.seconds(59))
        #expect(rig.client.problems == [])
        rig.pass(.seconds(1))
        #expect(rig.client.problems == [.unanswered(trackable: "b")])
        #expect(rig.client.nextDeadline == nil, "nothing wakes the host for it again")
        rig.receive(#"{"action":1,"msgSerial":2,"count":1}"#)
        #expect(rig.client.problems == [])
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
        let effects = rig.renew("t2")
        #expect(effects.sent == ["authorize"] && effects.renewals == 0)
        #expect(rig.receive(#"{"action":0}"#) == [])
        #expect(rig.connect().sent == ["attach tracking:a"])
        let again = rig.receive(refusal)
        #expect(again.renewals == 0 && again.channelStates == [.failed] && rig.state == .connected)
        // Whoever makes tokens may permit it later.
        #expect(rig.pass(.seconds(899)).renewals == 0 && rig.pass(second).renewals == 1)
        rig.renew("t3")
        #expect(rig.connect().sent == ["attach tracking:a"])
        #expect(rig.attached().channelStates == [.attached])
    }

    @Test func withoutAnotherTokenItFails() {
        let rig = Rig.entered()
        rig.receive(#"{"action":9,"channel":"tracking:a","error":{"code":40160,"statusCode":401}}"#)
        let effects = rig.act { $0.credentialUnavailable("none", isTransient: true, jitter: 0, at: $1) }
        #expect(effects.channelStates == [.failed])
    }

    // Our presence.

    @Test func entersAgainUnlessTheServiceHasKeptIt() {
        let rig = Rig.entered()
        #expect(rig.attached(isResumed: true).sent == [])
        #expect(rig.attached().sent == ["presence 1 enter tracking:a"])
    }

    @Test func tellsTheLastResolutionOnceASecond() {
        let rig = Rig.entered(since: 10)
        func attach(_ ms: Int64) -> [String] {
            let resolution = Resolution(priority: .high, intervalMs: ms, displacement: 0)
            return rig.attach("a", PublisherPresence(resolution: resolution)).texts
        }
        #expect(attach(100).count == 1 && attach(200) == [])
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

    static let refusedEntries: [(Int, Int, Bool)] = [
        (91_001, 400, true), (42_911, 429, true), (50_000, 500, true), (40_012, 400, false),
    ]

    @Test(arguments: refusedEntries) func aRefusedEntryIsRepeatedUnlessItIsFinal(
        code: Int, status: Int, isRepeated: Bool
    ) {
        let rig = Rig.connected()
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
        let message = #"{"id":"q-7","name":"enhanced","data":"{\"#
        let frame = #"{"action":15,"channel":"tracking:a","msgSerial":1,"messages":[\#(message)"#
        #expect(try rig.publish(7).texts[0].hasPrefix(frame))
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
        rig.renew("t2")
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
        // Another one waits when the connection is closed.
        try rig.publish(8)
        rig.receive(#"{"action":2,"msgSerial":2,"error":{"code":40160,"statusCode":401}}"#)
        #expect(rig.act { $0.close(at: $1) }.settled == ["q-8 unanswered"])
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
        #expect(rig.leave("a").trackableStates == [.offline])
    }

    @Test func publishingWhereViewersAreNotHeardOf() throws {
        let rig = Rig.connected()
        rig.receive(#"{"action":11,"channel":"tracking:a","flags":196608}"#)
        try rig.publish(7)
        #expect(rig.receive(#"{"action":1,"msgSerial":0,"count":2}"#).trackableStates == [.publishing])
    }

    @Test func theTableOfStates() {
        func expected(_ connection: ChannelLink, _ channel: ChannelLink, shown: Bool, heard: Bool) -> TrackableState {
            switch (connection, channel) {
            case (.failed, _), (.online, .failed): return .failed
            case (.online, .online) where shown: return heard ? .online : .publishing
            default: return .offline
            }
        }
        for connection in ChannelLink.allCases {
            for channel in ChannelLink.allCases {
                for (shown, heard) in [(false, false), (false, true), (true, false), (true, true)] as [(Bool, Bool)] {
                    let state = TrackableState(
                        connection: connection, channel: channel, isShown: shown, isSubscribed: heard)
                    let wanted = expected(connection, channel, shown: shown, heard: heard)
                    #expect(state == wanted, "\(connection), \(channel), \(shown), \(heard)")
                }
            }
        }
        func connections(_ link: ChannelLink) -> [ConnectionState] {
            ConnectionState.allCases.filter { $0.link == link }
        }
        func channels(_ link: ChannelLink) -> [ChannelState] { ChannelState.allCases.filter { $0.link == link } }
        #expect(connections(.online) == [.connected] && connections(.failed) == [.failed])
        #expect(channels(.online) == [.attached] && channels(.failed) == [.failed])
    }

    @Test func classesOfErrors() {
        for status in [0, 400, 401, 429, 499, 500, 504, 505] {
            let error = ChannelError(statusCode: status)
            let isFatal = [400, 401, 499].contains(status)
            #expect(error.isFatal == isFatal && error.isRetriable != isFatal, "\(status)")
        }
    }
}
