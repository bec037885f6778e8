import Delivery
import Protocols
import WaypostCore

/// How a server behaves for a while.
enum Mood: Hashable {
    case good
    /// Answers after up to this many seconds.
    case slow(Int)
    case status(Int, asks: RetryWish?)
    case refused, noName
    /// The connection breaks before an answer, the rows stored or not.
    case lost
    /// The answer comes after the timeout.
    case late
    /// A 2xx whose body breaks off, is over-long, or is of another form.
    case broken
    /// Only 1xx.
    case interim
    /// Another device reports the asset, where the profile can say so.
    case taken
    /// Some rows are refused by name, where the profile can say so.
    case partial(code: String, share: Double)
    /// All rows are refused by name, with 2xx.
    case contradictory
    /// Records at times that divide by this are refused, and with them their batch.
    case poison(Int64, status: Int)
    /// The same, but the server fails over them: as one that breaks down over what it cannot read.
    case stumble(Int64, Stumble)
    /// Compressed bodies are what the server fails over.
    case plainOnly(Stumble)
    /// Of a body that is longer than this not all gets through in time.
    case narrow(bytes: Int)
    /// A router forgets a connection after so many seconds without a packet, and loses what comes over it then.
    case forgets(after: Int)
    /// The resolver does not answer.
    case unresolved
}

/// How a server, or something before it, fails over a record.
enum Stumble: Hashable {
    case status(Int)
    case reset, timeout, closed
    /// A body or a head that is cut, or a success that confirms nothing.
    case cut
    /// Another answer each time.
    case any
}

/// The network and the servers behind it.
final class SimulatedNetwork: Uplink {
    /// What a captive portal answers to any request.
    private static let page = "<!-- 1 -->\n<HTML><head><title>Sign in</title></head></HTML>"
    /// As much of a body as is read of any answer.
    private static let longBody = String(repeating: " ", count: 65_536)

    struct Server {
        var endpoint: WorldEndpoint
        var mood = Mood.good
        /// Share of requests that the mood applies to.
        var intensity = 1.0
        /// For the other requests.
        var otherwise = Mood.good
        /// When something was sent to it last.
        var usedAt: EventTime?
    }

    /// Gives tokens out, each with a number.
    struct Issuer {
        var mood = Mood.good
        var last = 0
        /// Tokens up to this one are refused.
        var revokedThrough = 0
    }

    private let host: SimulatedHost
    let oracle: RequestOracle
    let dice: Dice
    /// Of contacts: without them all else is as it was.
    private let contactDice: Dice
    private let trace: (() -> String) -> Void
    var servers: [String: Server] = [:]
    var issuer = Issuer()
    /// nil = there is no live channel.
    var service: SimulatedService?
    /// nil = nothing comes from afar.
    var remote: RemoteServer?
    /// Of settings from afar that are in force, as far as the world is told; nil = the file alone.
    var versionInForce: () -> Int64? = { nil }
    /// Rows of an endpoint that the daemon has settled.
    var settled: (String) -> Int = { _ in 0 }
    /// A batch that was sent with a version in force was accepted.
    var contact: (Int64?) -> Void = { _ in }
    /// Endpoints whose broker has last said that no one subscribes, as this process knows.
    var unheard: Set<String> = []
    private var isClosed = false
    private var transfers = 0
    private var underWay: [UplinkTransfer: RequestOracle.Attempt] = [:]
    /// Requests are bound to the interface over which they began, and end with it. Only where links are what a world is about.
    var bindsRequests = false
    private var bound: [UplinkTransfer: (interface: String, end: () -> Void)] = [:]
    /// The longest time for which a request may go on over a link that is gone.
    private static let strandedMax = Duration.seconds(3)
    private(set) var statuses: [String: Int] = [:]

    init(
        host: SimulatedHost, oracle: RequestOracle, dice: Dice, contactDice: Dice,
        trace: @escaping (() -> String) -> Void
    ) {
        self.contactDice = contactDice
        self.host = host
        self.oracle = oracle
        self.dice = dice
        self.trace = trace
    }

    /// A server behaves so from now on.
    func behaves(_ name: String, _ mood: Mood, intensity: Double = 1, otherwise: Mood = .good) {
        servers[name]?.mood = mood
        servers[name]?.intensity = intensity
        servers[name]?.otherwise = otherwise
    }

    /// A process has it from now on.
    func opened() {
        isClosed = false
        unheard = []
    }
    func close() {
        isClosed = true
        underWay = [:]
        bound = [:]
    }

    func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
        transfers += 1
        let transfer = UplinkTransfer(transfers)
        begin(request, transfer, completion)
        return transfer
    }

    func closeIdleConnections(at now: EventTime) {}

    func linksChanged(at now: EventTime) {
        for (_, request) in bound where request.interface != host.interface { request.end() }
    }

    /// The host has another link, or none.
    func linkChanged() {
        for (transfer, request) in bound where request.interface != host.interface {
            host.after(Self.strandedMax, ofProcess: true) { [unowned self] in
                guard let attempt = underWay[transfer], bound[transfer]?.interface == request.interface else { return }
                oracle.isStranded(attempt)
            }
        }
    }

    private func bind(
        _ transfer: UplinkTransfer, _ attempt: RequestOracle.Attempt, _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        guard bindsRequests, let interface = host.interface else { return }
        bound[transfer] = (
            interface,
            { [unowned self] in
                bound[transfer] = nil
                host.after(.milliseconds(1), ofProcess: true) { [unowned self] in
                    guard !isClosed, underWay[transfer] != nil else { return }
                    trace { "\(attempt.id): its link is gone" }
                    oracle.answered(attempt, accepts: false)
                    completion(UplinkOutcome(.failed(.moved("the link is gone")), peerAddress: "192.0.2.7"))
                }
            }
        )
    }

    func listen(_ hear: @escaping (BrokerNews) -> Void) { remote?.listens(hear) }

    func reconnect(_ cause: ReconnectCause, at now: EventTime) {}

    func cancel(_ transfer: UplinkTransfer) {
        bound[transfer] = nil
        guard let attempt = underWay.removeValue(forKey: transfer) else { return }
        trace { "\(attempt.id): given up" }
        oracle.answered(attempt, accepts: false)
    }

    private func begin(
        _ request: UplinkRequest, _ transfer: UplinkTransfer, _ done: @escaping (UplinkOutcome) -> Void
    ) {
        let completion = { [unowned self] (outcome: UplinkOutcome) in
            underWay[transfer] = nil
            bound[transfer] = nil
            done(outcome)
        }
        let name =
            request.url.split(separator: "/").dropFirst().first?.split(separator: ".").first.map(String.init) ?? ""
        if name == "issuer" { return issue(transfer, completion) }
        if name == SimulatedService.hostName, let service {
            let result = host.interface == nil ? .failed(.connect("refused")) : service.answer(request)
            return finish(
                result, RequestOracle.Attempt(), transfer, after: dice.between(0, 3), accepts: false, completion)
        }
        if let remote, name == remote.endpoint, let answer = remoteAnswer(remote, request) {
            return finish(
                answer, RequestOracle.Attempt(), transfer, after: dice.between(0, 3), accepts: false, completion)
        }
        guard let server = servers[name] else {
            return finish(
                .failed(.resolve("no such host")), RequestOracle.Attempt(), transfer, after: 0.01, accepts: false,
                completion)
        }
        if let broker = request.broker, broker.messages.isEmpty {
            // Only the connection is wanted.
            let result: UplinkOutcome.Result =
                host.interface == nil ? .failed(.connect("refused")) : .published(.init([]))
            if host.interface != nil, name == remote?.endpoint { remote?.connected() }
            return finish(result, RequestOracle.Attempt(), transfer, after: 0.1, accepts: false, completion)
        }
        if request.connectsAlone || request.url.hasSuffix("/probe") {
            return contact(request, server, transfer, completion)
        }
        let isBind = request.url.hasSuffix("/bind")
        let attempt = isBind ? oracle.sentBind(to: server.endpoint) : oracle.sent(request, to: server.endpoint)
        underWay[transfer] = attempt
        bind(transfer, attempt, completion)
        trace {
            let (rows, first, last) = (attempt.rows, attempt.rows.first ?? 0, attempt.rows.last ?? 0)
            if isBind { return "\(name): bind" }
            return "\(name): \(attempt.id) with \(rows.count) rows \(rows.count < 10 ? "\(rows)" : "\(first)-\(last)")"
        }
        var mood = host.interface == nil ? .refused : dice.chance(server.intensity) ? server.mood : server.otherwise
        if server.endpoint.hasToken, host.interface != nil, !isWelcome(request) {
            mood = .status(401, asks: nil)
        }
        if case .forgets(let seconds) = mood {
            let silence = server.usedAt.map { host.time.seconds(since: $0) } ?? 0
            // The next request makes a new connection.
            let isForgotten = silence > Double(seconds)
            if !isForgotten { mood = .good }
            servers[name]?.usedAt = isForgotten ? nil : host.time
        }
        let told = remoteCompletion(name, isBind: isBind, &mood, completion)
        if let broker = request.broker {
            return publish(
                broker, mood, attempt, transfer, timeout: request.timeout.inSeconds, server.endpoint, told)
        }
        answer(mood, attempt, transfer, request, server.endpoint, told)
    }

    /// A server is asked whether it is there, and may answer whatever it answers to rows.
    private func contact(
        _ request: UplinkRequest, _ server: Server, _ transfer: UplinkTransfer,
        _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        let name = server.endpoint.name
        let isDown = host.interface == nil || [.refused, .noName, .unresolved].contains(server.mood)
        var result: UplinkOutcome.Result
        if isDown {
            result = .failed(contactDice.chance(0.5) ? .connect("refused") : .resolve("no such host"))
        } else if request.connectsAlone {
            result = contactDice.chance(0.8) ? .connected : .failed(.tls("a certificate that nobody trusts"))
        } else {
            let body = contactDice.pick([
                "", Self.page, #"{"status":"Ok","stored":3}"#, #"{"error":"asset_taken"}"#,
                #"{"rejected":[{"seq":1,"code":"bad"}]}"#, #"{"results":[{"code":"bad"}]}"#,
            ])
            let status = contactDice.pick([200, 200, 200, 204, 302, 400, 401, 404, 409, 410, 413, 503])
            result = .reply(UplinkReply(status: status, body: Array(body.utf8)))
        }
        oracle.contacted(server.endpoint, body: request.body, costsServer: result.isAtServer)
        trace { "\(name): a contact" }
        finish(
            result, RequestOracle.Attempt(), transfer, after: contactDice.between(0.01, 5), accepts: false
        ) { [unowned self] outcome in
            let before = settled(name)
            completion(outcome)
            guard settled(name) != before else { return }
            oracle.contactSettled(name)
        }
    }

    /// - Returns: nil where it is none of its requests.
    private func remoteAnswer(_ remote: RemoteServer, _ request: UplinkRequest) -> UplinkOutcome.Result? {
        let isUp =
            host.interface != nil && remote.effect(of: versionInForce()) != .cutsOff
            && servers[remote.endpoint].map { $0.mood == .good || !dice.chance($0.intensity) } == true
        if let message = request.broker?.messages.first, message.topic.hasPrefix("waypost/sim/") {
            if !isUp { remote.disconnected() }
            return isUp ? .published(BrokerReply([.success])) : .failed(.connect("refused"))
        }
        guard request.url.contains("/remote/") else { return nil }
        return isUp ? remote.answer(request) : .failed(.connect("refused"))
    }

    /// What the settings in force do to an attempt, and what its answer says of them.
    private func remoteCompletion(
        _ name: String, isBind: Bool, _ mood: inout Mood, _ completion: @escaping (UplinkOutcome) -> Void
    ) -> (UplinkOutcome) -> Void {
        guard let remote, name == remote.endpoint, !isBind else { return completion }
        let version = versionInForce()
        if remote.effect(of: version) == .cutsOff { mood = .refused }
        switch mood {
        case .refused, .noName, .interim, .lost, .broken, .taken, .late: remote.disconnected()
        default: remote.connected()
        }
        return { [unowned self] outcome in
            switch outcome.result {
            case .reply(let reply):
                remote.delivered(reply)
                if (200...299).contains(reply.status), HTMLCheck(reply) == .noPage { contact(version) }
            case .published(let reply):
                if reply.reasons.contains(where: { $0?.isError == false }) { contact(version) }
            case .failed, .connected: break
            }
            completion(outcome)
        }
    }

    private func isWelcome(_ request: UplinkRequest) -> Bool {
        if let password = request.broker?.session.password {
            return password.hasPrefix("t") && Int(password.dropFirst()).map { $0 > issuer.revokedThrough } == true
        }
        guard let header = request.headers.first(where: { $0.name == "Authorization" })?.value,
            header.hasPrefix("Bearer t"), let number = Int(header.dropFirst(8))
        else { return false }
        return number > issuer.revokedThrough
    }

    /// A request for a token. It is none of the oracle's business.
    private func issue(_ transfer: UplinkTransfer, _ completion: @escaping (UplinkOutcome) -> Void) {
        func reply(_ status: Int, _ body: String, after delay: Double) {
            finish(
                .reply(UplinkReply(status: status, headers: [], body: Array(body.utf8))), RequestOracle.Attempt(),
                transfer,
                after: delay, accepts: false, completion)
        }
        func grant(after delay: Double) {
            issuer.last += 1
            reply(
                200,
                #"{"access_token":"t\#(issuer.last)","token_type":"Bearer","expires_in":\#(dice.pick([30, 300, 3600]))}"#,
                after: delay)
        }
        switch host.interface == nil ? .refused : issuer.mood {
        case .status(let status, _) where !(200...299).contains(status):
            reply(status, #"{"error":"invalid_client"}"#, after: 0.2)
        case .refused, .noName:
            finish(
                .failed(.connect("refused")), RequestOracle.Attempt(), transfer, after: 0.02, accepts: false, completion
            )
        case .lost, .late:
            finish(
                .failed(.timeout("timeout")), RequestOracle.Attempt(), transfer, after: 30, accepts: false, completion)
        case .broken: reply(200, Self.page, after: 0.2)
        case .interim: reply(200, #"{"access_tok"#, after: 0.2)
        case .slow(let seconds): grant(after: dice.between(0, Double(min(seconds, 25))))
        default: grant(after: dice.between(0, 0.4))
        }
    }

    private func answer(
        _ mood: Mood, _ attempt: RequestOracle.Attempt, _ transfer: UplinkTransfer, _ request: UplinkRequest,
        _ endpoint: WorldEndpoint,
        _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        let timeout = request.timeout.inSeconds
        let soon = dice.between(0, 0.4)
        func reply(
            _ status: Int, _ body: String = "", asks: RetryWish? = nil, incomplete: Bool = false,
            after delay: Double, accepts: Bool = false, but refused: Set<Int> = []
        ) {
            // The server's clock is its own.
            var headers = asks?.headers(at: 1_790_000_000 + host.time.nanoseconds / 1_000_000_000) ?? []
            if endpoint.name == remote?.endpoint { headers += remote?.headers() ?? [] }
            if (300...399).contains(status) {
                headers.append(.init("location", dice.pick(["https://elsewhere.example/in", "/login", ""])))
            }
            finish(
                .reply(
                    UplinkReply(status: status, headers: headers, body: Array(body.utf8), bodyIncomplete: incomplete)),
                attempt, transfer, after: delay, timeout: timeout, accepts: accepts, but: refused, asks: asks?.honoured,
                completion)
        }
        func store(_ status: Int = 200, after delay: Double) {
            oracle.stored(attempt)
            let body = endpoint.wantsConfirmation ? #"{"status":"Ok","stored":\#(attempt.rows.count)}"# : ""
            reply(status, body, after: delay, accepts: true)
        }
        switch mood {
        case .good: store(after: soon)
        case .slow(let seconds): store(after: dice.between(0, Double(seconds)))
        case .status(let status, let asks):
            // One that fails after it has stored.
            if status >= 500, dice.chance(0.2) { oracle.stored(attempt) }
            reply(status, #"{"error":"no"}"#, asks: asks, after: soon)
        case .refused: finish(.failed(.connect("refused")), attempt, transfer, after: 0.02, accepts: false, completion)
        case .noName:
            finish(.failed(.resolve("no such host")), attempt, transfer, after: 0.5, accepts: false, completion)
        case .unresolved:
            finish(.failed(.resolve("no answer")), attempt, transfer, after: 30, accepts: false, completion)
        case .narrow(let bytes):
            guard request.body.count > bytes else { return store(after: soon + 20) }
            finish(
                .failed(.timeout("stalled")), attempt, transfer, after: 30, isPart: true, accepts: false, completion)
        case .forgets:
            finish(.failed(.timeout("stalled")), attempt, transfer, after: 30, accepts: false, completion)
        case .lost:
            if dice.chance(0.5) { oracle.stored(attempt) }
            let failure: TransportFailure =
                dice.chance(0.3)
                ? .closedWithoutReply("closed") : dice.chance(0.5) ? .broken("reset") : .timeout("timeout")
            finish(.failed(failure), attempt, transfer, after: dice.between(0, timeout), accepts: false, completion)
        case .late: store(after: timeout * dice.between(0.9, 1.5))
        case .broken:
            guard endpoint.tellsOfRows else {
                let isCut = dice.chance(0.5)
                // A page of somebody in between, or nothing that would exclude one, settles nothing.
                return reply(
                    200, isCut ? dice.pick(["<!DOC", "", "<html>"]) : Self.page, incomplete: isCut, after: soon)
            }
            switch dice.below(4) {
            case 0: reply(200, #"{"rejected":[{"seq":"#, incomplete: true, after: soon)
            case 3:
                let list = dice.pick([#"[1]"#, #"[{"code":{}}]"#, "{}", #"[],"\#(endpoint.listOfRows)":[]"#])
                reply(200, #"{"status":"Ok","\#(endpoint.listOfRows)":\#(list)}"#, after: soon)
            case 1 where endpoint.wantsConfirmation:
                reply(
                    200, dice.pick([#"{"status":"no"}"#, #"{"status":"Ok","errors":[{"at":"?"}]}"#, ""]), after: soon)
            case 1: reply(200, Self.page, after: soon)
            default:
                reply(200, Self.longBody, incomplete: true, after: soon)
            }
        case .interim: reply(103, after: soon)
        case .taken:
            guard endpoint.tellsOfRows else { return store(after: soon) }
            reply(409, #"{"error":"asset_taken"}"#, after: soon)
        case .partial(let code, let share):
            guard endpoint.tellsOfRows, !attempt.rows.isEmpty else { return store(after: soon) }
            let refused = Set(attempt.rows.indices.filter { _ in dice.chance(share) })
            reject(refused, code: code, attempt, request, endpoint, reply)
        case .contradictory:
            guard endpoint.tellsOfRows else { return store(after: soon) }
            reject(Set(attempt.rows.indices), code: "busy", attempt, request, endpoint, reply)
        case .poison(let divisor, let status):
            let poisoned = oracle.isPoisoned(attempt, divisor)
            if poisoned.isEmpty { store(after: soon) } else { reply(status, #"{"error":"bad record"}"#, after: soon) }
        case .stumble(let divisor, let stumble):
            guard !oracle.isPoisoned(attempt, divisor).isEmpty else { return store(after: soon) }
            let all: [Stumble] = [.status(500), .status(502), .status(504), .reset, .timeout, .closed, .cut]
            fail(stumble == .any ? dice.pick(all) : stumble)
        case .plainOnly(let stumble): if request.gzip { fail(stumble) } else { store(after: soon) }
        }
        func fail(_ stumble: Stumble) {
            func fail(_ failure: TransportFailure, after delay: Double) {
                finish(.failed(failure), attempt, transfer, after: delay, accepts: false, completion)
            }
            switch stumble {
            case .status(let status): reply(status, "<html>bad gateway</html>", after: soon)
            case .reset: fail(.broken("reset"), after: soon)
            case .timeout: fail(.timeout("timeout"), after: timeout)
            case .closed: fail(.closedWithoutReply("closed"), after: soon)
            case .cut, .any: fail(.broken("the answer ended within its head"), after: soon)
            }
        }
    }

    private func reject(
        _ refused: Set<Int>, code: String, _ attempt: RequestOracle.Attempt, _ request: UplinkRequest,
        _ endpoint: WorldEndpoint,
        _ reply: (Int, String, RetryWish?, Bool, Double, Bool, Set<Int>) -> Void
    ) {
        guard let records = WireBody.records(request.body, attempt.profile), records.count == attempt.rows.count else {
            return reply(503, "", nil, false, 0.1, false, [])
        }
        // Who calls rows by their time means all of that time.
        let times = endpoint.names == .time ? Set(refused.compactMap { records[$0].time }) : []
        let refused = refused.union(records.indices.filter { records[$0].time.map(times.contains) ?? false })
        oracle.stored(attempt, but: refused)
        if !endpoint.isForNow(code) { oracle.refuses(attempt, refused) }
        let error = #""code":"\#(code)","reason":"\#(code)""#
        let entries: [String] =
            if endpoint.names == .place {
                records.indices.map { refused.contains($0) ? "{\(error)}" : dice.pick(["{}", #"{"code":null}"#]) }
            } else {
                refused.sorted().map { place in
                    let time = #""at":"\#(records[place].time ?? "")","#
                    let seq = #""seq":\#(records[place].identity.split(separator: "/").last ?? ""),"#
                    return
                        "{\(endpoint.names != .seq ? time : "")\(endpoint.names != .time ? seq : "")\(error)}"
                }
            }
        let list = #""status":"Ok","\#(endpoint.listOfRows)":[\#(entries.joined(separator: ","))]"#
        reply(200, "{\(list)}", nil, false, dice.between(0, 0.4), true, refused)
    }

    func finish(
        _ result: UplinkOutcome.Result, _ attempt: RequestOracle.Attempt, _ transfer: UplinkTransfer,
        after seconds: Double,
        timeout: Double = 60, isPart: Bool = false,
        accepts: Bool, but refused: Set<Int> = [], asks: Int? = nil,
        _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        let isLate = seconds >= timeout
        let delay = Duration.milliseconds(Int64(1 + 1000 * min(seconds, timeout)))
        host.after(delay, ofProcess: true) { [self] in
            // Given up, or the process is closing.
            guard !isClosed, attempt.isNobodys || underWay[transfer] != nil else { return }
            if let link = bound[transfer], link.interface != host.interface { return }
            let outcome = isLate ? .failed(.timeout("no answer in time")) : result
            trace { "\(attempt.id): \(Self.words(outcome))" }
            statuses[Self.words(outcome), default: 0] += 1
            oracle.answered(
                attempt, accepts: accepts && !isLate, but: refused, retryAfter: isLate ? nil : asks,
                isFailure: Self.isFailure(outcome), isRefusal: Self.isRefusal(outcome))
            var written = UplinkOutcome.Extent.whole
            if case .failed(let failure) = outcome, !failure.mayFollowRequest { written = .nothing }
            if isPart { written = .part }
            completion(
                UplinkOutcome(outcome, written: written, bytesSent: 100, bytesReceived: 100, peerAddress: "192.0.2.7"))
        }
    }

    /// After it a client leaves the server alone for a while.
    private static func isFailure(_ result: UplinkOutcome.Result) -> Bool {
        switch result {
        case .reply(let reply): [408, 425, 429, 500, 502, 503, 504].contains(reply.status)
        case .connected: false
        case .failed: true
        case .published(let reply):
            [.retry, .slowDown].contains(
                (reply.reasons.compactMap { $0 }.first ?? reply.ending)?.meaning)
                && !reply.reasons.contains(.success)
        }
    }

    /// It names the rows as the cause. What calls a single row too large may be wrong about it, and so may a broker.
    private static func isRefusal(_ result: UplinkOutcome.Result) -> Bool {
        if case .reply(let reply) = result { [400, 422].contains(reply.status) } else { false }
    }

    private static func words(_ result: UplinkOutcome.Result) -> String {
        switch result {
        case .reply(let reply): "\(reply.status)"
        case .failed(let failure): failure.word
        case .connected: "connected"
        case .published(let reply): reply.words ?? "published"
        }
    }
}

extension UplinkOutcome.Result {
    /// It has cost the server something, as far as the daemon knows.
    fileprivate var isAtServer: Bool {
        if case .failed(.resolve) = self { false } else { true }
    }
}
