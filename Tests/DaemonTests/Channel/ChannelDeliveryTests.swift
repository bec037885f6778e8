import Channel
import ConfigurationTestSupport
import Logging
import Network
import Protocols
import Queue
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon
@testable import WaypostTracking

/// A live channel in the daemon, with a service that says what the test wants.
@Suite struct ChannelDeliveryTests {
    private let bench: ChannelBench

    init() throws { bench = try ChannelBench() }

    @Test func connectsAndIsPresentWithTheResolutionInForce() {
        bench.follow(interval: 3000)
        #expect(bench.carrier.target?.hasSuffix("clientId=van&remainPresentFor=60000&accessToken=sesame") == true)
        bench.connect()
        #expect(bench.carrier.sent.map(\.kind) == ["attach", "presence"])
        let presence = bench.carrier.sent.last?.text ?? ""
        #expect(presence.contains(#"desiredInterval\":3000"#))
        #expect(bench.channel.state == .connected)
        // The fixes of the receiver are not shown unless that is wanted.
        bench.receive(2)
        #expect(bench.carrier.messages == [] && !presence.contains("rawLocations"))
    }

    @Test func aLocationIsSeenWhenItIsRecorded() {
        bench.follow(interval: 1000)
        bench.connect()
        bench.record(1)
        // One at a time: what comes meanwhile rides along.
        bench.record(2)
        bench.record(3)
        #expect(bench.carrier.messages == ["11223344-1000"])
        bench.acknowledge()
        #expect(bench.carrier.messages.last == "11223344-3000")
        #expect(bench.carrier.sent.last?.text.contains(#"\"time\":2"#) == true, "the one between")
        bench.acknowledge()
        #expect(bench.channel.published == 2 && bench.channel.trackables.map(\.state) == [.online])
    }

    @Test func whatIsRecordedWithoutAConnectionIsNotReplayed() {
        bench.follow(interval: 1000)
        for second in 1...100 { bench.record(second) }
        bench.connect()
        #expect(bench.carrier.messages == ["11223344-100000"])
        #expect(bench.channel.passed("van") == 39)
    }

    @Test func aViewerIsHeardAndForgotten() {
        bench.follow(interval: 3000)
        bench.connect()
        let asked = #"{\"accuracy\":\"HIGH\",\"desiredInterval\":500,\"minimumDisplacement\":2}"#
        bench.carrier.presence(2, #"{\"type\":\"SUBSCRIBER\",\"resolution\":\#(asked)}"#)
        let wanted = Resolution(priority: .high, intervalMs: 500, displacement: 2)
        let change = SubscriberChange(trackable: "van", member: "of-ada:ada", action: .add(wanted))
        #expect(bench.changes == [change])
        #expect(bench.channel.viewers.of("van").map(\.request) == [wanted])
        bench.carrier.presence(3, "")
        #expect(bench.changes.last?.action == .remove)
        #expect(bench.channel.viewers.of("van").isEmpty)
    }

    /// The channel takes its leave of them; that they do not watch any more is no news.
    @Test func theEndOfTheDaemonIsNoChangeOfTheRule() throws {
        let directory = try TemporaryDirectory()
        let config = try loaded(
            """
            [device]
            id = "van"
            \(smallest)
            [outbox]
            path = "\(directory.path)/outbox.db"
            [[channel]]
            url = "wss://realtime.example"
            auth = { kind = "bearer", token = "env:SECRET" }
            """, testEnvironment(["SECRET": "sesame"])
        ).config
        let (carrier, lines, host) = (ScriptedCarrier(), LogLines(), try ShiftedHost())
        // Just after boot it would wait.
        host.pass(.seconds(3600))
        var edges = Edges(
            host: host, medium: SystemMedium(), bootID: nil,
            makeWriter: { outbox throws(OutboxError) in try OutboxWriter(outbox) }, uplink: ScriptedUplink(),
            source: FixesOnDemand(), isDaemon: false)
        edges.makeCarrier = { report in
            carrier.report = report
            return carrier
        }
        let agent = try Agent(
            config: config, environment: ["SECRET": "sesame"], logger: Logger(label: "") { _ in lines },
            options: Agent.Options(), edges: edges)
        agent.start()
        carrier.connect(at: agent.loop.now)
        carrier.acknowledge(0)
        carrier.presence(2, #"{\"type\":\"SUBSCRIBER\"}"#)
        #expect(lines.text.contains { $0.hasPrefix("locations are kept by the rule either") })
        _ = agent.end()
        #expect(!lines.text.contains { $0.hasPrefix("locations are kept by the rule track-error") })
    }

    @Test func aRefusedTokenIsAProblemUntilThereIsAnother() {
        bench.follow(interval: 1000)
        let refusal = #"{"action":9,"error":{"code":40142,"statusCode":401,"message":"expired"}}"#
        bench.carrier.say(refusal)
        #expect(StatusReport.problems(of: bench.channel) == [])
        // The same one again, in case that the clock was wrong.
        #expect(bench.carrier.target?.hasSuffix("accessToken=sesame") == true)
        bench.carrier.say(refusal)
        #expect(bench.channel.state == .disconnected)
        let problems = StatusReport.problems(of: bench.channel)
        let words = "live: the service refuses the credential (expired, 2 times"
        #expect(problems.count == 1 && problems[0].hasPrefix(words))
        #expect(problems.first?.contains(": check the token in ") == true, "\(problems)")
        var config = bench.channel.config
        config.endpoint.auth = .bearer(token: "env:OTHER")
        config.endpoint.secrets = ["env:OTHER": .environment("OTHER")]
        bench.channel.reload(config, at: bench.loop.now)
        #expect(bench.carrier.target?.hasSuffix("accessToken=another") == true)
        bench.connect()
        #expect(bench.channel.state == .connected && StatusReport.problems(of: bench.channel) == [])
    }

    /// A proxy with a page of its own, say; a single failure of the network is nothing to act on.
    @Test func whatKeepsItFromConnectingIsAProblem() throws {
        let bench = try ChannelBench(host: LeapingHost())
        bench.follow(interval: 1000)
        bench.carrier.report(.ended(.connect("refused"), byServer: false), bench.loop.now)
        #expect(bench.channel.problems.isEmpty)
        let page = TransportFailure.connect("the server refuses the WebSocket: status 401 (Sign in)")
        for attempt in 1...2 {
            try bench.loop.run(within: .seconds(60), every: .seconds(1)) { bench.carrier.openings > attempt }
            bench.carrier.report(.refused(page), bench.loop.now)
            let words = "there is no connection (\(page.message), \(attempt + 1) times in a row), and it is tried again"
            #expect(StatusReport.problems(of: bench.channel).map { $0.hasPrefix("live: \(words)") } == [true])
        }
        #expect(bench.lines.text.contains { $0.hasPrefix("channel live: there is no connection (") })
        #expect(bench.channel.reason == page.message)
    }

    @Test func aRefusalForGoodIsAProblemInTheSameWords() {
        bench.follow(interval: 1000)
        bench.carrier.say(#"{"action":9,"error":{"code":40400,"statusCode":404,"message":"no such app"}}"#)
        #expect(bench.channel.state == .failed)
        let words =
            "the service refuses the connection (no such app), and it is not tried again: mend that, then `waypost reload`"
        #expect(StatusReport.problems(of: bench.channel) == ["live: \(words)"])
        #expect(bench.lines.text.contains { $0.hasPrefix("channel live: \(words)") })
    }

    @Test func theFixesOfTheReceiverAreShownBesideWhereThatIsWanted() throws {
        let bench = try ChannelBench(isRaw: true)
        bench.follow(interval: 2000)
        bench.connect()
        #expect(bench.carrier.sent.last?.text.contains(#"\"rawLocations\":true"#) == true)
        for second in 1...4 { bench.receive(second) }
        #expect(bench.carrier.messages == ["11223344-1000-raw"])
        bench.record(2)
        #expect(bench.carrier.messages.last == "11223344-2000", "one of each name may be unanswered")
        bench.acknowledge()
        // Every two seconds by the resolution of the trackable; those between ride along.
        #expect(bench.carrier.messages.last == "11223344-3000-raw")
        #expect(bench.carrier.sent.last?.text.contains(#"\"time\":2"#) == true)
    }

    @Test func aRestartGoesOnWhereViewersAre() throws {
        bench.follow(interval: 1000)
        bench.connect()
        bench.record(1)
        bench.acknowledge()
        for second in 2...4 { bench.record(second) }
        let bytes = try #require(ChannelMemory([bench.channel])?.bytes)
        let memory = try #require(ChannelMemory(bytes: bytes))
        let rows: [Location] = (1...4).map(ChannelBench.location)
        let next = try ChannelBench(earlier: .init(seen: memory.seen(on: "live"), rows: rows))
        next.follow(interval: 1000)
        next.connect()
        #expect(next.carrier.messages == ["11223344-4000"])
        let text: String = next.carrier.sent.map(\.text).joined()
        let shown: [Int] = [1, 2, 3].filter { text.contains(#"\"time\":\#($0)"#) }
        #expect(shown == [2, 3])
    }

    @Test func aTrackableThatComesAgainDoesNotGoBackToTheStart() throws {
        let seen = try #require(ChannelFeature(ChannelBench.location(1)))
        let rows: [Location] = (2...4).map(ChannelBench.location)
        let bench = try ChannelBench(earlier: .init(seen: ["van": seen], rows: rows))
        bench.follow(interval: 1000)
        bench.connect()
        #expect(bench.carrier.messages == ["11223344-4000"])
        bench.channel.follow([], at: bench.loop.now)
        bench.follow(interval: 1000)
        #expect(bench.channel.seen.isEmpty)
        bench.connect()
        #expect(bench.carrier.messages == ["11223344-4000"])
    }

    @Test func aViewerOfAParkedVehicleSeesItAfterARestart() throws {
        let seen = try #require(ChannelFeature(ChannelBench.location(1)))
        let bench = try ChannelBench(earlier: .init(seen: ["van": seen]))
        bench.follow(interval: 1000)
        bench.connect()
        #expect(bench.carrier.messages == [])
        bench.carrier.presence(2, #"{\"type\":\"SUBSCRIBER\"}"#)
        #expect(bench.carrier.messages == ["11223344-1000-again-1"])
    }

    @Test func whatIsStoredMayBeAnything() {
        #expect(ChannelMemory(bytes: []) == nil)
        #expect(ChannelMemory(bytes: [1, 2, 3]) == nil)
        #expect(ChannelMemory([]) == nil, "without a channel nothing is stored")
    }

    /// Two minutes in a network that lets no WebSocket through.
    @Test func publishesByRequestsWhereNoConnectionIsPossible() throws {
        let bench = try ChannelBench(host: LeapingHost())
        bench.follow(interval: 1000)
        try bench.loop.run(within: .seconds(180), every: .seconds(1)) {
            bench.carrier.report(.ended(.connect("refused"), byServer: false), bench.loop.now)
            return bench.uplink.requestsOpen > 0
        }
        let poll = try #require(bench.uplink.requests.last)
        let address = "https://realtime.example:443/channels/tracking%3Avan/presence?limit=1000"
        #expect(poll.method == "GET" && poll.url == address)
        #expect(poll.headers.first == .init("Authorization", "Bearer c2VzYW1l"))
        bench.record(1)
        let viewer = #""clientId":"ada","connectionId":"x","id":"x:0:0","data":"{\"type\":\"SUBSCRIBER\"}""#
        bench.uplink.answer(200, #"[{"action":1,\#(viewer)}]"#)
        #expect(bench.changes.map(\.member) == ["x:ada"])
        let message = try #require(bench.uplink.requests.last)
        #expect(message.method == "POST" && message.url.hasSuffix("/channels/tracking%3Avan/messages"))
        #expect(String(decoding: message.body, as: UTF8.self).hasPrefix(#"{"id":"11223344-1000","name":"enhanced""#))
        bench.uplink.answer(201, #"{"channel":"tracking:van","messageId":"m"}"#)
        #expect(bench.channel.published == 1 && bench.channel.isByRequests)
        #expect(bench.channel.trackables.map(\.state) == [.publishing])
        bench.record(2)
        bench.channel.close()
        #expect(bench.uplink.requestsOpen == 0)
    }

    /// A whole fleet may have been powered on.
    @Test func connectsAtATimeOfItsOwnAfterTheHostHasStarted() throws {
        let bench = try ChannelBench(host: LeapingHost())
        let start = bench.loop.now
        bench.channel.startedWithHost(at: start)
        bench.follow(interval: 1000)
        bench.record(1)
        #expect(bench.carrier.target == nil)
        try bench.loop.run(every: .milliseconds(100)) { bench.carrier.target != nil }
        #expect(bench.loop.now > start + .seconds(1) && bench.loop.now < start + .seconds(20))
        bench.connect()
        #expect(bench.carrier.messages == ["11223344-1000"])
    }

    @Test func aChannelThatIsAwayWakesNobody() {
        bench.follow(interval: 1000)
        bench.connect()
        bench.carrier.say(#"{"action":9,"channel":"tracking:van","error":{"code":50000,"message":"no"}}"#)
        for second in 1...3 { bench.record(second) }
        #expect(bench.carrier.messages.isEmpty)
        #expect(bench.channel.alarm?.deadline == nil)
        bench.channel.reload(bench.channel.config, at: bench.loop.now)
        #expect(bench.carrier.messages == ["11223344-3000"])
    }

    @Test func takesItsLeave() {
        bench.follow(interval: 1000)
        bench.connect()
        bench.acknowledge()
        bench.channel.close()
        #expect(bench.carrier.sent.map(\.kind).suffix(2) == ["presence", "close"])
        #expect(bench.carrier.isClosed)
    }
}

private final class ScriptedCarrier: ChannelCarrier {
    private(set) var target: String?
    private(set) var sent: [ClientFrame] = []
    private(set) var isClosed = false
    private(set) var openings = 0
    var report: (WebSocketConnection.Event, EventTime) -> Void = { _, _ in }

    var messages: [String] {
        sent.compactMap { if case .message(_, _, let message) = $0 { message.id } else { nil } }
    }

    func open(_ request: TransportRequest) {
        target = request.target.revealed
        isClosed = false
        openings += 1
    }

    func send(_ frame: ClientFrame) { sent.append(frame) }
    func close() { isClosed = true }
    func trust(_ tls: TLSSettings?) {}
    func linksChanged() {}
    func say(_ text: String) { report(.text(text), .zero) }

    /// The connection is there, and the channel of a trackable.
    func connect(at now: EventTime) {
        report(.opened(subprotocol: nil), now)
        say(#"{"action":4,"connectionId":"c","connectionDetails":{"connectionKey":"k","maxMessageSize":65536}}"#)
        say(#"{"action":11,"channel":"tracking:van","flags":720896}"#)
    }

    func acknowledge(_ serial: Int) { say(#"{"action":1,"msgSerial":\#(serial),"count":1}"#) }

    func presence(_ action: Int, _ data: String) {
        say(
            #"{"action":14,"channel":"tracking:van","presence":[{"action":\#(action),"clientId":"ada","#
                + #""connectionId":"of-ada","id":"of-ada:\#(action):0","data":"\#(data)"}]}"#)
    }
}

extension ClientFrame {
    fileprivate var kind: String {
        switch self {
        case .attach: "attach"
        case .detach: "detach"
        case .presence: "presence"
        case .message: "message"
        case .close: "close"
        case .authorize: "authorize"
        }
    }
}

private final class ChannelBench {
    let loop: EventLoop
    let channel: ChannelDelivery
    let carrier = ScriptedCarrier()
    let uplink = ScriptedUplink()
    let lines = LogLines()
    private(set) var changes: [SubscriberChange] = []
    private var serial = 0

    init(earlier: ChannelDelivery.Earlier = .init(), isRaw: Bool = false, host: (any Host)? = nil) throws {
        let loop = try host.map { EventLoop(on: $0) } ?? EventLoop()
        self.loop = loop
        let uplink = uplink
        let config = try #require(
            try loaded(
                smallest + """
                    [[channel]]
                    name = "live"
                    url = "wss://realtime.example"
                    client_id = "van"
                    raw_locations = \(isRaw)
                    auth = { kind = "bearer", token = "env:SECRET" }
                    """, testEnvironment(["SECRET": "sesame"])
            ).config.channels.first)
        let carrier = carrier
        let lines = lines
        let log = AgentLog(logger: Logger(label: "") { _ in lines }, positions: false)
        channel = ChannelDelivery(
            config, outbox: [0x11, 0x22, 0x33, 0x44, 0x55], earlier: earlier, uplink: uplink, log: log, loop: loop,
            makeCarrier: { report in
                carrier.report = report
                return carrier
            },
            makeCredentials: {
                EndpointCredentials(
                    $0, environment: ["SECRET": "sesame", "OTHER": "another"], stateDirectory: "/nonexistent",
                    uplink: uplink, log: log, loop: loop)
            })
        channel.subscriberChanged = { [unowned self] change, _ in changes.append(change) }
    }

    func follow(interval: Int64) {
        channel.follow(
            [
                TrackerSnapshot.TrackableResolution(
                    id: "van", resolution: Resolution(priority: .balanced, intervalMs: interval, displacement: 1),
                    subscribers: 0, near: false, batteryLow: false, lastRecorded: nil)
            ], at: loop.now)
    }

    func connect() {
        carrier.connect(at: loop.now)
        acknowledge()
    }

    /// The oldest frame that is not answered.
    func acknowledge() {
        carrier.acknowledge(serial)
        serial += 1
    }

    func record(_ second: Int) { channel.recorded(Self.location(second), at: loop.now) }

    static func location(_ second: Int) -> Location {
        Location(
            trackable: "van", time: UTCTime(milliseconds: Int64(second) * 1000), at: .zero, coordinate: place,
            horizontalAccuracy: 4, moving: true, published: true)
    }

    func receive(_ second: Int) {
        let time = UTCTime(milliseconds: Int64(second) * 1000)
        channel.received(
            Fix(time: time, timeOfDay: 0, at: loop.now, coordinate: Self.place, horizontalAccuracy: 4), time: time,
            at: loop.now)
    }

    private static let place = Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000)
}
