import CCurl
import Glibc
import Protocols
import WaypostCore

/// The time of the loop's current call, for callbacks that libcurl makes during it.
final class CurrentInstant {
    var value = EventTime.zero
}

/// One request from `send` to its outcome: its reply as far as it has come, and its time limits.
final class Transfer {
    /// The limit that is running and the failure when it has passed.
    struct Limit {
        var at: EventTime
        var failure: TransportFailure
    }

    let id: UplinkTransfer
    let request: UplinkRequest
    let body: RequestBody
    let completion: (UplinkOutcome) -> Void
    /// libcurl's handle and header list while it works on the transfer.
    var easy: UnsafeMutableRawPointer?
    /// Where libcurl works on it.
    weak var multi: CurlMulti?
    var headerList: UnsafeMutablePointer<curl_slist>?
    let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private(set) var progress: TransferProgress
    let peer: Peer
    /// See `UplinkOutcome.followsUnasked`.
    var followsUnasked = false

    /// A success began before the request was handed to the kernel in full: it cannot be about all of it.
    private var isPremature = false
    private var reply: ReplyReader
    /// Bytes that its connection had brought before; nil = not looked at yet.
    private var receivedBefore: Int64?
    /// Bytes of a connection for one answer, with what TLS and chunks need. libcurl counts neither extensions of chunks nor trailers.
    private let floodLimit: Int64
    private let connections: KeptConnections
    private let measuresStages: Bool
    private let instant: CurrentInstant
    /// What was known of the way as it began.
    let memory: ConnectMemory
    /// Sockets that were opened for it and not closed.
    private var opened: [Int32] = []
    /// When the kernel repeats what was lost, as far as that was looked at.
    private var retransmission = Duration.zero
    private let isClockTrusted: () -> Bool

    init(
        _ id: UplinkTransfer, _ request: UplinkRequest, peer: Peer, connections: KeptConnections,
        memory: ConnectMemory, limits: ReplyReader.Limits, measuresStages: Bool, instant: CurrentInstant,
        isClockTrusted: @escaping () -> Bool,
        completion: @escaping (UplinkOutcome) -> Void
    ) {
        self.id = id
        self.request = request
        self.peer = peer
        self.connections = connections
        self.measuresStages = measuresStages
        self.completion = completion
        self.instant = instant
        self.isClockTrusted = isClockTrusted
        body = RequestBody(request)
        reply = ReplyReader(limits: limits)
        floodLimit = Int64(limits.body + limits.head) * 5 / 4 + 131_072
        self.memory = memory
        progress = TransferProgress(bodyCount: body.count, at: instant.value)
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { errorText.deallocate() }

    func repeated() { progress.repeated(at: instant.value) }

    /// - Parameter address: of its other end, as a socket address.
    func socketOpened(_ descriptor: Int32, at address: [UInt8]) {
        connections.opened(descriptor, to: peer, at: address)
        opened.append(descriptor)
        progress.socketOpened(at: instant.value)
    }

    /// Whether it waits for something that is bound to an address or a route which is gone.
    ///
    /// - Parameter hasChanged: there is another link.
    func isStranded(_ hasChanged: Bool) -> Bool {
        // The resolver may have asked over the former link.
        if isLookingUp { return hasChanged }
        if let connection { return connections.isStranded(connection) }
        return opened.contains(where: connections.isStranded)
    }

    var isLookingUp: Bool { if case .lookingUp = progress.phase { true } else { false } }

    /// Looks at what the peer has acknowledged.
    func look() {
        guard let connection else { return }
        let (unacknowledged, silence) = (waypost_tcp_unacknowledged(connection), waypost_tcp_silence_ms(connection))
        guard unacknowledged >= 0, silence >= 0 else { return }
        retransmission = .milliseconds(max(0, waypost_tcp_retransmission_ms(connection)))
        progress.looked(
            unacknowledged: Int(unacknowledged), silence: silence * 1_000_000, clock: Self.kernelClock)
    }

    /// That of the times which the kernel notes for a connection.
    private static var kernelClock: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The descriptor of its connection, while libcurl works on it; nil before there is one.
    var connection: Int32? {
        if let easy, let descriptor = multi?.descriptor(of: easy) { return descriptor }
        var descriptor: curl_socket_t = -1
        guard let easy, waypost_curl_get_socket(easy, CURLINFO_ACTIVESOCKET, &descriptor) == CURLE_OK, descriptor >= 0
        else { return nil }
        return descriptor
    }

    func bytesMoved(_ kind: curl_infotype, _ count: Int) {
        progress.moved(kind, count, at: instant.value, clock: Self.kernelClock)
    }

    func headLineArrived(_ line: UnsafeRawBufferPointer) -> Bool {
        guard reply.lineArrived(line) else { return false }
        // libcurl then closes the connection, on which the answer to the whole request may follow.
        if let status = reply.status, (200...299).contains(status), !progress.isFullyWritten { isPremature = true }
        return !isPremature
    }

    func bodyArrived(_ bytes: UnsafeRawBufferPointer) -> Bool { reply.bodyArrived(bytes) }

    func outcome(_ code: CURLcode) -> UplinkOutcome {
        if isPremature { return outcome(.failed(failure(code))) }
        if request.connectsAlone, code == CURLE_OK { return outcome(.connected) }
        return outcome(
            reply.reply(code == CURLE_OK ? .complete : .broken).map { .reply($0) } ?? .failed(failure(code)))
    }

    /// The outcome when more has come over its connection than an answer needs; nil = it has not.
    func outcomeOfFlood() -> UplinkOutcome? {
        guard let connection, case let received = waypost_tcp_received(connection), received >= 0 else { return nil }
        // What came over a kept connection before was for other requests.
        let before = receivedBefore ?? (progress.isOverKept ? received : 0)
        receivedBefore = before
        guard received - before > floodLimit else { return nil }
        reply.hasTooManyBytes()
        return outcome(CURLE_RECV_ERROR)
    }

    /// The outcome when what carries it is gone: what has come of the answer counts.
    var strandedOutcome: UplinkOutcome {
        outcome(expired: Limit(at: .zero, failure: .moved("\(peer): the link changed under the request")))
    }

    /// How long the lookup of the name took; nil = there was none, or it has not ended.
    var lookup: Duration? { progress.isOverKept ? nil : reached(CURLINFO_NAMELOOKUP_TIME_T) }

    /// The outcome when a time limit has passed: what has come of the answer counts.
    func outcome(expired limit: Limit) -> UplinkOutcome {
        outcome(reply.reply(.late).map { .reply($0) } ?? .failed(limit.failure))
    }

    private func outcome(_ result: UplinkOutcome.Result) -> UplinkOutcome {
        var outcome = UplinkOutcome(
            result, written: progress.written, bytesSent: progress.bytesSent, bytesReceived: progress.bytesReceived,
            newConnection: progress.connectionsOpened > 0, peerAddress: peerAddress,
            stages: measuresStages ? stages : nil)
        outcome.followsUnasked = followsUnasked
        return outcome
    }

    private var peerAddress: String? {
        var text: UnsafeMutablePointer<CChar>?
        guard let easy, waypost_curl_get_text(easy, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text,
            text.pointee != 0
        else { return nil }
        return String(cString: text)
    }
}

// Time limits.
extension Transfer {
    /// A request that makes progress takes no longer than so many times its timeout.
    private static let longest = 10

    /// The limit that applies to what the transfer is doing now.
    func limit(_ settings: HTTPUplink.Settings) -> Limit {
        /// - Parameters:
        ///   - limit: of the phase, unless that of the request is shorter.
        ///   - failure: with the words of the limit.
        func limited(_ since: EventTime, _ limit: Duration, _ failure: (String) -> TransportFailure) -> Limit {
            let limit = min(limit, request.timeout)
            return Limit(at: since + limit, failure: failure(limit.inWords))
        }
        switch progress.phase {
        case .lookingUp(let since):
            return limited(since, settings.lookupLimit) {
                .resolve("\(peer): no answer from the name server within \($0)")
            }
        case .connecting(let since):
            return limited(since, memory.limit(settings.connectLimit)) {
                .unreachable("\(peer): no connection within \($0)")
            }
        case .handshaking(let since):
            return limited(since, memory.limit(settings.handshakeLimit)) {
                .tls("\(peer): no TLS handshake within \($0)")
            }
        case .sending(let since), .awaitingReply(let since):
            let end = progress.beganAt + .nanoseconds(request.timeout.nanoseconds * Int64(Self.longest))
            let limit = waiting(since, settings, limited)
            guard end < limit.at else { return limit }
            let words = end.duration(since: progress.beganAt).inWords
            let isTaken = if case .awaitingReply = progress.phase { true } else { false }
            let missing = isTaken ? "did not answer" : "did not take the request"
            return Limit(at: end, failure: .timeout("\(peer) \(missing) within \(words)"))
        case .receiving(let since):
            return limited(since, request.timeout) { limit in
                .timeout(
                    "\(peer) did not finish its answer\(reply.status.map { " (status \($0))" } ?? "") within \(limit), "
                        + "and sent less than 1 KiB in a second")
            }
        }
    }

    private func waiting(
        _ since: EventTime, _ settings: HTTPUplink.Settings,
        _ limited: (EventTime, Duration, (String) -> TransportFailure) -> Limit
    ) -> Limit {
        // A longer timeout is for a server that takes longer.
        let share = max(1, request.timeout.inSeconds / HTTPUplink.Settings.usualTimeout.inSeconds)
        let firstByte = Duration.milliseconds(Int64(Double(settings.firstByteLimit.milliseconds) * min(share, 3600)))
        let stall = min(settings.stallLimit, firstByte)
        func stalled(_ words: String) -> TransportFailure {
            .timeout(
                "\(peer) took nothing of the request for \(words): the link is gone or slow, or loses long packets")
        }
        if progress.mayBeForgotten { return limited(since, min(settings.keptStallLimit, stall), stalled) }
        guard case .awaitingReply = progress.phase else {
            return limited(since, max(stall, retransmission * 2), stalled)
        }
        return limited(since, firstByte) { .timeout("\(peer) did not begin to answer within \($0)") }
    }

    /// Since the start of the transfer; nil = it has not come so far.
    private func reached(_ point: CURLINFO) -> Duration? {
        var microseconds: curl_off_t = 0
        guard let easy, waypost_curl_get_offset(easy, point, &microseconds) == CURLE_OK, microseconds > 0 else {
            return nil
        }
        return .microseconds(microseconds)
    }

    private var stages: UplinkStages {
        var stages = UplinkStages()
        var before = Duration.zero
        func next(_ point: CURLINFO) -> Duration? {
            guard let reached = reached(point) else { return nil }
            defer { before = reached }
            return max(reached - before, .zero)
        }
        stages.lookup = next(CURLINFO_NAMELOOKUP_TIME_T)
        stages.connect = next(CURLINFO_CONNECT_TIME_T)
        stages.handshake = next(CURLINFO_APPCONNECT_TIME_T)
        // libcurl also sets it for a request that ends without an answer.
        if progress.bytesReceived > 0 { stages.firstByte = next(CURLINFO_STARTTRANSFER_TIME_T) }
        if let easy, let text = waypost_curl_get_certificate(easy) {
            stages.certificate = ClientCertificate.dates(Array(String(cString: text).utf8))
        }
        return stages
    }
}

// Failures.
extension Transfer {
    private func failure(_ code: CURLcode) -> TransportFailure {
        if let breach = reply.breach { return .broken("\(peer): \(breach.rawValue)") }
        if isPremature {
            return .broken("\(peer) answered before it had the whole request (status \(reply.status ?? 0))")
        }
        if let status = reply.status, status >= 100 {
            let place = reply.headEnded ? "before the end of its body" : "within its head"
            let end = status < 200 ? "with the interim status \(status)" : "\(place) (status \(status))"
            return .broken("\(peer): the answer ended \(end)")
        }
        // Half a status line is nothing, though a newer libcurl counts its bytes.
        if progress.bytesReceived > 0, code != CURLE_GOT_NOTHING { return .broken("\(peer): the answer is not HTTP") }
        let ending = CurlEnding(
            code, easy: easy, peer: peer, errorText: errorText, isClockTrusted: isClockTrusted)
        switch code {
        case CURLE_GOT_NOTHING where progress.isFullyWritten:
            return .closedWithoutReply("\(peer) took the request and closed the connection without an answer")
        case CURLE_GOT_NOTHING:
            return .broken("\(peer) closed the connection while the request was being sent")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            let moment = progress.isFullyWritten ? "before an answer" : "while the request was being sent"
            return ending.alert
                ?? .broken("\(peer): the connection broke \(moment)\(ending.systemError.map { ": \($0)" } ?? "")")
        default: return ending.failure
        }
    }
}

extension Duration {
    var inWords: String {
        milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
