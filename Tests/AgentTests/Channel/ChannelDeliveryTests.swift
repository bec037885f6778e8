import Channel
import Delivery
import EventLoop
import Logging
import Positioning
import TestSupport
import Testing
import Uplink

@testable import Agent
@testable import Configuration
@testable import Tracking

/// A live channel in the daemon, with a service that says what the test wants.
@Suite struct ChannelDeliveryTests {
    private let bench: ChannelBench

    init() throws { bench = try ChannelBench() }

    @Test func connectsAndIsPresentWithTheResolutionInForce() {
        bench.follow(interval: 3000)
        #expect(bench.carrier.target?.hasSuffix("clientId=van&remainPresentFor=60000&accessToken=sesame") == true)
        bench.connect()
        #expect(bench.carrier.sent.map(\.kind) == ["attach", "presence"])
        #expect(bench.carrier.sent.last?.text.contains(#"desiredInterval\":3000"#) == true)
        #expect(bench.channel.state == .connected)
    }

    @Test func aLocationIsSeenWhenItIsRecorded() {
        bench.follow(interval: 1000)
        bench.connect()
        bench.record(1)
        #expect(bench.carrier.messages == ["11223344-1000"])
        // One at a time: what comes meanwhile rides along.
        bench.record(2)
        bench.record(3)
        #expect(bench.carrier.messages.count == 1)
        bench.acknowledge()
        #expect(bench.carrier.messages.last == "11223344-3000")
        #expect(bench.carrier.sent.last?.text.contains(#"\"time\":2"#) == true, "the one between")
        bench.acknowledge()
        #expect(bench.channel.published == 2)
        #expect(bench.channel.trackables.map(\.state) == [.online])
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
        bench.presence(
            2,
            #"{\"type\":\"SUBSCRIBER\",\"resolution\":{\"accuracy\":\"HIGH\",\"desiredInterval\":500,\"minimumDisplacement\":2}}"#
        )
        let wanted = Resolution(priority: .high, intervalMs: 500, displacement: 2)
        #expect(bench.changes == [SubscriberChange(trackable: "van", member: "of-ada:ada", action: .add(wanted))])
        #expect(bench.channel.viewers.of("van").map(\.request) == [wanted])
        bench.presence(3, "")
        #expect(bench.changes.last?.action == .remove)
        #expect(bench.channel.viewers.of("van").isEmpty)
    }

    @Test func aRefusedTokenFailsTheChannelUntilThereIsAnother() {
        bench.follow(interval: 1000)
        bench.carrier.say(#"{"action":9,"error":{"code":40142,"statusCode":401,"message":"expired"}}"#)
        #expect(bench.channel.state == .failed)
        #expect(StatusReport.problem(of: bench.channel)?.hasPrefix("live: ") == true)
        var config = bench.channel.config
        config.endpoint.auth = .bearer(token: "env:OTHER")
        config.endpoint.secrets = ["env:OTHER": .environment("OTHER")]
        bench.channel.reload(config, at: bench.loop.now)
        #expect(bench.carrier.target?.hasSuffix("accessToken=another") == true)
        bench.connect()
        #expect(bench.channel.state == .connected)
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
    var report: (WebSocketConnection.Event, EventTime) -> Void = { _, _ in }

    var messages: [String] {
        sent.compactMap { if case .message(_, _, let message) = $0 { message.id } else { nil } }
    }

    func open(_ request: TransportRequest) {
        target = request.target.revealed
        isClosed = false
    }

    func send(_ frame: ClientFrame) { sent.append(frame) }
    func close() { isClosed = true }
    func trust(_ tls: TLSSettings?) {}
    func say(_ text: String) { report(.text(text), .zero) }
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
    private(set) var changes: [SubscriberChange] = []
    private var serial = 0

    init() throws {
        let loop = try EventLoop()
        self.loop = loop
        let config = try #require(
            try loaded(
                smallest + """
                    [[channel]]
                    name = "live"
                    url = "wss://realtime.example"
                    client_id = "van"
                    auth = { kind = "bearer", token = "env:SECRET" }
                    """, testEnvironment(["SECRET": "sesame"])
            ).config.channels.first)
        let carrier = carrier
        let log = AgentLog.silent
        let uplink = ScriptedUplink()
        channel = ChannelDelivery(
            config, outbox: [0x11, 0x22, 0x33, 0x44, 0x55], log: log, loop: loop,
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
        carrier.report(.opened(subprotocol: nil), loop.now)
        carrier.say(
            #"{"action":4,"connectionId":"c","connectionDetails":{"connectionKey":"k","maxMessageSize":65536}}"#)
        carrier.say(#"{"action":11,"channel":"tracking:van","flags":720896}"#)
        acknowledge()
    }

    /// The oldest frame that is not answered.
    func acknowledge() {
        carrier.say(#"{"action":1,"msgSerial":\#(serial),"count":1}"#)
        serial += 1
    }

    func presence(_ action: Int, _ data: String) {
        carrier.say(
            #"{"action":14,"channel":"tracking:van","presence":[{"action":\#(action),"clientId":"ada","#
                + #""connectionId":"of-ada","id":"of-ada:\#(action):0","data":"\#(data)"}]}"#)
    }

    func record(_ second: Int) {
        channel.recorded(
            Location(
                trackable: "van", time: UTCTime(milliseconds: Int64(second) * 1000), at: loop.now,
                coordinate: Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000), horizontalAccuracy: 4,
                moving: true, published: true), at: loop.now)
    }

}
