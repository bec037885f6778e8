import WaypostCore
import WaypostTracking

/// The channel of one trackable, on whatever connection there is.
struct TrackedChannel: Sendable {
    private enum Phase {
        /// Leaves to `attaching` when the connection is there.
        case waiting
        /// Leaves to `attached`, or without an answer to `suspended`.
        case attaching(until: EventTime)
        /// The token permits too little: leaves to `attaching` with another.
        case awaitingToken
        /// Leaves to `attaching` when the service ends it or the connection was lost.
        case attached
        /// Leaves to `attaching`; nil = when the connection is there.
        case suspended(until: EventTime?)
        /// Leaves to the end, or to `returning`.
        case detaching(until: EventTime)
        /// The trackable was added again while it was detaching: leaves to `attaching` with the answer to that, or without one.
        case returning(until: EventTime)
        /// Leaves to `awaitingToken`; nil = when a person has mended something.
        case failed(until: EventTime?)
    }

    static let answerLimit = Duration.seconds(10)
    /// Until another token is asked for, where the last one was not enough.
    private static let tokenPause = Duration.seconds(900)
    /// Of members that were warned about.
    private static let warnedMax = 20

    let trackable: String
    private var phase = Phase.waiting
    private(set) var error: ChannelError?
    /// Up to where we have the channel.
    private var serial: String?
    /// Attachings in a row that failed.
    private var failures = 0
    private var hasRenewed = false
    /// A service may detach a channel without end.
    private var reattachments = TokenBucket(burst: 3, refill: .seconds(20))
    private var own: OwnPresence
    private var viewers: Viewers
    /// What the pages of the synchronization have in common.
    private var sequence: Substring?
    private var hearsPresence = true
    /// Reports of members beyond those that are counted.
    private(set) var ignoredMembers = 0
    private var hasIgnored = false
    private var hasPublished = false
    private var warned: Set<ChannelClient.Warning> = []
    private var announcedState = ChannelState.initialized
    private var announced = TrackableState.offline

    init(trackable: String, presence: PublisherPresence) {
        self.trackable = trackable
        own = OwnPresence(presence)
        viewers = Viewers(trackable: trackable)
    }

    static func name(of trackable: String) -> String { "tracking:\(trackable)" }

    var name: String { Self.name(of: trackable) }

    /// Members are being ignored, since there are too many.
    var isCrowded: Bool { hasIgnored && viewers.map.isFull }

    var state: ChannelState {
        switch phase {
        case .waiting, .attaching, .awaitingToken: .attaching
        case .attached: .attached
        case .suspended: .suspended
        case .detaching, .returning: .detaching
        case .failed: .failed
        }
    }

    /// Messages need no attaching, but a channel that the service keeps away takes none.
    var takesMessages: Bool {
        switch phase {
        case .waiting, .attaching, .attached: true
        case .awaitingToken, .suspended, .detaching, .returning, .failed: false
        }
    }

    /// While there is a connection.
    func nextDeadline(_ line: ChannelLine) -> EventTime? {
        switch phase {
        case .attaching(let until), .detaching(let until), .returning(let until): until
        case .suspended(let until), .failed(let until): until
        case .attached: line.hasRoom ? own.due.map { max($0, line.nextTurn) } : nil
        case .waiting, .awaitingToken: nil
        }
    }
}

// What its owner wants.
extension TrackedChannel {
    /// Where the channel was being left, the trackable was added again.
    mutating func presenceChanged(_ presence: PublisherPresence, _ line: inout ChannelLine, at now: EventTime) {
        own.wanted = presence
        // The answer to DETACH comes first, and attaches it.
        if case .detaching = phase { phase = .returning(until: now + Self.answerLimit) }
        speak(&line, at: now)
    }

    mutating func attach(_ line: inout ChannelLine, at now: EventTime) {
        phase = .attaching(until: now + Self.answerLimit)
        line.send(.attach(channel: name, serial: serial))
    }

    var isLeaving: Bool { if case .detaching = phase { true } else { false } }

    /// Viewers see us leave.
    mutating func sayGoodbye(_ line: inout ChannelLine, at now: EventTime) {
        guard case .attached = phase, own.hasEntered else { return }
        line.send(.presence(.leave, id: nil, data: own.wanted.data), of: trackable, at: now)
        own.detached()
    }

    mutating func detach(_ line: inout ChannelLine, at now: EventTime) {
        sayGoodbye(&line, at: now)
        line.send(.detach(channel: name))
        phase = .detaching(until: now + Self.answerLimit)
    }

    /// It is no trackable any more.
    mutating func removed(_ line: inout ChannelLine) {
        viewers.removeAll()
        report(&line)
        line.report(.channelChanged(trackable: trackable, .detached, nil))
        if announced != .offline { line.report(.trackableChanged(trackable, .offline, nil)) }
    }

    /// A person has mended something.
    mutating func retry() {
        hasRenewed = false
        if case .failed = phase { phase = .waiting }
    }

    mutating func published() { hasPublished = true }
}

// What happens to the connection.
extension TrackedChannel {
    mutating func connected(isResumed: Bool, _ line: inout ChannelLine, at now: EventTime) {
        if case .failed = phase { return }
        if !isResumed { own.forgetUnanswered() }
        attach(&line, at: now)
    }

    /// There is another token.
    mutating func authorized(_ line: inout ChannelLine, at now: EventTime) {
        switch phase {
        case .awaitingToken, .waiting: attach(&line, at: now)
        default: break
        }
    }

    /// There is no other token for now.
    mutating func lackToken(_ error: ChannelError, at now: EventTime) {
        if isAwaitingToken { fail(error, until: now + Self.tokenPause) }
    }

    var isAwaitingToken: Bool { if case .awaitingToken = phase { true } else { false } }

    mutating func connectionLost() {
        switch phase {
        case .attaching, .attached, .awaitingToken, .returning: phase = .waiting
        case .suspended: phase = .suspended(until: nil)
        case .waiting, .detaching, .failed: break
        }
    }

    mutating func connectionSuspended() {
        if case .failed = phase { return }
        phase = .suspended(until: nil)
        serial = nil
        own.detached()
        viewers.forget()
    }
}

// What the service says of the channel.
extension TrackedChannel {
    mutating func received(_ frame: ServerFrame, _ line: inout ChannelLine, jitter: Double, at now: EventTime) {
        switch frame.action {
        case .attached: attached(frame, &line, at: now)
        case .detached: detached(frame, &line, jitter: jitter, at: now)
        case .error: refused(frame.error ?? .unanswered, at: now)
        case .presence, .synchronization: told(frame, &line)
        default: break
        }
        if frame.action != .synchronization, frame.action != .detached, let serial = frame.channelSerial,
            state == .attached
        {
            self.serial = serial
        }
        speak(&line, at: now)
    }

    private mutating func attached(_ frame: ServerFrame, _ line: inout ChannelLine, at now: EventTime) {
        let wasAttached = state == .attached
        switch phase {
        case .detaching, .failed: return
        default: phase = .attached
        }
        error = frame.error
        failures = 0
        hasRenewed = false
        hearsPresence = !frame.has(ServerFrame.modes) || frame.has(ServerFrame.presenceSubscribe)
        own.attached(
            isContinued: wasAttached && frame.has(ServerFrame.isResumed), connectionID: line.connectionID, at: now)
        sequence = nil
        viewers.attached(hasPresence: frame.has(ServerFrame.hasPresence))
    }

    private mutating func detached(
        _ frame: ServerFrame, _ line: inout ChannelLine, jitter: Double, at now: EventTime
    ) {
        own.detached()
        serial = nil
        error = frame.error
        switch phase {
        case .attached:
            viewers.removeAll()
            if let wait = reattachments.take(at: now) {
                phase = .suspended(until: now + wait)
            } else {
                attach(&line, at: now)
            }
        case .attaching: suspend(jitter: jitter, at: now)
        case .returning: attach(&line, at: now)
        case .waiting, .awaitingToken, .suspended, .detaching, .failed: break
        }
    }

    private mutating func refused(_ error: ChannelError, at now: EventTime) {
        if error.isOfCapability || error.isOfCredential, !hasRenewed {
            hasRenewed = true
            phase = .awaitingToken
            self.error = error
        } else {
            fail(error, at: now)
        }
    }

    mutating func fail(_ error: ChannelError, at now: EventTime) {
        fail(error, until: error.isOfCapability || error.isOfCredential ? now + Self.tokenPause : nil)
    }

    private mutating func fail(_ error: ChannelError, until: EventTime?) {
        self.error = error
        phase = .failed(until: until)
        serial = nil
        own.detached()
        viewers.removeAll()
    }

    private mutating func suspend(jitter: Double, at now: EventTime) {
        failures += 1
        serial = nil
        own.detached()
        phase = .suspended(until: now + AttemptPause.after(failures: failures, jitter: jitter))
    }

    private mutating func told(_ frame: ServerFrame, _ line: inout ChannelLine) {
        guard state == .attached else { return }
        let isSynchronization = frame.action == .synchronization
        if isSynchronization { beginPage(frame) }
        line.ignoredItems += frame.unreadItems
        for item in frame.presence { take(item, &line) }
        if isSynchronization, frame.endsSynchronization {
            viewers.synchronizationEnded()
            sequence = nil
        }
    }

    /// Who is there, as the answer to a request says.
    mutating func polled(_ items: [PresenceItem], unreadItems: Int, _ line: inout ChannelLine) {
        viewers.attached(hasPresence: true)
        line.ignoredItems += unreadItems
        for item in items { take(item, &line) }
        viewers.synchronizationEnded()
    }

    private mutating func beginPage(_ frame: ServerFrame) {
        let sequence = frame.channelSerial?.prefix { $0 != ":" }
        if !viewers.map.isSynchronizing || (self.sequence != nil && self.sequence != sequence) {
            viewers.attached(hasPresence: true)
        }
        self.sequence = sequence
    }

    private mutating func take(_ item: PresenceItem, _ line: inout ChannelLine) {
        let isOwnName = item.clientID == line.clientID
        if isOwnName, item.connectionID == line.connectionID { return own.named(item) }
        switch item.data {
        case .publisher:
            // Under our name it is what an earlier connection of ours left behind, unless it speaks.
            let speaks = item.action == .enter || item.action == .update
            if speaks || (!isOwnName && !item.action.isLeaving) {
                warn(.secondPublisher(clientID: item.clientID.visible(bytesMax: 100)), &line)
            }
        case .subscriber(_, isMalformed: true):
            warn(.malformedRequest(member: item.memberKey.visible(bytesMax: 100)), &line)
        case .subscriber: break
        case nil: if !item.action.isLeaving { line.ignoredItems += 1 }
        }
        if !viewers.received(item) {
            ignoredMembers += 1
            hasIgnored = true
        } else if !viewers.map.isFull {
            hasIgnored = false
        }
    }

    private mutating func warn(_ warning: ChannelClient.Warning, _ line: inout ChannelLine) {
        guard warned.count < Self.warnedMax, warned.insert(warning).inserted else { return }
        line.report(.warned(trackable: trackable, warning))
    }
}

// Time, answers, and what it says itself.
extension TrackedChannel {
    /// - Returns: whether it is gone.
    mutating func deadlineReached(_ line: inout ChannelLine, jitter: Double, at now: EventTime) -> Bool {
        switch phase {
        case .attaching(let until) where until <= now:
            error = .unanswered
            suspend(jitter: jitter, at: now)
        case .suspended(let until): if let until, until <= now { attach(&line, at: now) }
        case .detaching(let until): return until <= now
        case .returning(let until) where until <= now: attach(&line, at: now)
        case .attached: speak(&line, at: now)
        case .failed(let until): if let until, until <= now { phase = .awaitingToken }
        case .attaching, .returning, .waiting, .awaitingToken: break
        }
        return false
    }

    /// Enters, or tells what has changed.
    private mutating func speak(_ line: inout ChannelLine, at now: EventTime) {
        guard case .attached = phase, line.nextTurn <= now, line.hasRoom,
            let order = own.order(connectionID: line.connectionID, at: now)
        else { return }
        let serial = line.send(
            .presence(order.action, id: order.id, data: own.wanted.data), of: trackable, at: now)
        own.said(serial: serial, at: now)
    }

    mutating func acknowledgedPresence(_ serial: Int64, _ line: inout ChannelLine, at now: EventTime) {
        own.acknowledged(serial)
        speak(&line, at: now)
    }

    mutating func refusedPresence(
        _ serial: Int64, _ error: ChannelError, _ line: inout ChannelLine, at now: EventTime
    ) {
        if error.isOfCapability || error.isOfCredential { return refused(error, at: now) }
        if own.refused(serial, error, at: now) { warn(.presenceRefused(error), &line) }
    }

    /// What has changed since the last call.
    mutating func report(_ line: inout ChannelLine) {
        for change in viewers.takeChanges() { line.report(.subscriberChanged(change)) }
    }

    /// - Parameter isByRequests: messages arrive although there is no connection.
    mutating func announce(
        _ connection: ChannelLink, _ failure: ChannelError?, isByRequests: Bool, _ line: inout ChannelLine
    ) {
        report(&line)
        if state != announcedState {
            announcedState = state
            line.report(.channelChanged(trackable: trackable, state, error))
        }
        let trackableState =
            isByRequests && hasPublished && state != .failed
            ? .publishing
            : TrackableState(
                connection: connection, channel: state.link, isShown: hasPublished && own.isEntered,
                isSubscribed: hearsPresence)
        guard trackableState != announced else { return }
        announced = trackableState
        line.report(.trackableChanged(trackable, trackableState, failure ?? error))
    }
}
