import Testing
import WaypostCore

@testable import Channel

@Suite("The connection of the channel") struct ConnectionTests {
    @Test func opensWithTheFirstTrackable() {
        let rig = Rig(credential: .key(ChannelSecret("app.key:s/x")))
        let effects = rig.attach("a")
        let request = effects.openings[0]
        #expect(
            request.target.revealed
                == "/?v=5&format=json&heartbeats=true&clientId=van&remainPresentFor=60000&key=app.key%3As%2Fx")
        #expect(request.host == "h" && rig.state == .connecting)
        #expect(rig.attach("b").openings.isEmpty)
    }

    @Test func noDescriptionShowsASecret() {
        let rig = Rig(credential: .token(ChannelSecret("hush")))
        rig.attach("a")
        rig.connect(key: "quiet")
        rig.pass(.seconds(20))
        rig.lose()
        rig.connect(key: "quiet")
        rig.renew("hush-hush")
        #expect(rig.effects.openings.last?.target.revealed.contains("resume=quiet") == true)
        #expect(rig.effects.texts.contains(#"{"action":17,"auth":{"accessToken":"hush-hush"}}"#))
        var dumped = ""
        dump(rig.effects, to: &dumped)
        let (plain, reflected) = (String(describing: rig.effects), String(reflecting: rig.effects))
        for text: String in [dumped, plain, reflected, String(reflecting: rig.client)] {
            #expect(!text.contains("hush") && !text.contains("quiet"))
        }
        #expect(rig.effects.openings.last?.description.hasSuffix("accessToken=…&resume=…") == true)
    }

    @Test func attachesAllAndNumbersFromZero() {
        let rig = Rig()
        for trackable in ["a", "b"] { rig.attach(trackable) }
        let attaches = ["a", "b"].map { #"{"action":10,"channel":"tracking:\#($0)","flags":720896}"# }
        #expect(rig.connect().texts == attaches)
        let resolution = #"{\"accuracy\":\"BALANCED\",\"desiredInterval\":1000,\"minimumDisplacement\":1.0}"#
        let data = #""data":"{\"type\":\"PUBLISHER\",\"resolution\":\#(resolution)}""#
        let enters = #"{"action":14,"channel":"tracking:a","msgSerial":0,"presence":[{"action":2,\#(data)}]}"#
        #expect(rig.attached("a").texts == [enters])
        #expect(rig.attached("b").sent == ["presence 1 enter tracking:b"])
    }

    // RTN14, RTN15.
    @Test func reconnectsAtOnceAndResumes() throws {
        let rig = Rig.entered(since: 60)
        try rig.publish(7)
        let effects = rig.lose()
        #expect(effects.openings.map { $0.secretItems.last?.value.revealed } == ["k"])
        #expect(rig.connect("c").sent == ["message 1 q-7 tracking:a", "attach tracking:a"])
        // The one that was sent first has the same number, and the next one the next.
        #expect(rig.receive(#"{"action":1,"msgSerial":1,"count":1}"#).settled == ["q-7 taken"])
        #expect(rig.attached(isResumed: true).sent == ["presence 2 enter tracking:a"])
    }

    @Test func attachesWithTheLastSerial() {
        let rig = Rig.entered(since: 60)
        rig.receive(#"{"action":15,"channel":"tracking:a","channelSerial":"s9"}"#)
        rig.lose()
        let attach = #"{"action":10,"channel":"tracking:a","flags":720896,"channelSerial":"s9"}"#
        #expect(rig.connect("c").texts == [attach])
    }

    @Test func formsMessagesAnewWhenResumingIsRefused() throws {
        let rig = Rig.entered(since: 60)
        try rig.publish(7)
        rig.lose()
        let effects = rig.connect("other")
        #expect(effects.sent == ["attach tracking:a"] && effects.settled == ["q-7 unanswered"])
        #expect(rig.attached().sent == ["presence 0 enter tracking:a"])
        let next = try rig.publish(8)
        #expect(next.sent == ["message 1 q-8 tracking:a"])
    }

    @Test func confirmsItsMembershipOnTheSameConnection() {
        let rig = Rig.entered()
        rig.receive(
            #"{"action":14,"channel":"tracking:a","connectionId":"c","id":"c:0","presence":[{"action":2,"clientId":"van"}]}"#
        )
        func entersAgain(over connection: String, _ presence: PublisherPresence = Rig.presence) -> String {
            rig.pass(.seconds(60))
            rig.lose()
            rig.attach("a", presence)
            rig.connect(connection)
            return rig.attached().texts[0]
        }
        #expect(entersAgain(over: "c").contains(#""presence":[{"action":2,"id":"c:0:0","data":"#))
        rig.receive(#"{"action":1,"msgSerial":1}"#)
        // With other data it is news, which has no id yet.
        let none = PublisherPresence(resolution: nil)
        let data = #""data":"{\"type\":\"PUBLISHER\",\"resolution\":null"#
        #expect(entersAgain(over: "c", none).contains(#""presence":[{"action":2,\#(data)"#))
        #expect(entersAgain(over: "d", none).contains(#""presence":[{"action":2,"data":"#))
    }

    /// Fleets: a restart of the service must not bring all back in the same second.
    @Test(arguments: [(0.0, 0.0), (0.5, 10.0), (0.999, 19.98)])
    func comesBackAtARandomMomentWhenTheServiceEndedIt(jitter: Double, delay: Double) {
        for ends in [true, false] {
            let rig = Rig.entered(since: 60)
            rig.jitter = jitter
            let effects = ends ? rig.lose(byServer: true) : rig.receive(#"{"action":6}"#)
            #expect(effects.openings.count == (delay == 0 ? 1 : 0))
            if delay > 0 { #expect(rig.client.nextDeadline == seconds(60 + delay)) }
        }
    }

    @Test func comesBackAtOnceWhenTheNetworkDoes() {
        let rig = Rig.entered(since: 60)
        rig.lose(byServer: true)
        #expect(rig.act { $0.networkReturned(at: $1) }.openings.count == 1)
        #expect(rig.act { $0.networkReturned(at: $1) } == [])
        rig.connect()
        #expect(rig.act { $0.networkReturned(at: $1) } == [])
    }

    @Test func waitsLongerAfterEachFailure() {
        let rig = Rig()
        rig.jitter = 0
        rig.attach("a")
        var waits: [Double] = []
        for _ in 0..<4 {
            rig.lose()
            guard let next = rig.client.nextDeadline else { break }
            waits.append(next.seconds(since: rig.now))
            rig.pass(next.duration(since: rig.now))
        }
        #expect(waits == [12, 16, 20, 24])
    }

    @Test func aConnectionThatEndsAtOnceIsNoSuccess() {
        let rig = Rig.entered()
        var openings = 0
        for _ in 0..<100 {
            openings += rig.lose().openings.count
            openings += rig.pass(.seconds(1)).openings.count
            rig.connect()
        }
        #expect(openings < 10)
    }

    @Test func aServiceThatAnswersNothingIsNotResumedForEver() {
        let rig = Rig()
        let names = (0..<100).map { "t\($0)" }
        for name in names { rig.attach(name) }
        var again: [Int] = []
        var id = ""
        for turn in 0..<6 {
            let isResumed = rig.effects.openings.last?.secretItems.contains { $0.name == "resume" } == true
            if !isResumed { id = "c\(turn)" }
            again.append(rig.connect(id).sent.count { $0.hasPrefix("presence") })
            for name in names { rig.attached(name) }
            // On a connection that lasts, a minute without an answer is too long.
            rig.pass(.seconds(turn < 3 ? 59 : 70))
            #expect(rig.client.problems == (turn < 3 ? [] : [.unanswered(trackable: "t0")]))
            rig.effects = []
            rig.lose()
        }
        #expect(again == [0, 100, 100, 100, 0, 0])
    }

    @Test func theServiceHasHostsOfItsOwn() {
        let rig = Rig { $0 = .ofService(clientID: "van") }
        rig.attach("a")
        rig.lose()
        let hosts = ["main.realtime.ably.net", "main.c.fallback.ably-realtime.com"]
        #expect(rig.effects.openings.map(\.host) == hosts)
    }

    @Test func givesUpAnAttemptAfterTenSeconds() {
        let rig = Rig()
        rig.attach("a")
        rig.pass(.seconds(9.9))
        #expect(rig.state == .connecting)
        let effects = rig.pass(.seconds(0.2))
        #expect(effects.first == .closeTransport && rig.state == .disconnected)
    }

    @Test func triesOtherHostsThreeTimes() {
        let rig = Rig { $0.fallbackHosts = ["a", "b", "c", "d", "e"] }
        rig.jitter = 0.99
        var hosts = rig.attach("a").openings.map(\.host)
        for _ in 0..<4 { hosts += rig.lose().openings.map(\.host) }
        #expect(hosts == ["h", "e", "d", "c"] && rig.state == .disconnected)
        #expect(rig.pass(.seconds(20)).openings.map(\.host) == ["h"])
    }

    @Test func dropsASilentConnection() {
        let rig = Rig()
        rig.attach("a")
        rig.connect(details: #","maxIdleInterval":15000"#)
        rig.attached()
        rig.receive(#"{"action":1,"msgSerial":0,"count":1}"#)
        rig.pass(.seconds(20))
        rig.receive(#"{"action":0}"#)
        rig.pass(.seconds(24.9))
        #expect(rig.state == .connected)
        let effects = rig.pass(.seconds(0.2))
        #expect(effects.prefix(1) == [.closeTransport] && effects.openings.count == 1)
    }

    @Test func neverDropsOneThatMayBeSilent() {
        let rig = Rig.entered()
        rig.connect(details: #","maxIdleInterval":0"#)
        #expect(rig.client.nextDeadline == nil)
    }

    @Test func suspendsAfterTwoMinutesAndStillResumes() throws {
        let rig = Rig.entered(since: 60)
        try rig.publish(7)
        rig.effects = []
        rig.lose()
        var openings = 0
        for _ in 0..<60 {
            openings += rig.pass(.seconds(5)).openings.count
            if rig.client.state != .disconnected { rig.lose() }
        }
        #expect(rig.state == .suspended && rig.effects.settled == ["q-7 unanswered"])
        #expect(rig.effects.connectionStates.contains(.suspended) && rig.effects.channelStates.last == .suspended)
        #expect(openings < 14)
        let last = rig.effects.openings.last
        #expect(last?.secretItems.map(\.name) == ["accessToken", "resume"])
        while rig.client.nextDeadline != nil, rig.pass(.seconds(1)).openings.isEmpty {}
        rig.connect("c")
        #expect(rig.state == .connected && rig.attached().sent == ["presence 2 enter tracking:a"])
    }

    /// The service takes each connection, and sends something that is not of the protocol.
    @Test func connectionsThatEndSoonAreAProblem() {
        let rig = Rig()
        rig.attach("a")
        func live(_ seconds: Int, _ words: String) {
            while rig.state != .connecting, rig.client.nextDeadline != nil { rig.pass(.seconds(1)) }
            rig.connect()
            rig.pass(.seconds(seconds))
            rig.effects = []
            rig.act { $0.transportLost(byServer: true, because: words, jitter: 0.5, at: $1) }
        }
        live(1, "a masked frame")
        let told = ChannelError(statusCode: 0, message: "a masked frame")
        #expect(rig.effects.contains(.connectionChanged(.disconnected, told)))
        live(1, "a masked frame")
        #expect(rig.client.problems == [])
        live(5, "a text that is not UTF-8")
        #expect(rig.client.problems == [.shortLived("a text that is not UTF-8", times: 3)])
        live(61, "the server closed the connection")
        #expect(rig.client.problems == [])
    }

    // Credentials.

    @Test(arguments: [#"{"action":6,"error":"#, #"{"action":9,"error":"#])
    func renewsAnExpiredTokenAtOnceAndTheNextOnesEverLater(frame: String) {
        let expired = frame + #"{"code":40142,"statusCode":401}}"#
        let rig = Rig.entered(since: 60)
        #expect(rig.receive(expired).renewals == 1)
        let effects = rig.renew("t2")
        #expect(effects.openings[0].target.revealed.contains("accessToken=t2&resume=k"))
        #expect(rig.client.problems == [])
        let again = rig.receive(expired)
        #expect(again.renewals == 0 && again.openings.isEmpty && rig.state == .disconnected)
        let error = ChannelError(code: 40_142, statusCode: 401)
        #expect(rig.client.problems == [.credentialRefused(error, times: 2)])
        let returned = rig.act { $0.networkReturned(at: $1) }
        #expect(returned == [], "a network makes no token")
        // Another one from a person is used at once.
        let mended = rig.renew("t3")
        #expect(mended.openings.count == 1)
        rig.connect("c")
        rig.pass(.seconds(60))
        #expect(rig.client.problems == [] && rig.receive(expired).renewals == 1, "it is the first one again")
    }

    /// Signed before the clock of this host was set: the first token is refused, and so are all others for a day.
    @Test func aRefusedTokenIsFetchedAgainForEver() {
        let rig = Rig(credential: nil)
        rig.attach("a")
        var times: [Double] = []
        while rig.now < seconds(86_400) {
            // Viewers or a network are no reason to try.
            rig.act { $0.networkReturned(at: $1) }
            if rig.effects.renewals > 0 {
                times.append(rig.now.seconds(since: .zero))
                rig.effects = []
                rig.renew("t\(times.count)")
                rig.receive(#"{"action":9,"error":{"code":40142,"statusCode":401}}"#)
                continue
            }
            guard let next = rig.client.nextDeadline else { break }
            rig.pass(next.duration(since: rig.now))
        }
        // At once, after 15 s, 30 s, … and then every quarter of an hour.
        #expect(times.count > 90 && times.count < 120, "\(times.count)")
        rig.effects = []
        while rig.effects.renewals == 0 { rig.pass(.seconds(60)) }
        #expect(rig.renew("good").openings.count == 1)
        rig.connect()
        #expect(rig.state == .connected && rig.client.problems == [])
    }

    @Test func asksForATokenBeforeItConnects() {
        let rig = Rig(credential: nil)
        #expect(rig.attach("a").renewals == 1 && rig.state == .disconnected)
        rig.act { $0.credentialUnavailable("no answer", isTransient: true, jitter: 0, at: $1) }
        #expect(rig.client.nextDeadline == seconds(12))
        #expect(rig.pass(.seconds(12)).renewals == 1)
        for pause in [12.0, 24, 48] {
            rig.act { $0.credentialUnavailable("no such key", isTransient: false, jitter: 0, at: $1) }
            #expect(rig.client.nextDeadline == rig.now + .seconds(pause))
            #expect(rig.pass(.seconds(pause)).renewals == 1)
        }
        #expect(rig.client.problems == [.credentialMissing(.credentialMissing("no such key"), times: 3)])
    }

    /// A service that asks for another token without end, and takes each.
    @Test func renewalsArePaced() {
        let rig = Rig.entered()
        var renewals = 0
        for _ in 0..<3600 {
            for _ in 0..<5 {
                guard rig.receive(#"{"action":17}"#).renewals > 0 else { continue }
                renewals += 1
                rig.renew("t")
                rig.connect()
            }
            if rig.pass(second).renewals > 0 {
                renewals += 1
                rig.renew("t")
                rig.connect()
            }
        }
        #expect(renewals >= 12 && renewals <= 16, "\(renewals)")
    }

    @Test func renewsInPlaceWhenTheServiceAsks() {
        let rig = Rig.entered()
        #expect(rig.receive(#"{"action":17}"#) == [.renewCredential(because: nil)])
        #expect(rig.receive(#"{"action":17}"#) == [])
        let effects = rig.renew("t2")
        #expect(effects.texts == [#"{"action":17,"auth":{"accessToken":"t2"}}"#])
        #expect(rig.connect(key: "k2") == [] && rig.client.nextDeadline == nil)
        rig.pass(.seconds(60))
        #expect(rig.lose().openings[0].secretItems.map(\.value.revealed) == ["t2", "k2"])
    }

    @Test func aRenewalWithoutAnAnswerCostsTheConnection() {
        let rig = Rig.entered(since: 60)
        rig.renew("t2")
        #expect(rig.pass(.seconds(10)).openings.count == 1)
    }

    @Test func anErrorOfTheConnection() {
        let rows: [(status: Int, code: Int, isFinal: Bool)] = [
            (400, 40_000, true), (403, 40_300, true), (503, 50_003, false), (429, 42_911, false),
        ]
        for (status, code, isFinal) in rows {
            let rig = Rig.entered()
            let effects = rig.receive(#"{"action":9,"error":{"code":\#(code),"statusCode":\#(status)}}"#)
            #expect(effects.first == .closeTransport)
            let signs = [rig.state == .failed, rig.client.nextDeadline == nil, rig.act { $0.retry(at: $1) } != []]
            #expect(signs == [isFinal, isFinal, isFinal], "\(code)")
        }
    }

    // Closing.

    @Test func saysGoodbye() throws {
        let rig = Rig.entered(["a", "b"])
        try rig.publish(7)
        rig.effects = []
        #expect(rig.leave("a").sent == ["presence 3 leave tracking:a", "detach tracking:a"])
        #expect(rig.receive(#"{"action":13,"channel":"tracking:a"}"#).channelStates == [.detached])
        let effects = rig.leave("b")
        #expect(effects.sent == ["presence 4 leave tracking:b", "close"] && rig.state == .closing)
        #expect(rig.effects.settled == ["q-7 unanswered"])
        #expect(rig.receive(#"{"action":8}"#) == [.closeTransport, .connectionChanged(.closed, nil)])
        #expect(rig.client.nextDeadline == nil)
    }

    @Test func closesWithoutAnAnswer() {
        let rig = Rig.entered()
        rig.act { $0.close(at: $1) }
        #expect(rig.pass(.seconds(10)).first == .closeTransport && rig.state == .closed)
    }

    @Test func openedAgainWhileItCloses() {
        let rig = Rig.entered()
        rig.act { $0.close(at: $1) }
        rig.attach("b")
        let effects = rig.receive(#"{"action":8}"#)
        #expect(effects.openings.map { $0.secretItems.count } == [1])
        #expect(rig.connect("d").sent == ["attach tracking:b"])
    }

    @Test func aTrackableThatComesBackAtOnceIsAttachedAgain() {
        let rig = Rig.entered(["a", "b"])
        rig.leave("a")
        rig.attach("a")
        #expect(rig.receive(#"{"action":13,"channel":"tracking:a"}"#).sent == ["attach tracking:a"])
        #expect(rig.attached("a").sent == ["presence 3 enter tracking:a"])
    }

    @Test func whatIsNoFrameIsCounted() {
        let rig = Rig.entered()
        let unread = ["", "x", "[]", "{}", #"{"action":99}"#, #"{"action":"4"}"#, #"{"action":1e300}"#]
        let idle = [
            #"{"action":11,"channel":"tracking:other"}"#,
            #"{"action":1,"msgSerial":-9223372036854775808,"count":9223372036854775807}"#,
            #"{"action":1,"msgSerial":9223372036854775807,"count":9223372036854775807}"#,
        ]
        for text in unread + idle { #expect(rig.receive(text) == []) }
        #expect(rig.client.unreadFrames == 7 && rig.state == .connected)
    }

    @Test func beforeItIsConnectedOnlyTheConnectionIsSpokenOf() {
        let rig = Rig()
        rig.attach("a")
        for frame in [#""action":9,"error":{"code":40160,"statusCode":401}"#, #""action":11"#, #""action":13"#] {
            #expect(rig.receive(#"{"channel":"tracking:a",\#(frame)}"#) == [])
        }
        #expect(rig.receive(#"{"action":1,"msgSerial":0}"#) == [] && rig.state == .connecting)
    }
}
