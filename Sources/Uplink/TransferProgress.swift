import CCurl
import Delivery
import Positioning

/// What libcurl has moved for one request, and since when it waits for what.
struct TransferProgress {
    enum Phase {
        case connecting(since: EventTime)
        case handshaking(since: EventTime)
        case sending
        case awaitingReply(since: EventTime)
        case receiving
    }

    /// Since the request was last written from its beginning.
    private struct Attempt {
        var startedAt: EventTime
        var headSent = 0
        var bodySent = 0
        var opened = 0
        var lastWriteAt: EventTime?
        var handshakeAt: EventTime?
    }

    private(set) var bytesSent = 0
    private(set) var bytesReceived = 0
    private(set) var connectionsOpened = 0
    /// Times the request was written again because a kept connection was dead, by libcurl or by us.
    private(set) var repeats = 0
    private let bodyCount: Int
    private var attempt: Attempt

    init(bodyCount: Int, at now: EventTime) {
        self.bodyCount = bodyCount
        attempt = Attempt(startedAt: now)
    }

    /// Every byte of the request was handed to the connection.
    var isFullyWritten: Bool { attempt.headSent > 0 && attempt.bodySent >= bodyCount }

    var written: UplinkOutcome.Extent {
        isFullyWritten ? .whole : attempt.headSent > 0 ? .part : .nothing
    }

    /// A kept connection carried this attempt, and it brought no byte of an answer.
    var mayRepeat: Bool { attempt.opened == 0 && repeats == 0 && bytesReceived == 0 }

    var phase: Phase {
        if bytesReceived > 0 { return .receiving }
        if attempt.headSent > 0 {
            guard isFullyWritten, let lastWriteAt = attempt.lastWriteAt else { return .sending }
            return .awaitingReply(since: lastWriteAt)
        }
        return attempt.handshakeAt.map { .handshaking(since: $0) } ?? .connecting(since: attempt.startedAt)
    }

    mutating func repeated(at now: EventTime) {
        repeats += 1
        attempt = Attempt(startedAt: now)
    }

    mutating func socketOpened(at now: EventTime) {
        // libcurl writes a request again by itself when a kept connection ends before the first byte of the answer
        // (Curl_retry_request); the only sign of it is a new socket after bytes were sent.
        if attempt.headSent > 0 { repeated(at: now) }
        attempt.opened += 1
        connectionsOpened += 1
    }

    mutating func moved(_ kind: curl_infotype, _ count: Int, at now: EventTime) {
        switch kind {
        case CURLINFO_HEADER_OUT, CURLINFO_DATA_OUT:
            if kind == CURLINFO_HEADER_OUT { attempt.headSent += count } else { attempt.bodySent += count }
            bytesSent += count
            attempt.lastWriteAt = now
        case CURLINFO_HEADER_IN, CURLINFO_DATA_IN: bytesReceived += count
        // libcurl's own connect time is set only when the handshake is over as well.
        case CURLINFO_SSL_DATA_OUT where attempt.handshakeAt == nil: attempt.handshakeAt = now
        default: break
        }
    }
}
