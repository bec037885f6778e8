import CCurl
import Protocols
import WaypostCore

/// What libcurl has moved for one request, and since when it waits for what.
struct TransferProgress {
    enum Phase {
        case lookingUp(since: EventTime)
        case connecting(since: EventTime)
        case handshaking(since: EventTime)
        /// Not all of the request was acknowledged when that was looked at last.
        case sending(since: EventTime)
        case awaitingReply(since: EventTime)
        /// Since when the answer has been too slow: since its first byte, and later the more of it comes.
        case receiving(since: EventTime)
    }

    /// Of head and body: slower ones have no more than their time.
    static let answerBytesInSecond: Int64 = 1024

    /// Since the request was last written from its beginning.
    private struct Attempt {
        var startedAt: EventTime
        var headSent = 0
        var bodySent = 0
        var opened = 0
        var openedAt: EventTime?
        /// The last byte was written, or the last one acknowledged as far as that was looked at.
        var progressAt: EventTime?
        /// By the clock of the kernel, in nanoseconds.
        var writtenNs: Int64 = 0
        var unacknowledged = 0
        /// Nothing was unacknowledged at a look after the whole was written: what the peer sends then is no more progress of the request.
        var isTaken = false
        /// The peer has acknowledged something since the request was written.
        var isAcknowledged = false
        var handshakeAt: EventTime?
    }

    private(set) var bytesSent = 0
    private(set) var bytesReceived = 0
    /// See `Phase.receiving`; nil = nothing has come.
    private var slowSince: EventTime?
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

    /// Without all of it acknowledged the peer cannot have all of it.
    var written: UplinkOutcome.Extent {
        isFullyWritten && attempt.unacknowledged == 0 ? .whole : attempt.headSent > 0 ? .part : .nothing
    }

    /// When the request was last begun.
    var beganAt: EventTime { attempt.startedAt }

    /// The peer has acknowledged nothing of the request.
    var isUntouched: Bool {
        attempt.headSent > 0 && attempt.unacknowledged >= attempt.headSent + attempt.bodySent
    }

    /// A kept connection carries this attempt.
    var isOverKept: Bool { attempt.opened == 0 }

    /// The same, and it brought no byte of an answer.
    var mayRepeat: Bool { isOverKept && repeats == 0 && bytesReceived == 0 }

    /// Nothing shows that a kept connection, over which the request went, still works.
    var mayBeForgotten: Bool { mayRepeat && attempt.headSent > 0 && !attempt.isAcknowledged }

    var phase: Phase {
        let since = attempt.progressAt ?? attempt.startedAt
        if let slowSince { return .receiving(since: slowSince) }
        if attempt.headSent > 0 {
            return isFullyWritten && attempt.unacknowledged == 0
                ? .awaitingReply(since: since) : .sending(since: since)
        }
        if let handshakeAt = attempt.handshakeAt { return .handshaking(since: handshakeAt) }
        return attempt.openedAt.map { .connecting(since: $0) } ?? .lookingUp(since: attempt.startedAt)
    }

    /// What the kernel says about the connection.
    ///
    /// - Parameters:
    ///   - unacknowledged: bytes that the peer has not acknowledged.
    ///   - silence: since it has acknowledged any, in nanoseconds.
    ///   - clock: of the kernel, in nanoseconds.
    mutating func looked(unacknowledged: Int, silence: Int64, clock: Int64) {
        invariant(bytesSent >= 0 && bytesReceived >= 0, "\(bytesSent) bytes sent, \(bytesReceived) received")
        invariant(attempt.headSent >= 0 && attempt.bodySent >= 0, "negative parts of a request")
        invariant(repeats >= 0 && connectionsOpened >= 0, "negative counts")
        guard !attempt.isTaken else { return }
        attempt.unacknowledged = unacknowledged
        attempt.isTaken = isFullyWritten && unacknowledged == 0
        let since = clock - attempt.writtenNs - silence
        guard let progressAt = attempt.progressAt, since >= 0 else { return }
        attempt.isAcknowledged = true
        attempt.progressAt = progressAt.advanced(byNanoseconds: since)
        attempt.writtenNs += since
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
        attempt.openedAt = attempt.openedAt ?? now
        connectionsOpened += 1
    }

    /// - Parameter clock: of the kernel, in nanoseconds.
    mutating func moved(_ kind: curl_infotype, _ count: Int, at now: EventTime, clock: Int64) {
        switch kind {
        case CURLINFO_HEADER_OUT, CURLINFO_DATA_OUT:
            if kind == CURLINFO_HEADER_OUT { attempt.headSent += count } else { attempt.bodySent += count }
            bytesSent += count
            (attempt.progressAt, attempt.writtenNs) = (now, clock)
        case CURLINFO_HEADER_IN, CURLINFO_DATA_IN:
            bytesReceived += count
            let earned = Int64(count) * 1_000_000_000 / Self.answerBytesInSecond
            slowSince = slowSince.map { min(now, $0.advanced(byNanoseconds: earned)) } ?? now
        // libcurl's own connect time is set only when the handshake is over as well.
        case CURLINFO_SSL_DATA_OUT where attempt.handshakeAt == nil: attempt.handshakeAt = now
        default: break
        }
    }
}
