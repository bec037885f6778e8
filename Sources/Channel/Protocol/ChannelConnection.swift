import WaypostCore

/// The connection to the service: opening, resuming, credentials and silence. It knows of no channel.
struct ChannelConnection: Sendable {
    /// What it means for the channels.
    enum Change: Hashable, Sendable {
        /// - Parameter isResumed: the service has kept our place.
        case connected(isResumed: Bool)
        /// There is another token.
        case authorized
        /// There is no other for now, although a channel needs one.
        case tokenMissing(ChannelError)
        case lost
        /// Whoever was there may be gone.
        case suspended
        case failed(ChannelError)
        case closed
    }

    private enum Phase {
        /// There is nothing to do.
        case idle
        /// The owner gets a credential: leaves to `connecting` or `waiting`.
        case renewing(until: EventTime)
        /// Leaves to `connected`, to `waiting`, or back to itself with another host.
        case connecting(until: EventTime)
        /// Leaves to `renewing`, `connecting` or `waiting` when it is lost, and to `closing`.
        case connected
        /// Leaves to `connecting`, or to `renewing` where the credential was refused.
        case waiting(until: EventTime)
        /// We said CLOSE: leaves to `idle`.
        case closing(until: EventTime)
        /// Leaves when the owner has mended something.
        case failed(ChannelError)
    }

    private static let answerLimit = Duration.seconds(10)
    private static let renewalLimit = Duration.seconds(60)

    private let settings: ChannelClient.Settings
    private var credential: ChannelCredential?
    /// Why the service does not take the credential; nil = it does, or was not asked yet.
    private var refusal: ChannelError?
    /// Credentials in a row that were refused or could not be had.
    private var refusals = 0
    /// Attempts in a row that brought no connection, and why the last of them did not.
    private var misses = (count: 0, words: "", isRefused: false)
    /// Connections in a row that the other side ended within a minute, and why the last one ended.
    private var shortLives = (count: 0, words: "")
    /// Why the last connection ended; nil = there is one, or there was none.
    private var lastEnd: ChannelError?
    private var phase = Phase.idle
    private var session = Session()
    private var outage = Outage()
    private var hosts: HostChoice
    private var hasBeenOpen = false
    /// What the service, or whoever gives credentials, said is wrong; nil = nothing.
    private var error: ChannelError?
    /// Why there is no connection; nil = there is one, or it is not known.
    var reason: ChannelError? { error ?? lastEnd }
    /// The owner gets a credential for a live connection; nil = it does not.
    private var renewingUntil: EventTime?
    /// A service may ask for another credential without end.
    private var renewals = TokenBucket(burst: 3, refill: .seconds(300))
    /// A credential for a live connection is wanted, and is asked for then.
    private var renewalDue: (at: EventTime, because: ChannelError?)?
    /// The answer to AUTH.
    private var authorizedUntil: EventTime?

    init(_ settings: ChannelClient.Settings, credential: ChannelCredential?) {
        self.settings = settings
        self.credential = credential
        hosts = HostChoice(primary: settings.host, fallbacks: settings.fallbackHosts)
    }

    var state: ConnectionState {
        switch phase {
        case .idle: hasBeenOpen ? .closed : .initialized
        case .connecting where !outage.isLong: .connecting
        case .connected: .connected
        case .renewing, .connecting, .waiting: outage.isLong ? .suspended : .disconnected
        case .closing: .closing
        case .failed: .failed
        }
    }

    /// Why it has failed; nil = it has not.
    var failure: ChannelError? { if case .failed(let error) = phase { error } else { nil } }

    var messageBytesMax: Int { session.messageBytesMax }

    /// For requests without a connection; nil = there is none, or none that the service takes.
    var credentialInForce: ChannelCredential? { refusal == nil ? credential : nil }

    /// More than one credential in a row was refused or could not be had: the last reason; nil = the service takes them.
    var lastingRefusal: (error: ChannelError, isMissing: Bool, count: Int)? {
        guard let error = refusal ?? error, refusals > 1, state != .connected else { return nil }
        return (error, refusal == nil, refusals)
    }

    /// Attempts that fail one after the other, or one that the server has answered with something else: the last reason. A single
    /// failure of a network is nothing to act on.
    var lastingMiss: (words: String, count: Int)? {
        guard misses.count > (misses.isRefused ? 0 : 1) else { return nil }
        return (misses.words, misses.count)
    }

    /// Connections end soon after they are made, one after the other: the last reason.
    var lastingShortness: (words: String, count: Int)? {
        shortLives.count > 2 ? (shortLives.words, shortLives.count) : nil
    }

    var hasTransport: Bool {
        switch phase {
        case .connecting, .connected, .closing: true
        case .idle, .renewing, .waiting, .failed: false
        }
    }

    var nextDeadline: EventTime? {
        switch phase {
        case .idle, .failed: nil
        case .closing(let until): until
        case .renewing(let until), .connecting(let until), .waiting(let until):
            suspendsAt.map { min($0, until) } ?? until
        case .connected:
            [session.idleDeadline, authorizedUntil, renewingUntil, renewalDue?.at].compactMap { $0 }.min()
        }
    }

    private var suspendsAt: EventTime? { outage.becomesLong(after: session.stateLifetime) }
}

// What its owner wants.
extension ChannelConnection {
    mutating func open(_ line: inout ChannelLine, at now: EventTime) {
        switch phase {
        case .idle, .failed: break
        case .renewing, .connecting, .connected, .waiting, .closing: return
        }
        outage.ended()
        outage.began(isFirst: true, at: now)
        error = nil
        hosts.restart()
        connect(&line, at: now)
    }

    /// There is a way to the service again: a wait for the next attempt ends.
    mutating func networkReturned(_ line: inout ChannelLine, at now: EventTime) {
        // A network does not make another credential.
        guard case .waiting = phase, refusal == nil else { return }
        hosts.restart()
        connect(&line, at: now)
    }

    /// Of a connection, what still waits to be sent goes out first.
    mutating func close(_ line: inout ChannelLine, at now: EventTime) {
        switch phase {
        case .connected:
            line.send(.close)
            forgetRenewals()
            phase = .closing(until: now + Self.answerLimit)
        case .connecting:
            line.report(.closeTransport)
            becomeIdle()
        case .renewing, .waiting, .failed: becomeIdle()
        case .idle, .closing: break
        }
    }

    mutating func credentialRenewed(
        _ credential: ChannelCredential, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        let wasRefused = refusal != nil
        (self.credential, refusal) = (credential, nil)
        switch phase {
        case .renewing: connect(&line, at: now)
        case .waiting where wasRefused: connect(&line, at: now)
        case .connected:
            renewingUntil = nil
            return authorize(&line, at: now)
        case .idle, .connecting, .waiting, .closing, .failed: break
        }
        return []
    }

    mutating func credentialUnavailable(
        _ words: String, isTransient: Bool, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        renewingUntil = nil
        let error = ChannelError.credentialMissing(words)
        switch phase {
        case .renewing:
            self.error = error
            if isTransient {
                retryLater(jitter: jitter, &line, at: now)
            } else {
                refusals += 1
                wait(AttemptPause.after(refusals: refusals, jitter: jitter), &line, at: now)
            }
            return []
        case .connected: return [.tokenMissing(error)]
        case .idle, .connecting, .waiting, .closing, .failed: return []
        }
    }

    /// A channel needs another token. The one that the service has not answered yet may do.
    mutating func askForCredential(because error: ChannelError?, _ line: inout ChannelLine, at now: EventTime) {
        guard renewingUntil == nil, authorizedUntil == nil, case .connected = phase else { return }
        if let wait = renewals.take(at: now) {
            renewalDue = (now + wait, error)
            return
        }
        renewalDue = nil
        renewingUntil = now + Self.renewalLimit
        line.report(.renewCredential(because: error))
    }

    /// A request was refused for its credential while there is no connection.
    mutating func refusedWhileAway(
        _ error: ChannelError, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) {
        // Other requests with the same credential are refused as well.
        guard refusal == nil else { return }
        switch phase {
        case .waiting: break
        case .connecting: line.report(.closeTransport)
        case .idle, .renewing, .connected, .closing, .failed: return
        }
        credentialRefused(error, jitter: jitter, &line, at: now)
    }

    /// The service takes the credential.
    mutating func credentialWorksAway() { refusals = 0 }

    /// The first refusal may be that of a credential that has expired. Another one waits, for ever longer: it may be the clock of
    /// this host that is wrong, or whoever makes credentials.
    private mutating func credentialRefused(
        _ error: ChannelError, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) {
        refusal = error
        refusals += 1
        if refusals == 1 {
            renew(because: error, &line, at: now)
        } else {
            self.error = error
            hosts.restart()
            wait(AttemptPause.after(refusals: refusals - 1, jitter: jitter), &line, at: now)
        }
    }

    private mutating func authorize(_ line: inout ChannelLine, at now: EventTime) -> [Change] {
        switch credential {
        case .token(let token):
            line.send(.authorize(token: token))
            authorizedUntil = now + Self.answerLimit
            return []
        case .key, nil:
            // There is no frame for a key: the next connection has it.
            line.report(.closeTransport)
            disconnected(at: now)
            connect(&line, at: now)
            return [.lost]
        }
    }
}

// Opening.
extension ChannelConnection {
    private mutating func connect(_ line: inout ChannelLine, at now: EventTime) {
        guard let credential, refusal == nil else { return renew(because: refusal, &line, at: now) }
        line.report(
            .openTransport(
                TransportRequest(settings, host: hosts.current, credential: credential, resuming: session.key)))
        phase = .connecting(until: now + Self.answerLimit)
    }

    private mutating func renew(because error: ChannelError?, _ line: inout ChannelLine, at now: EventTime) {
        self.error = error ?? self.error
        line.report(.renewCredential(because: error))
        phase = .renewing(until: now + Self.renewalLimit)
    }

    /// The transport is gone.
    ///
    /// - Parameter byServer: the service ended it, as it may have ended all.
    private mutating func ended(
        byServer: Bool, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        switch phase {
        case .connected:
            let isStable = session.isStable(at: now)
            // All would be sent again, without an answer.
            if line.unanswered.areTooMany || line.overdue != nil { session.forgetKey() }
            disconnected(at: now)
            if isStable {
                let spread = settings.firstReconnectSpread * max(0, min(jitter, 1))
                wait(byServer ? spread : .zero, &line, at: now)
            } else {
                retryLater(jitter: jitter, &line, at: now)
            }
            return [.lost]
        case .connecting:
            if hosts.failed(jitter: jitter) {
                connect(&line, at: now)
            } else {
                retryLater(jitter: jitter, &line, at: now)
            }
            return []
        case .closing:
            becomeIdle()
            return [.closed]
        case .idle, .renewing, .waiting, .failed: return []
        }
    }

    private mutating func disconnected(at now: EventTime) {
        if session.isStable(at: now) { refusals = 0 }
        outage.began(isFirst: session.isStable(at: now), at: now)
        forgetRenewals()
        hosts.restart()
    }

    private mutating func retryLater(jitter: Double, _ line: inout ChannelLine, at now: EventTime) {
        hosts.restart()
        wait(outage.attemptFailed(jitter: jitter), &line, at: now)
    }

    private mutating func wait(_ delay: Duration, _ line: inout ChannelLine, at now: EventTime) {
        if delay > .zero { phase = .waiting(until: now + delay) } else { connect(&line, at: now) }
    }

    private mutating func fail(_ error: ChannelError) -> [Change] {
        phase = .failed(error)
        self.error = error
        rest()
        return [.failed(error)]
    }

    private mutating func becomeIdle() {
        phase = .idle
        hasBeenOpen = true
        rest()
    }

    private mutating func rest() {
        outage.ended()
        session.forgetKey()
        (misses.count, shortLives.count, lastEnd) = (0, 0, nil)
        (refusal, refusals) = (nil, 0)
        forgetRenewals()
    }

    private mutating func forgetRenewals() {
        authorizedUntil = nil
        renewingUntil = nil
        renewalDue = nil
    }
}

// What happens to the transport.
extension ChannelConnection {
    /// The transport ends. Where that was no attempt to connect, it says nothing about attempts.
    ///
    /// - Parameter byServer: as of `transportLost`.
    mutating func missed(_ words: String, isRefused: Bool = false, byServer: Bool = false, at now: EventTime) {
        switch phase {
        case .connecting: misses = (min(misses.count + 1, 1_000_000), words, isRefused)
        case .connected:
            lastEnd = ChannelError(statusCode: 0, message: words)
            if session.isLasting(at: now) { shortLives.count = 0 }
            if byServer, !session.isLasting(at: now) { shortLives = (min(shortLives.count + 1, 1_000_000), words) }
        case .idle, .renewing, .waiting, .closing, .failed: break
        }
    }

    mutating func transportLost(
        byServer: Bool, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        ended(byServer: byServer, jitter: jitter, &line, at: now)
    }

    mutating func heard(at now: EventTime) {
        session.heard(at: now)
        if case .connected = phase, session.isLasting(at: now) { shortLives.count = 0 }
    }

    mutating func deadlineReached(jitter: Double, _ line: inout ChannelLine, at now: EventTime) -> [Change] {
        var changes: [Change] = []
        if isOpening, let suspendsAt, suspendsAt <= now {
            outage.becameLong()
            changes.append(.suspended)
        }
        switch phase {
        case .connecting(let until) where until <= now, .closing(let until) where until <= now:
            changes += drop(jitter: jitter, &line, at: now)
        case .waiting(let until) where until <= now: connect(&line, at: now)
        case .renewing(let until) where until <= now: changes += noCredential(jitter: jitter, &line, at: now)
        case .connected:
            if let renewingUntil, renewingUntil <= now { changes += noCredential(jitter: jitter, &line, at: now) }
            if let due = renewalDue, due.at <= now {
                renewalDue = nil
                askForCredential(because: due.because, &line, at: now)
            }
            let isOverdue = nextDeadline.map { $0 <= now } ?? false
            if isOverdue { changes += drop(jitter: jitter, &line, at: now) }
        case .idle, .renewing, .connecting, .waiting, .closing, .failed: break
        }
        return changes
    }

    private mutating func noCredential(
        jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        credentialUnavailable("there was none in time", isTransient: true, jitter: jitter, &line, at: now)
    }

    private var isOpening: Bool {
        switch phase {
        case .renewing, .connecting, .waiting: true
        case .idle, .connected, .closing, .failed: false
        }
    }

    private mutating func drop(jitter: Double, _ line: inout ChannelLine, at now: EventTime) -> [Change] {
        error = .unanswered
        missed("the service did not answer", at: now)
        line.report(.closeTransport)
        return ended(byServer: false, jitter: jitter, &line, at: now)
    }

    /// - Returns: nil when the frame is not about the connection.
    mutating func received(
        _ frame: ServerFrame, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change]? {
        if case .connecting = phase { misses.count = 0 }
        switch (phase, frame.action) {
        case (.closing, .closed), (.closing, .disconnected), (.closing, .error):
            line.report(.closeTransport)
            becomeIdle()
            return [.closed]
        case (.closing, _): return []
        case (.connected, .error) where frame.channel != nil: return nil
        case (_, .error) where frame.channel != nil: return []
        case (_, .disconnected), (_, .closed), (_, .error):
            return dismissed(frame, jitter: jitter, &line, at: now)
        case (.connecting, .connected): return connected(frame, &line, at: now)
        case (.connected, .connected):
            adopt(frame, &line)
            authorizedUntil = nil
            return [.authorized]
        case (.connected, .authorize):
            askForCredential(because: nil, &line, at: now)
            return []
        case (.connected, _): return nil
        default: return []
        }
    }

    /// The service ends the connection.
    private mutating func dismissed(
        _ frame: ServerFrame, jitter: Double, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        let error = frame.error ?? .unanswered
        self.error = frame.error
        line.report(.closeTransport)
        if frame.action == .closed { session.forgetKey() }
        if error.isOfCredential {
            let wasConnected = state == .connected
            if wasConnected { disconnected(at: now) }
            credentialRefused(error, jitter: jitter, &line, at: now)
            return wasConnected ? [.lost] : []
        }
        if frame.action == .error, error.isFatal { return fail(error) }
        return ended(byServer: true, jitter: jitter, &line, at: now)
    }

    private mutating func connected(
        _ frame: ServerFrame, _ line: inout ChannelLine, at now: EventTime
    ) -> [Change] {
        let isResumed = frame.connectionID != nil && frame.connectionID == line.connectionID
        line.connectionID = frame.connectionID
        adopt(frame, &line)
        session.opened(at: now)
        outage.ended()
        phase = .connected
        hasBeenOpen = true
        (error, lastEnd) = (frame.error, nil)
        return [.connected(isResumed: isResumed)]
    }

    private mutating func adopt(_ frame: ServerFrame, _ line: inout ChannelLine) {
        session.adopt(frame.details)
        if let clientID = frame.details?.clientID, clientID != "*", !clientID.isEmpty { line.clientID = clientID }
    }
}
