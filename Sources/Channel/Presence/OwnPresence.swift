import WaypostCore

/// Our own membership of a channel: entered after each attaching, brought up to date, one frame in flight at a time.
struct OwnPresence: Sendable {
    private struct Sent {
        var serial: Int64
        var presence: PublisherPresence
    }

    /// Between two frames of it.
    static let gap = Duration.seconds(1)
    static let retryAfter = Duration.seconds(15)

    /// What viewers should see.
    var wanted: PublisherPresence
    private var shown: PublisherPresence?
    private var inFlight: Sent?
    private var needsEntry = false
    private var notBefore = EventTime(nanoseconds: .min)
    /// A service may attach a channel without end.
    private var entries = TokenBucket(burst: 3, refill: .seconds(20))
    /// The service knows us as a member.
    private(set) var isEntered = false
    /// The member as the service named it, and the connection that it belongs to.
    private var member: (connectionID: String, id: String)?

    init(_ wanted: PublisherPresence) { self.wanted = wanted }

    var hasEntered: Bool { isEntered || inFlight != nil }

    /// - Parameters:
    ///   - isContinued: the service has kept the membership.
    ///   - connectionID: of the connection that we are on.
    mutating func attached(isContinued: Bool, connectionID: String?, at now: EventTime) {
        guard !isContinued || !hasEntered else { return }
        // On the same connection the service still shows us, and answers the frame in flight before the next one.
        isEntered = isEntered && member?.connectionID == connectionID
        needsEntry = true
        notBefore = now + (entries.take(at: now) ?? .zero)
    }

    mutating func detached() {
        isEntered = false
        inFlight = nil
        needsEntry = false
    }

    /// The frame in flight will never be answered.
    mutating func forgetUnanswered() {
        if inFlight != nil, !isEntered { needsEntry = true }
        inFlight = nil
    }

    /// When something is to be said; nil = nothing.
    var due: EventTime? {
        guard inFlight == nil, needsEntry || (isEntered && shown != wanted) else { return nil }
        return notBefore
    }

    /// - Returns: what is to be said now, with the id of the member that it confirms.
    func order(connectionID: String?, at now: EventTime) -> (action: PresenceAction, id: String?)? {
        guard let due, due <= now else { return nil }
        guard needsEntry else { return (.update, nil) }
        // Viewers take what has an id that they know for nothing new.
        let isConfirmed = member?.connectionID == connectionID && shown == wanted
        return (.enter, isConfirmed ? member?.id : nil)
    }

    mutating func said(serial: Int64, at now: EventTime) {
        inFlight = Sent(serial: serial, presence: wanted)
        needsEntry = false
        notBefore = now + Self.gap
    }

    mutating func acknowledged(_ serial: Int64) {
        guard let sent = inFlight, sent.serial == serial else { return }
        inFlight = nil
        // One that was sent before the channel was attached anew does not count.
        guard !needsEntry else { return }
        isEntered = true
        shown = sent.presence
    }

    /// - Returns: whether it is given up, until the channel attaches again.
    mutating func refused(_ serial: Int64, _ error: ChannelError, at now: EventTime) -> Bool {
        guard let sent = inFlight, sent.serial == serial else { return false }
        inFlight = nil
        notBefore = now + Self.retryAfter
        guard error.isFatal, !error.isOfCapability, !error.isOfCredential else {
            if !isEntered { needsEntry = true }
            return false
        }
        // An update that is refused would be refused again.
        shown = sent.presence
        return true
    }

    /// The service named our member.
    mutating func named(_ item: PresenceItem) {
        member = item.action.isLeaving ? nil : (item.connectionID, item.id)
    }
}
