import Hash
import Protocols
import WaypostCore

/// A server of settings and commands: documents good and bad, commands in time and late, signed and forged, once and again.
final class RemoteServer {
    static let allowed = ["sampling", "tracking", "resolution", "outbox.commit_window"]
    static let commands = ["locate", "flush", "boost", "refresh", "status", "pace"]

    /// What a document does to the device beside what it says.
    enum Effect {
        case none
        /// The server of the rows cannot be reached with it.
        case cutsOff
        /// The daemon dies soon after it is in force, and soon after each start.
        case crashes
    }

    private struct Message {
        var bytes: [UInt8]
        var signature: String?
        /// Whoever has the key has signed it for this purpose, or nobody has to.
        var isGenuine = true
    }

    /// What a signature covers before the message, as docs/remote.md has it.
    private enum Purpose: String {
        case settings = "waypost-settings-v1\n"
        case command = "waypost-command-v1\n"
    }

    /// Which endpoint it belongs to.
    let endpoint: String
    let isSigned: Bool
    /// Messages come over its broker.
    let isBroker: Bool
    private let dice: Dice
    private let oracle: RemoteOracle
    private let host: SimulatedHost
    private var newest: Int64 = 0
    private var desired: (version: Int64, message: Message)?
    private var effects: [Int64: Effect] = [:]
    private var lastCommand = 0
    private var sent: [Message] = []
    /// For the next answer to a batch.
    private var waiting: [Message] = []
    /// What the broker says goes there; nil = the device has not subscribed in this process.
    private var hear: ((BrokerNews) -> Void)?
    private var isSubscribed = false

    init(endpoint: String, isBroker: Bool, isSigned: Bool, dice: Dice, oracle: RemoteOracle, host: SimulatedHost) {
        self.endpoint = endpoint
        self.isBroker = isBroker
        self.isSigned = isSigned
        self.dice = dice
        self.oracle = oracle
        self.host = host
    }

    /// Lines of the table `[remote]`.
    func table(commitWindow: Int) -> String {
        let urls =
            isBroker
            ? ""
            : """
            settings_url = "https://\(endpoint).example/remote/settings"
            reported_url = "https://\(endpoint).example/remote/reported"
            """
        return """
            [remote]
            endpoint = "\(endpoint)"
            \(urls)
            allow = [\(Self.allowed.map { "\"\($0)\"" }.joined(separator: ", "))]
            commands = [\(Self.commands.map { "\"\($0)\"" }.joined(separator: ", "))]
            \(isSigned ? "secret = \"env:SIM_SECRET\"" : "")
            [remote.range]
            "outbox.commit_window" = ["1s", "\(commitWindow)s"]
            "tracking.heartbeat" = ["10m", "6h"]

            """
    }

    func effect(of version: Int64?) -> Effect { version.flatMap { effects[$0] } ?? .none }

    // What it says.

    /// It has another document, which may be none.
    func offer() {
        let version: Int64 =
            switch dice.below(20) {
            case 0, 1: max(1, newest - Int64(dice.below(3)))
            case 2 where dice.chance(0.1): (1 << 53) - 1
            default: newest + Int64(dice.from(1...3))
            }
        let device = dice.chance(0.96) ? "sim" : "another"
        let lines = (0..<dice.pick([0, 1, 1, 2, 3])).map { _ in setting() }
        let within = dice.pick(["1m", "5m", "30m", "30m"])
        let now = World.epochMs + host.time.nanoseconds / 1_000_000
        let expires = Self.expiry(of: version).map { #","expires":"\#(Self.iso(now + $0 * 1000))""# } ?? ""
        var text =
            #"{"device":"\#(device)","version":\#(version),"set":{\#(Self.distinct(lines))},"confirm_within":"\#(within)"\#(expires)}"#
        switch dice.below(40) {
        case 0: text = String(text.dropLast(dice.from(1...20)))
        case 1: text = text.replacing("\(version)", with: "9223372036854775808")
        case 2: text += String(repeating: " ", count: 16_384)
        default: break
        }
        // A version does the same for ever.
        if effects[version] == nil {
            effects[version] = dice.chance(0.65) ? Effect.none : dice.chance(0.7) ? .cutsOff : .crashes
        }
        newest = version < 1 << 52 ? max(newest, version) : newest
        let message = signed(text, for: .settings)
        oracle.offered(version, isGenuine: message.isGenuine, hasExpired: Self.expiry(of: version) ?? 0 < 0)
        desired = (version, message)
        publishDesired()
    }

    /// Seconds from when it is offered; nil = never. Further off than a date that is trusted can be wrong by.
    private static func expiry(of version: Int64) -> Int64? {
        switch version % 8 {
        case 3: -3 * 86_400
        case 6: 3 * 86_400
        default: nil
        }
    }

    private static func distinct(_ lines: [(String, String)]) -> String {
        var known: Set<String> = []
        return lines.filter { known.insert($0.0).inserted }.map { #""\#($0.0)":\#($0.1)"# }.joined(separator: ",")
    }

    private func setting() -> (String, String) {
        switch dice.below(24) {
        case 0...4: ("sampling.rule", dice.pick([#""either""#, #""interval""#, #""track-error""#, #""both""#]))
        case 14...17: ("resolution.default.interval", dice.pick([#""1s""#, #""10s""#, #""5m""#, #""1d""#]))
        case 18, 19: ("sampling.min_gap", dice.pick([#""0s""#, #""5s""#]))
        case 20, 21: ("sampling.bound", dice.pick([#""1m""#, #""50m""#]))
        case 22, 23: ("tracking.moving.stop_timeout", dice.pick([#""1m""#, #""20m""#]))
        case 5, 6: ("tracking.heartbeat", dice.pick([#""1m""#, #""30m""#, #""1d""#]))
        case 7: ("tracking.stop_timeout", dice.pick([#""30s""#, #""10m""#]))
        case 8, 9: ("outbox.commit_window", dice.pick([#""1s""#, #""5s""#, #""1h""#]))
        case 10: ("tracking.stop_timeout", dice.pick(["5", "true", #""soon""#, #""$SIM_SECRET""#]))
        case 11: ("sampling.preset", dice.pick([#""active""#, #""passive""#]))
        case 12: dice.pick([("outbox.max_bytes", #""1MiB""#), ("log.level", #""notice""#), ("battery.low", "10")])
        default: (dice.pick(["endpoint.base_url", "control.socket", "remote.allow"]), #""https://evil.example""#)
        }
    }

    /// A command, or an earlier one again.
    func command() {
        if !sent.isEmpty, dice.chance(0.2) { return deliver(dice.pick(sent)) }
        lastCommand += 1
        let id = "c-\(lastCommand)"
        let ahead = dice.pick([30, 55, 59, 59, 59, 5, -20, 300])
        let expires = host.wallClockMs + Int64(ahead) * 1000
        let action = dice.pick(Self.commands + Self.commands + ["reboot"])
        var more = isSigned || dice.chance(0.1) ? #","device":"sim""# : ""
        if dice.chance(0.03) { more = #","device":"another""# }
        if action == "pace", dice.chance(0.7) { more += #","moving":\#(dice.chance(0.5))"# }
        if action == "boost", dice.chance(0.5) { more += #","for":\#(dice.from(1...3600))"# }
        var text = #"{"id":"\#(id)","do":"\#(action)","expires":"\#(Self.iso(expires))"\#(more)}"#
        if dice.chance(0.04) { text = String(text.dropLast(dice.from(1...40))) }
        let message = signed(text, for: .command)
        oracle.ordered(id, expires: expires, isGenuine: message.isGenuine)
        sent.append(message)
        if sent.count > 40 { sent.removeFirst() }
        deliver(message)
    }

    private static func iso(_ ms: Int64) -> String { UTCTime(milliseconds: ms).iso8601 }

    private func signed(_ text: String, for purpose: Purpose) -> Message {
        let bytes = Array(text.utf8)
        guard isSigned else { return Message(bytes: bytes) }
        guard !dice.chance(0.03) else { return Message(bytes: bytes, isGenuine: false) }
        // By somebody else, or by the owner for something else.
        let forgery = dice.unit()
        let key = forgery < 0.98 ? "secret" : "another"
        let covered =
            switch forgery {
            case ..<0.95, 0.98...: purpose.rawValue
            case ..<0.97: (purpose == .settings ? Purpose.command : .settings).rawValue
            default: ""
            }
        let digits = HMACSHA256.authenticate(Array(covered.utf8) + bytes, key: Array(key.utf8))
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return Message(bytes: bytes, signature: "sha256=\(digits)", isGenuine: forgery < 0.95)
    }

    private func deliver(_ message: Message) {
        guard isBroker else {
            waiting.append(message)
            if waiting.count > 5 { waiting.removeFirst() }
            return
        }
        publish(message, "cmd", isRetained: dice.chance(0.04))
    }

    // Over HTTP.

    /// Headers of an answer to a batch.
    func headers() -> [UplinkRequest.Header] {
        guard !isBroker else { return [] }
        var headers: [UplinkRequest.Header] = []
        if let desired { headers.append(.init("waypost-settings", "\(desired.version)")) }
        if !waiting.isEmpty {
            let command = waiting.removeFirst()
            headers.append(.init("waypost-command", String(decoding: command.bytes, as: UTF8.self)))
            if let signature = command.signature { headers.append(.init("waypost-signature", signature)) }
        }
        return headers
    }

    /// The device reads an answer.
    func delivered(_ reply: UplinkReply) {
        if let command = reply.header("waypost-command") { oracle.delivered(Self.id(Array(command.utf8)), host) }
    }

    func answer(_ request: UplinkRequest) -> UplinkOutcome.Result {
        guard request.method == "GET" else { return .reply(UplinkReply(status: dice.chance(0.9) ? 204 : 503)) }
        if dice.chance(0.1) { return .reply(UplinkReply(status: dice.pick([500, 403, 404, 304, 200]))) }
        guard let desired else { return .reply(UplinkReply(status: 404)) }
        let known = request.headers.first { $0.name == "If-None-Match" }?.value
        if known == "\"\(desired.version)\"" { return .reply(UplinkReply(status: 304)) }
        let headers = desired.message.signature.map { [UplinkRequest.Header("waypost-signature", $0)] } ?? []
        return .reply(UplinkReply(status: 200, headers: headers, body: desired.message.bytes))
    }

    // Over a broker.

    func listens(_ hear: @escaping (BrokerNews) -> Void) {
        self.hear = hear
        isSubscribed = false
    }

    /// A request has reached the broker: with the connection came the subscriptions.
    func connected() {
        guard isBroker, !isSubscribed else { return }
        isSubscribed = true
        let refused = dice.chance(0.02) ? ["waypost/sim/cmd"] : []
        later { hear in hear(.subscribed(refused: refused)) }
        publishDesired()
    }

    func disconnected() { isSubscribed = false }

    private func publishDesired() {
        guard isBroker, let desired else { return }
        publish(desired.message, "settings/desired", isRetained: true)
    }

    private func publish(_ message: Message, _ topic: String, isRetained: Bool) {
        guard isSubscribed, host.interface != nil else { return }
        let payload =
            message.signature.map {
                Array(#"{"payload":"\#(Base64.encode(message.bytes))","signature":"\#($0)"}"#.utf8)
            } ?? message.bytes
        later { [oracle, host] hear in
            if topic == "cmd" { oracle.delivered(Self.id(message.bytes), host) }
            hear(.message(MQTTMessage(topic: "waypost/sim/\(topic)", payload: payload, isRetained: isRetained)))
        }
    }

    private func later(_ act: @escaping ((BrokerNews) -> Void) -> Void) {
        host.after(.milliseconds(Int64(dice.from(1...2000))), ofProcess: true) { [weak self] in
            if let hear = self?.hear { act(hear) }
        }
    }

    private static func id(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix(#"{"id":""#) else { return "" }
        return String(text.dropFirst(7).prefix { $0 != "\"" })
    }
}
