import Channel
import Daemon
import Network
import Protocols
import WaypostCore

/// The service of a live channel, which does whatever comes to its mind, and its viewers, who ask for anything. Nothing of it may
/// ever cost an endpoint a row.
final class SimulatedService: ChannelCarrier {
    func linksChanged() {}

    private let host: SimulatedHost
    private let dice: Dice
    private let report: (WebSocketConnection.Event, EventTime) -> Void
    /// Of the connection that is open, or being opened; others are over.
    private var connection = 0
    private var isOpen = false
    private var openings = 0
    private var identity = 0
    private var serial = 0
    private var channels: Set<String> = []
    /// Until then the network lets only requests through.
    private var blockedUntil = EventTime.zero
    private let fail: (Invariant, String) -> Void
    /// When each channel was asked for, of the last minute.
    private var attachings: [String: [EventTime]] = [:]
    /// With reconnections at least 12 s apart, and what a reload asks for again.
    private static let attachingsMax = 20

    /// The first label of all its hosts.
    static let hostName = "main"

    init(
        host: SimulatedHost, dice: Dice, report: @escaping (WebSocketConnection.Event, EventTime) -> Void,
        fail: @escaping (Invariant, String) -> Void
    ) {
        self.host = host
        self.dice = dice
        self.report = report
        self.fail = fail
    }

    func trust(_ tls: TLSSettings?) {}

    func open(_ request: TransportRequest) {
        connection += 1
        openings += 1
        if dice.chance(0.05) { blockedUntil = host.time + .seconds(dice.pick([100, 300, 1500])) }
        let isRefused = host.interface == nil || host.time < blockedUntil || dice.chance(0.2)
        later(dice.between(0, 3)) { [unowned self] in
            if isRefused { return tell(.ended(.connect("refused"), byServer: false)) }
            isOpen = true
            tell(.opened(subprotocol: nil))
            if dice.chance(0.1) { return say(refusal(9)) }
            if !request.secretItems.contains(where: { $0.name == "resume" }) || dice.chance(0.3) {
                identity += 1
                serial = 0
                channels = []
            }
            say(
                #"{"action":4,"connectionId":"c\#(identity)","connectionDetails":{"connectionKey":"k\#(identity)","#
                    + #""maxMessageSize":\#(dice.pick([65_536, 4000])),"maxIdleInterval":15000}}"#)
            live()
        }
    }

    /// To a request of HTTP.
    func answer(_ request: UplinkRequest) -> UplinkOutcome.Result {
        func reply(_ status: Int, _ body: String) -> UplinkOutcome.Result {
            .reply(UplinkReply(status: status, headers: [], body: Array(body.utf8)))
        }
        switch dice.below(12) {
        case 0: return .failed(dice.pick([.connect("refused"), .timeout("timeout"), .broken("reset")]))
        case 1: return reply(dice.pick([200, 302, 503]), "<html>")
        case 2:
            let code = dice.pick([40_009, 40_142, 40_160, 42_911, 50_000])
            if code == 40_142 { isTriedAgain() }
            return reply(code / 100, #"{"error":{"code":\#(code),"statusCode":\#(code / 100),"message":"no"}}"#)
        default: break
        }
        serial += 1
        return request.method == "GET"
            ? reply(200, "[\(dice.chance(0.5) ? viewer(1) : "")]") : reply(201, #"{"messageId":"m"}"#)
    }

    func close() {
        connection += 1
        isOpen = false
    }

    func send(_ frame: ClientFrame) {
        guard isOpen else { return }
        if dice.chance(0.02) { return cut() }
        switch frame {
        case .attach(let channel, _): attach(channel)
        case .detach(let channel): answer(#"{"action":13,"channel":"\#(channel)"}"#)
        case .presence(_, let serial, _, _, _), .message(_, let serial, _): acknowledge(serial)
        case .close: answer(#"{"action":8}"#)
        case .authorize: break
        }
    }

    /// The credential is refused: by ERROR (9) or DISCONNECTED (6).
    private func refusal(_ action: Int) -> String {
        isTriedAgain()
        return #"{"action":\#(action),"error":{"code":40142,"statusCode":401,"message":"expired"}}"#
    }

    /// Whoever refuses a credential is asked again, for ever.
    private func isTriedAgain() {
        let before = openings
        host.after(.seconds(3600), ofProcess: true) { [weak self] in
            guard let self, openings == before else { return }
            fail(.liveness, "no connection to the service of the channel for an hour after its credential was refused")
        }
    }

    private func attach(_ channel: String) {
        let recent = attachings[channel, default: []].filter { $0 + .seconds(60) > host.time } + [host.time]
        attachings[channel] = recent
        if recent.count > Self.attachingsMax {
            fail(.politeness, "\(recent.count) requests within a minute to attach \(channel)")
        }
        if dice.chance(0.1) {
            return answer(
                #"{"action":9,"channel":"\#(channel)","error":{"code":\#(dice.pick([40_160, 50_000])),"message":"no"}}"#
            )
        }
        if dice.chance(0.1) { return }
        channels.insert(channel)
        answer(#"{"action":11,"channel":"\#(channel)","flags":\#(720_896 | (dice.chance(0.5) ? 1 : 0))}"#)
        answer(#"{"action":16,"channel":"\#(channel)","channelSerial":"s:","presence":[\#(viewer(1))]}"#)
    }

    private func acknowledge(_ serial: Int64) {
        switch dice.below(20) {
        case 0: break
        case 1:
            let code = dice.pick([42_911, 40_009, 40_142, 40_160, 50_000])
            answer(#"{"action":2,"msgSerial":\#(serial),"count":1,"error":{"code":\#(code),"message":"no"}}"#)
        default: answer(#"{"action":1,"msgSerial":\#(serial),"count":1}"#)
        }
    }

    /// Viewers come and go, the service beats, and sometimes it is over.
    private func live() {
        later(dice.between(1, 12)) { [unowned self] in
            guard isOpen else { return }
            switch dice.below(40) {
            case 0: return cut()
            case 1: say(dice.chance(0.5) ? refusal(6) : #"{"action":6,"error":{"code":80003,"message":"moved"}}"#)
            case 2: say(dice.pick(["", "{", "[]", #"{"action":"x"}"#, #"{"action":99}"#]))
            case 3:
                for _ in 0..<dice.pick([1, 1, 100]) {
                    if let channel = channels.min() { say(#"{"action":13,"channel":"\#(channel)"}"#) }
                }
            case 4...9:
                if let channel = channels.min() {
                    serial += 1
                    say(#"{"action":14,"channel":"\#(channel)","presence":[\#(viewer(dice.pick([2, 3, 3, 4])))]}"#)
                }
            default: say(#"{"action":0}"#)
            }
            live()
        }
    }

    private func viewer(_ action: Int) -> String {
        let name = dice.pick(["ada", "bob", "eve"])
        let data = dice.pick([
            #"{\"type\":\"SUBSCRIBER\"}"#, "x",
            #"{\"type\":\"SUBSCRIBER\",\"resolution\":{\"accuracy\":\"MAXIMUM\",\"desiredInterval\":0,\"minimumDisplacement\":0}}"#,
            #"{\"type\":\"SUBSCRIBER\",\"resolution\":{\"accuracy\":\"HIGH\",\"desiredInterval\":2000,\"minimumDisplacement\":5}}"#,
        ])
        return
            #"{"action":\#(action),"clientId":"\#(name)","connectionId":"of-\#(name)","id":"of-\#(name):\#(serial):0","#
            + #""data":"\#(data)"}"#
    }

    private func cut() {
        isOpen = false
        later(0.01) { [unowned self] in tell(.ended(.broken("reset"), byServer: true)) }
    }

    private func answer(_ text: String) { later(dice.between(0, 0.5)) { [unowned self] in if isOpen { say(text) } } }
    private func say(_ text: String) { tell(.text(text)) }

    private func tell(_ event: WebSocketConnection.Event) {
        if case .ended = event { isOpen = false }
        report(event, host.bootTime)
    }

    /// While the connection is the same.
    private func later(_ seconds: Double, _ action: @escaping () -> Void) {
        let connection = connection
        host.after(.milliseconds(Int64(1 + 1000 * seconds)), ofProcess: true) { [weak self] in
            if self?.connection == connection { action() }
        }
    }
}
