import Delivery
import Logging
import Profiles
import Protocols
import Synchronization
import WaypostCLI
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

/// What an endpoint's credentials make of a request, on a loop that turns only as long as they need it.
final class Requests {
    let loop: EventLoop
    let uplink = ScriptedUplink()
    /// What is answered, from the loop.
    var answer: (UplinkRequest) -> UplinkOutcome = { _ in UplinkOutcome(.reply(UplinkReply(status: 200))) }
    private var answering: EventLoop.Alarm?
    let credentials: EndpointCredentials
    let lines: LogLines
    private let settings: EndpointSettings
    /// What the wall clock shows and whether a time service vouches for it.
    let clock = WallClock()
    private var limit: EventLoop.Alarm?

    final class WallClock {
        var ms: Int64 = 1_700_000_000_000
        var isSynchronised = true
        var receiverMs: Int64?
    }

    init(
        of config: EndpointConfig, _ environment: [String: String] = [:], stateDirectory: String = "/nonexistent"
    ) throws {
        settings = config.settings
        loop = try EventLoop()
        let lines = LogLines()
        self.lines = lines
        var logger = Logger(label: "") { _ in lines }
        logger.logLevel = .trace
        let clock = clock
        credentials = EndpointCredentials(
            config, environment: environment, stateDirectory: stateDirectory, uplink: uplink,
            log: AgentLog(logger: logger, positions: true), loop: loop,
            clock: .init(
                hostMs: { clock.ms }, isSynchronised: { clock.isSynchronised }, receiverMs: { _ in clock.receiverMs }))
        answering = loop.alarm { [unowned self] _ in uplink.answerAll(answer) }
        uplink.sent = { [unowned self] in answering?.deadline = .zero }
    }

    /// The request of one attempt, made `later` after now.
    func request(
        _ body: String = "{}", later: Duration = .zero, batchID: String = "b-1"
    ) throws -> UplinkRequest {
        let now = loop.now + later
        let secrets = try wait { done in credentials.obtain(at: now, done) }.get()
        var request = UplinkRequest(url: "https://f.example/\(secrets.token ?? "")", body: Array(body.utf8), gzip: true)
        request.headers = ownHeaders(secrets)
        try credentials.complete(&request, batchID: batchID, at: now)
        return request
    }

    /// Those of the endpoint, without what its profile writes by itself.
    private func ownHeaders(_ secrets: RequestSecrets) -> [UplinkRequest.Header] {
        let batch = Batch(
            endpoint: "main", id: "b", rows: ProfileSample.full.rows, sentMs: nil, outbox: ProfileSample.outbox)
        return RequestRenderer(settings, in: RenderContext(secrets: secrets)).request(for: batch).headers.filter {
            $0.name != "Content-Type" && $0.name != "Idempotency-Key"
        }
    }

    func headers(later: Duration = .zero) throws -> [String] {
        try request(later: later).headers.map { "\($0.name): \($0.value)" }
    }

    func refresh(later: Duration = .zero) throws -> CredentialRenewal {
        try wait { done in credentials.refresh(at: loop.now + later, done) }
    }

    struct Unanswered: Error {}

    private func wait<Value>(_ begin: (@escaping (Value) -> Void) -> Void) throws -> Value {
        var value: Value?
        var isTurning = false
        begin { [loop] in
            value = $0
            if isTurning { loop.stop() }
        }
        if let value { return value }
        isTurning = true
        limit = limit ?? loop.alarm { [unowned self] _ in loop.stop() }
        limit?.deadline = loop.now + .seconds(30)
        try loop.run()
        limit?.deadline = nil
        guard let value else { throw Unanswered() }
        return value
    }
}

/// Keeps what is logged, at every level.
final class LogLines: LogHandler, @unchecked Sendable {
    private let kept = Mutex<[String]>([])
    var text: [String] { kept.withLock { $0 } }
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { kept.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
}
