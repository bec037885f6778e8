import CCurl
import Delivery
import Glibc
import Positioning

/// The time of the loop's current call, for callbacks that libcurl makes in the midst of it.
final class CurrentInstant {
    var value = EventTime.zero
}

/// One request on its way, from `send` to its outcome: what libcurl's callbacks tell about it, and its time limits.
final class Transfer {
    let id: UplinkTransfer
    let request: UplinkRequest
    let body: RequestBody
    let peer: Peer
    let completion: (UplinkOutcome) -> Void
    let instant: CurrentInstant
    let isClockTrusted: () -> Bool
    /// libcurl's handle and header list while the transfer is in its hands.
    var easy: UnsafeMutableRawPointer?
    var headerList: UnsafeMutablePointer<curl_slist>?
    let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    private(set) var reply: ReplyReader
    private(set) var bytesSent = 0
    private(set) var bytesReceived = 0
    private(set) var connectionsOpened = 0
    /// Times the request was written again because a kept connection was dead, by libcurl or by us.
    private(set) var repeats = 0

    private let startedAt: EventTime
    private var attemptAt: EventTime
    private var headSentInAttempt = 0
    private var bodySentInAttempt = 0
    private var openedInAttempt = 0
    private var lastWriteAt: EventTime?
    private var handshakeAt: EventTime?

    init(
        _ id: UplinkTransfer, _ request: UplinkRequest, peer: Peer, limits: ReplyReader.Limits, instant: CurrentInstant,
        isClockTrusted: @escaping () -> Bool, completion: @escaping (UplinkOutcome) -> Void
    ) {
        self.id = id
        self.request = request
        self.peer = peer
        self.completion = completion
        self.instant = instant
        self.isClockTrusted = isClockTrusted
        body = RequestBody(request)
        reply = ReplyReader(limits: limits)
        startedAt = instant.value
        attemptAt = instant.value
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit { errorText.deallocate() }

    /// Every byte of the request was handed to the connection.
    var isFullyWritten: Bool { headSentInAttempt > 0 && bodySentInAttempt >= body.count }

    /// A kept connection carried this attempt, and it brought no byte of an answer.
    var mayRepeat: Bool { openedInAttempt == 0 && repeats == 0 && bytesReceived == 0 }

    func willRepeat() {
        repeats += 1
        beginAttempt()
    }

    func socketOpened() {
        // libcurl writes a request again by itself when a kept connection ends before the first byte of the answer
        // (Curl_retry_request); the only sign of it is a new socket after bytes were sent.
        if headSentInAttempt > 0 {
            repeats += 1
            beginAttempt()
        }
        openedInAttempt += 1
        connectionsOpened += 1
    }

    func bytesMoved(_ kind: curl_infotype, _ count: Int) {
        switch kind {
        case CURLINFO_HEADER_OUT:
            headSentInAttempt += count
            bytesSent += count
            lastWriteAt = instant.value
        case CURLINFO_DATA_OUT:
            bodySentInAttempt += count
            bytesSent += count
            lastWriteAt = instant.value
        case CURLINFO_HEADER_IN, CURLINFO_DATA_IN:
            bytesReceived += count
        case CURLINFO_SSL_DATA_OUT where handshakeAt == nil:
            // libcurl's own connect time is set only when the handshake is over as well.
            handshakeAt = instant.value
        default:
            break
        }
    }

    func headLineArrived(_ line: UnsafeRawBufferPointer) -> Bool { reply.lineArrived(line) }

    func bodyArrived(_ bytes: UnsafeRawBufferPointer) -> Bool { reply.bodyArrived(bytes) }

    private func beginAttempt() {
        attemptAt = instant.value
        headSentInAttempt = 0
        bodySentInAttempt = 0
        openedInAttempt = 0
        lastWriteAt = nil
        handshakeAt = nil
    }
}

extension Transfer {
    /// The limit that is running and what to say when it has passed.
    struct Limit {
        var at: EventTime
        var failure: TransportFailure
    }

    /// The earliest of the limits that apply to what the transfer is doing now.
    func limit(_ settings: HTTPUplink.Settings) -> Limit {
        let whole = Limit(
            at: startedAt + request.timeout,
            failure: .timeout("\(peer) did not finish within \(request.timeout.inWords)"))
        let phase = phaseLimit(settings)
        guard let phase, phase.at < whole.at else { return whole }
        return phase
    }

    private func phaseLimit(_ settings: HTTPUplink.Settings) -> Limit? {
        if bytesReceived > 0 { return nil }
        if headSentInAttempt > 0 {
            guard isFullyWritten, let lastWriteAt else { return nil }
            return Limit(
                at: lastWriteAt + settings.firstByteLimit,
                failure: .timeout("\(peer) did not begin to answer within \(settings.firstByteLimit.inWords)"))
        }
        if let handshakeAt {
            return Limit(
                at: handshakeAt + settings.handshakeLimit,
                failure: .tls("\(peer): no TLS handshake within \(settings.handshakeLimit.inWords)"))
        }
        let words = settings.connectLimit.inWords
        return Limit(
            at: attemptAt + settings.connectLimit,
            failure: isLookingUp
                ? .resolve("\(peer): no answer of the name server within \(words)")
                : .connect("\(peer): no connection within \(words)"))
    }

    private var isLookingUp: Bool {
        var microseconds: curl_off_t = 0
        guard let easy, waypost_curl_get_offset(easy, CURLINFO_NAMELOOKUP_TIME_T, &microseconds) == CURLE_OK else {
            return false
        }
        return microseconds == 0
    }
}

extension Duration {
    fileprivate var inWords: String {
        milliseconds % 1000 == 0 ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
