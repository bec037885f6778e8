import ConfigurationTestSupport
import Hash
import Logging
import Protocols
import Queue
import Remote
import Synchronization
import TestSupport
import Testing
import WaypostControl
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

/// A whole daemon but for the network, whose server is the test.
final class RemoteBench {
    static let text = """
        [device]
        id = "van-7"
        [source]
        kind = "serial"
        path = "/dev/null"
        [sampling]
        rule = "either"
        [[endpoint]]
        base_url = "https://fleet.example"
        batch_window = "60s"
        [remote]
        commands = ["locate", "flush", "boost", "refresh", "status", "pace"]
        settings_url = "https://fleet.example/van-7/settings"
        reported_url = "https://fleet.example/van-7/reported"
        allow = ["sampling", "tracking.heartbeat"]
        [remote.range]
        "tracking.heartbeat" = ["10m", "1d"]

        """

    let lines = LogLines()
    let host: ShiftedHost
    let uplink = ScriptedUplink()
    let receiver = FixesOnDemand()
    let agent: Agent
    private let file: FileText
    private let directory: TemporaryDirectory

    /// - Parameter directory: with what an earlier one stored.
    init(_ directory: TemporaryDirectory, _ text: String = text) throws {
        self.directory = directory
        let whole = text + "[outbox]\npath = \"\(directory.path)/outbox.db\"\n"
        let host = try ShiftedHost()
        self.host = host
        let file = FileText(whole)
        var loaded = try file.load()
        self.file = file
        var memory = RemoteMemory()
        let now = host.bootTime
        let state = RemoteFile(beside: loaded.config.outbox)
        if case .memory(let stored) = state.contents(at: now) { memory = stored }
        let path = state.path
        var options = Agent.Options()
        options.remote = RemoteStart(
            path: path, memory: memory, over: &loaded, at: now,
            store: { memory in
                do throws(SystemError) {
                    try replaceFile(path, with: memory.bytes(at: now), mode: 0o600)
                    return true
                } catch { return false }
            },
            lay: { RemoteOverlay($0, version: $1, over: $2, environment: testEnvironment()) })
        var edges = Edges(
            host: host, medium: SystemMedium(), bootID: nil,
            makeWriter: { outbox throws(OutboxError) in try OutboxWriter(outbox) }, uplink: uplink,
            source: receiver, isDaemon: false)
        edges.readsLater = { read in read() }
        options.reread = { () throws(ConfigurationProblems) in try file.load() }
        let lines = lines
        agent = try Agent(
            config: loaded.config, effective: loaded.effective, environment: [:],
            logger: Logger(label: "") { _ in lines }, options: options, edges: edges)
        agent.start()
    }

    func reload() {
        do throws(ControlError) {
            _ = try agent.configuration.reloadCommand(ControlTicket(id: nil, peer: 0), at: agent.loop.now)
        } catch { Issue.record("\(error)") }
    }

    /// - Parameter expires: seconds from now.
    func command(_ id: String, _ rest: String = #""do":"flush""#, expires: Int64 = 30) -> String {
        let time = UTCTime(milliseconds: host.wallClockMs + expires * 1000)
        return #"{"id":"\#(id)",\#(rest),"expires":"\#(time.iso8601)"}"#
    }

    /// What the file says from now on.
    func write(_ text: String) { file.set(text + "[outbox]\npath = \"\(directory.path)/outbox.db\"\n") }

    private var isClosed = false

    /// Before another one with the same files; else it comes with its end.
    func close() {
        if !isClosed { _ = agent.end() }
        isClosed = true
    }

    deinit { close() }

    /// As the file asks for it of a document and of a command.
    /// - Parameter purpose: what is signed before the text, without the version and the end of the line.
    static func signature(of text: String, as purpose: String, key: String) -> String {
        let bytes = HMACSHA256.authenticate(Array("\(purpose)-v1\n\(text)".utf8), key: Array(key.utf8))
        return "sha256=" + String(hexOf: bytes)
    }

    var remote: SettingsFromAfar { agent.remote!.settings }

    /// Turns the loop until `done`.
    func run(until done: @escaping () -> Bool) throws { try agent.loop.run(until: done) }

    /// Time goes by, and the loop turns once.
    func pass(_ duration: Duration) throws {
        host.pass(duration)
        try run { true }
    }

    /// A row is recorded, and a batch is on its way.
    func send() throws {
        agent.pipeline.handle(.paceRequested(.moving), at: agent.loop.now)
        agent.pipeline.handle(.paceRequested(.stationary), at: agent.loop.now)
        agent.endpoints.deliveries[0].flush(at: agent.loop.now)
        try run { self.uplink.isOpen("POST") }
    }

    /// A batch goes out, and the answer to it brings a command.
    func order(_ command: String) throws {
        try send()
        answer("POST", 200, [("waypost-command", command)])
    }

    /// The broker passes something on.
    func hear(_ topic: String, _ text: String, isRetained: Bool = false) {
        let topic = "waypost/van-7/\(topic)"
        uplink.hear(.message(MQTTMessage(topic: topic, payload: Array(text.utf8), isRetained: isRetained)))
    }

    /// The server is away: attempts fail until `done`. Time goes by meanwhile.
    func failAttempts(until done: @escaping () -> Bool) throws {
        try send()
        try agent.loop.run(within: .seconds(1200)) { [unowned self] in
            if uplink.isOpen("POST") {
                uplink.end(UplinkOutcome(.failed(.connect("refused")))) { $0.method == "POST" }
            }
            host.pass(.milliseconds(200))
            return done()
        }
    }

    /// Answers the oldest open request of a method.
    func answer(_ method: String, _ status: Int, _ headers: [(String, String)] = [], _ body: String = "") {
        let reply = UplinkReply(
            status: status, headers: headers.map { .init($0.0, $0.1) }, body: Array(body.utf8))
        uplink.end(UplinkOutcome(.reply(reply))) { $0.method == method }
    }

    /// A batch is accepted, whose answer announces a version, and the document is fetched.
    func receive(_ document: String, version: Int64, headers: [(String, String)] = []) throws {
        try pass(.seconds(61))
        try send()
        answer("POST", 200, [("waypost-settings", "\(version)")])
        try run { self.uplink.isOpen("GET") }
        answer("GET", 200, headers, document)
    }

    func value(of key: String) -> JSONValue? {
        agent.configuration.settings { $0 == key }.first?.value
    }

    /// What the queue keeps of changed settings.
    func report() -> JSONValue? {
        uplink.requests.last { $0.method == "PUT" }.flatMap { JSONReader.read($0.body) }
    }
}

private final class FileText: Sendable {
    private let text: Mutex<String>

    init(_ text: String) { self.text = Mutex(text) }

    func set(_ new: String) { text.withLock { $0 = new } }

    func load() throws(ConfigurationProblems) -> LoadedConfiguration {
        try loaded(text.withLock { $0 })
    }
}
