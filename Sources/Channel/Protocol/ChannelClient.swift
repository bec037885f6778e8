import WaypostCore

/// The publisher's side of the channels on which viewers watch trackables: Ably's realtime protocol, as far as Asset
/// Tracking uses it, in JSON over one WebSocket that somebody else carries.
///
/// How it is driven. Its owner attaches trackables, which opens the connection, and performs the effects that each call
/// returns, in their order. For `openTransport` it opens a WebSocket to `host` with `target`, hands each text message to
/// `received`, and calls `transportLost` once when it could not be opened or has ended otherwise than by
/// `closeTransport`; it sets no limit of its own for opening. It calls `deadlineReached` at `nextDeadline`. For
/// `renewCredential` it reads the credential again.
///
/// While the connection is suspended, it tries single requests (`request`, whose fate is `answered`).
///
/// Locations come from a `LocationFeed` for each trackable: what its `next` gives is published; `settled` is told to the
/// feed, and so is a `Refusal` (as `unsent`); a `subscriberChanged` that adds one is told to it (`viewerArrived`) and to
/// the tracker; a `channelChanged` or `connectionChanged` is a reason to ask `next` again. No queue is in here: what is
/// not answered when the connection is gone for good is `unanswered`, and its location rides along with a later message.
package struct ChannelClient: Sendable {
    /// The service has as many on one connection.
    package static let trackablesMax = 200

    private var connection: ChannelConnection
    private var route: RequestRoute
    private var line: ChannelLine
    private var channels: [TrackedChannel] = []
    private var announced = ConnectionState.initialized
    private var announcedRoute = false
    /// Messages that wait for another token.
    private var held: [UnansweredFrames.Entry] = []

    /// Frames that could not be read, or were too large.
    package private(set) var unreadFrames = 0
    /// One of them over this connection was too large: it may have named viewers.
    private var hasSkippedFrame = false

    /// - Parameter credential: nil = it is asked for before the first connection.
    package init(_ settings: Settings, credential: ChannelCredential?) {
        connection = ChannelConnection(settings, credential: credential)
        route = RequestRoute(settings)
        line = ChannelLine(clientID: settings.clientID)
    }

    package var state: ConnectionState { connection.state }

    /// Messages can be published: over the connection, or by requests.
    package var takesMessages: Bool { state == .connected || route.isOpen }

    /// Whether those of a trackable can. That they can again comes as `channelChanged`, `connectionChanged` or `requestsArrive`.
    package func takesMessages(of trackable: String) -> Bool {
        guard takesMessages, let index = index(trackable) else { return false }
        return state == .connected ? channels[index].takesMessages : channels[index].state != .failed
    }

    /// Bytes of a message that the service takes.
    package var messageBytesMax: Int { connection.messageBytesMax }

    /// Items of presence that say nothing that we know.
    package var ignoredItems: Int { line.ignoredItems }

    /// Reports of members of a trackable beyond those that are counted.
    package var ignoredMembers: Int { channels.reduce(0) { $0 + $1.ignoredMembers } }

    /// What is wrong now.
    package var problems: [Problem] {
        var problems: [Problem] = []
        if let refused = connection.lastingRefusal {
            problems.append(
                refused.isMissing
                    ? .credentialMissing(refused.error, times: refused.count)
                    : .credentialRefused(refused.error, times: refused.count))
        }
        if let failure = connection.failure { problems.append(.failed(failure)) }
        // Messages that arrive by requests need no connection, and a credential is the nearer cause.
        if let missed = connection.lastingMiss, problems.isEmpty, !route.isOpen {
            problems.append(.unreachable(missed.words, times: missed.count))
        }
        if let short = connection.lastingShortness, problems.isEmpty {
            problems.append(.shortLived(short.words, times: short.count))
        }
        guard state == .connected else { return problems }
        if let trackable = line.overdue { problems.append(.unanswered(trackable: trackable)) }
        for channel in channels where channel.isCrowded {
            problems.append(.tooManyMembers(trackable: channel.trackable, ignored: channel.ignoredMembers))
        }
        if hasSkippedFrame { problems.append(.frameSkipped) }
        return problems
    }

    /// When `deadlineReached` is wanted; nil = never.
    package var nextDeadline: EventTime? {
        guard connection.state == .connected else {
            return [connection.nextDeadline, route.nextDeadline].compactMap { $0 }.min()
        }
        return (channels.map { $0.nextDeadline(line) } + [connection.nextDeadline, line.answerDeadline])
            .compactMap { $0 }.min()
    }

    private func index(_ trackable: String) -> Int? { channels.firstIndex { $0.trackable == trackable } }

    private mutating func finish(at now: EventTime) -> [Effect] {
        if let waiting = channels.first(where: { $0.isAwaitingToken }) {
            connection.askForCredential(because: waiting.error, &line, at: now)
        }
        if state == .suspended {
            let watched = channels.filter { $0.state != .failed }.map(\.trackable)
            route.poll(watched, connection.credentialInForce, &line, at: now)
        } else {
            for (message, trackable) in route.end() {
                line.report(.settled(trackable: trackable, message.name, id: message.id, .unanswered))
            }
        }
        if state != announced {
            announced = state
            line.report(.connectionChanged(state, connection.reason))
        }
        if route.isOpen != announcedRoute {
            announcedRoute = route.isOpen
            line.report(.requestsArrive(route.isOpen))
        }
        for index in channels.indices {
            channels[index].announce(state.link, connection.failure, isByRequests: route.isOpen, &line)
        }
        return line.takeEffects()
    }
}

// What its owner wants.
extension ChannelClient {
    /// Adds a trackable, or changes what viewers are told of one. The first one opens the connection.
    ///
    /// - Returns: nil when there are too many.
    package mutating func attach(_ trackable: String, _ presence: PublisherPresence, at now: EventTime) -> [Effect]? {
        if let index = index(trackable) {
            channels[index].presenceChanged(presence, &line, at: now)
            return finish(at: now)
        }
        guard channels.count < Self.trackablesMax else { return nil }
        var channel = TrackedChannel(trackable: trackable, presence: presence)
        if state == .connected { channel.attach(&line, at: now) }
        channels.append(channel)
        // One that failed is opened again by `retry`.
        if state != .failed { connection.open(&line, at: now) }
        return finish(at: now)
    }

    /// Takes a trackable away; the last one closes the connection. An unknown one is ignored.
    package mutating func leave(_ trackable: String, at now: EventTime) -> [Effect] {
        guard let index = index(trackable), !channels[index].isLeaving else { return [] }
        if channels.count(where: { !$0.isLeaving }) == 1 { return close(at: now) }
        if state == .connected, channels[index].state != .failed {
            channels[index].detach(&line, at: now)
        } else {
            remove(index)
        }
        return finish(at: now)
    }

    /// Takes all trackables away and says goodbye. The connection is then `closing`, and `closed` in ten seconds at most.
    package mutating func close(at now: EventTime) -> [Effect] {
        if state == .connected {
            for index in channels.indices { channels[index].sayGoodbye(&line, at: now) }
        }
        connection.close(&line, at: now)
        for index in channels.indices.reversed() { remove(index) }
        settleAll(line.restart() + takeHeld(), .unanswered)
        return finish(at: now)
    }

    /// Sends a message. One of each name may be unanswered for a trackable.
    package mutating func publish(
        _ message: ChannelMessage, of trackable: String, at now: EventTime
    ) throws(Refusal) -> [Effect] {
        guard let index = index(trackable) else { throw .unknownTrackable }
        guard state == .connected else { return try publishByRequest(message, of: trackable, index, at: now) }
        guard channels[index].takesMessages else { throw .channelAway }
        let isInFlight = (line.unanswered.all + held).contains { entry in
            guard case .message(let other) = entry.body else { return false }
            return entry.trackable == trackable && other.name == message.name
        }
        guard !isInFlight else { throw .inFlight }
        guard line.nextTurn <= now else { throw .tooMany }
        line.send(.message(message), of: trackable, at: now)
        return finish(at: now)
    }

    private mutating func publishByRequest(
        _ message: ChannelMessage, of trackable: String, _ index: Int, at now: EventTime
    ) throws(Refusal) -> [Effect] {
        guard route.isOpen, let credential = connection.credentialInForce else { throw .notConnected }
        guard channels[index].state != .failed else { throw .channelAway }
        guard !route.isCarrying(message.name, of: trackable) else { throw .inFlight }
        guard line.nextTurn <= now else { throw .tooMany }
        route.publish(message, of: trackable, credential, &line, at: now)
        return finish(at: now)
    }

    /// There is another credential: because of `renewCredential`, or because a person has changed it.
    package mutating func credentialRenewed(_ credential: ChannelCredential, at now: EventTime) -> [Effect] {
        apply(connection.credentialRenewed(credential, &line, at: now), at: now)
        return state == .failed ? retry(at: now) : finish(at: now)
    }

    /// - Parameters:
    ///   - words: why, for people.
    ///   - isTransient: whoever gives credentials could not be asked. Otherwise the next attempt waits for ever longer.
    ///   - jitter: 0 ≤ jitter < 1, as of all methods.
    package mutating func credentialUnavailable(
        _ words: String, isTransient: Bool, jitter: Double, at now: EventTime
    ) -> [Effect] {
        let changes = connection.credentialUnavailable(
            words, isTransient: isTransient, jitter: jitter, &line, at: now)
        apply(changes, at: now)
        return finish(at: now)
    }

    /// There is a way to the service again, after there was none: what waits for the next attempt need not wait.
    package mutating func networkReturned(at now: EventTime) -> [Effect] {
        connection.networkReturned(&line, at: now)
        return finish(at: now)
    }

    /// Tries again what has failed: a person has mended something.
    package mutating func retry(at now: EventTime) -> [Effect] {
        for index in channels.indices { channels[index].retry() }
        if state == .connected {
            for index in channels.indices { channels[index].authorized(&line, at: now) }
        } else if channels.isEmpty {
            connection.close(&line, at: now)
        } else {
            connection.open(&line, at: now)
        }
        return finish(at: now)
    }

    private mutating func remove(_ index: Int) {
        channels[index].removed(&line)
        channels.remove(at: index)
    }
}

// What happens to the transport.
extension ChannelClient {
    /// - Parameters:
    ///   - byServer: it had been open, and the other side closed it.
    ///   - words: why, for people.
    ///   - isRefused: the server has answered, and opens no WebSocket.
    package mutating func transportLost(
        byServer: Bool, because words: String = "the connection ended", isRefused: Bool = false, jitter: Double,
        at now: EventTime
    ) -> [Effect] {
        connection.missed(words, isRefused: isRefused, byServer: byServer, at: now)
        apply(connection.transportLost(byServer: byServer, jitter: jitter, &line, at: now), at: now)
        return finish(at: now)
    }

    package mutating func deadlineReached(jitter: Double, at now: EventTime) -> [Effect] {
        apply(connection.deadlineReached(jitter: jitter, &line, at: now), at: now)
        guard state == .connected else { return finish(at: now) }
        line.deadlineReached(at: now)
        for index in channels.indices.reversed()
        where channels[index].deadlineReached(&line, jitter: jitter, at: now) {
            remove(index)
        }
        return finish(at: now)
    }

    /// A message was longer than `Settings.frameBytesMax`.
    package mutating func skippedFrame(at now: EventTime) {
        connection.heard(at: now)
        unreadFrames += 1
        hasSkippedFrame = true
    }

    /// - Parameter text: a whole message.
    package mutating func received(_ text: String, jitter: Double, at now: EventTime) -> [Effect] {
        guard connection.hasTransport else { return [] }
        connection.heard(at: now)
        guard let frame = ServerFrame(text, bytesMax: Settings.frameBytesMax) else {
            unreadFrames += 1
            return []
        }
        if let changes = connection.received(frame, jitter: jitter, &line, at: now) {
            apply(changes, at: now)
        } else if frame.action == .acknowledgement || frame.action == .refusal {
            answered(frame, at: now)
        } else if let index = channels.firstIndex(where: { $0.name == frame.channel }) {
            received(frame, index, jitter: jitter, at: now)
        }
        return finish(at: now)
    }

    private mutating func received(_ frame: ServerFrame, _ index: Int, jitter: Double, at now: EventTime) {
        if channels[index].isLeaving, frame.action == .detached || frame.action == .error { return remove(index) }
        channels[index].received(frame, &line, jitter: jitter, at: now)
    }

    private mutating func apply(_ changes: [ChannelConnection.Change], at now: EventTime) {
        for change in changes {
            switch change {
            case .connected(let isResumed): connected(isResumed: isResumed, at: now)
            case .authorized:
                sendHeld(at: now)
                for index in channels.indices { channels[index].authorized(&line, at: now) }
            case .tokenMissing(let error):
                settleAll(takeHeld(), .refused(error))
                for index in channels.indices { channels[index].lackToken(error, at: now) }
            case .lost:
                // Nobody will answer that it is detached.
                removeLeaving()
                for index in channels.indices { channels[index].connectionLost() }
            case .suspended:
                settleAll(line.forgetUnanswered() + takeHeld(), .unanswered)
                for index in channels.indices { channels[index].connectionSuspended() }
            case .failed(let error):
                settleAll(line.restart() + takeHeld(), .refused(error))
                removeLeaving()
                for index in channels.indices { channels[index].fail(error, at: now) }
            // A trackable was added meanwhile.
            case .closed: if !channels.isEmpty { connection.open(&line, at: now) }
            }
        }
    }

    private mutating func removeLeaving() {
        for index in channels.indices.reversed() where channels[index].isLeaving { remove(index) }
    }

    private mutating func connected(isResumed: Bool, at now: EventTime) {
        hasSkippedFrame = false
        if !isResumed { settleAll(line.restart() + takeHeld(), .unanswered) }
        line.sendAgain(at: now)
        for index in channels.indices { channels[index].connected(isResumed: isResumed, &line, at: now) }
        sendHeld(at: now)
    }
}

// What becomes of requests.
extension ChannelClient {
    /// - Parameters:
    ///   - number: of the request.
    ///   - status: of HTTP; nil = there was no answer.
    ///   - body: of the answer, as far as `ServiceRequest.answerBytesMax`.
    package mutating func answered(
        _ number: Int, status: Int?, body: [UInt8], jitter: Double, at now: EventTime
    ) -> [Effect] {
        let wasOpen = route.isOpen
        guard let answer = route.answered(number, status: status, body, jitter: jitter) else { return [] }
        switch answer {
        case .present(let trackable, let items, let unread):
            connection.credentialWorksAway()
            if let index = index(trackable) { channels[index].polled(items, unreadItems: unread, &line) }
        case .unseen(let trackable, let error):
            if let index = index(trackable) { channels[index].connectionSuspended() }
            // A token that may only publish does that.
            if !error.isOfCapability { refused(trackable, error, jitter: jitter, at: now) }
        case .settled(let message, let trackable, let outcome):
            line.report(.settled(trackable: trackable, message.name, id: message.id, outcome))
            switch outcome {
            case .taken:
                connection.credentialWorksAway()
                if message.name == .enhanced, let index = index(trackable) { channels[index].published() }
            case .refused(let error): refused(trackable, error, jitter: jitter, at: now)
            case .unanswered: break
            }
        }
        // Whoever was there may be gone.
        if wasOpen, !route.isOpen { for index in channels.indices { channels[index].connectionSuspended() } }
        return finish(at: now)
    }

    private mutating func refused(_ trackable: String, _ error: ChannelError, jitter: Double, at now: EventTime) {
        if error.isOfCredential { connection.refusedWhileAway(error, jitter: jitter, &line, at: now) }
        if error.isOfCapability, let index = index(trackable) { channels[index].fail(error, at: now) }
    }
}

// What becomes of messages.
extension ChannelClient {
    private mutating func answered(_ frame: ServerFrame, at now: EventTime) {
        guard let serial = frame.serial else { return }
        let (passedOver, named) = line.answered(from: serial, count: frame.count)
        for entry in passedOver { refused(entry, .unanswered, at: now) }
        for entry in named {
            if frame.action == .acknowledgement {
                acknowledged(entry, at: now)
            } else {
                refused(entry, frame.error ?? .unanswered, at: now)
            }
        }
    }

    private mutating func acknowledged(_ entry: UnansweredFrames.Entry, at now: EventTime) {
        line.settle(entry, .taken)
        guard let index = index(entry.trackable) else { return }
        switch entry.body {
        case .message(let message): if message.name == .enhanced { channels[index].published() }
        case .presence: channels[index].acknowledgedPresence(entry.serial, &line, at: now)
        }
    }

    private mutating func refused(_ entry: UnansweredFrames.Entry, _ error: ChannelError, at now: EventTime) {
        let index = index(entry.trackable)
        switch entry.body {
        case .presence:
            if let index { channels[index].refusedPresence(entry.serial, error, &line, at: now) }
        case .message where index != nil && !entry.isAfterRenewal && (error.isOfCredential || error.isOfCapability):
            held.append(entry)
            connection.askForCredential(because: error, &line, at: now)
        case .message:
            line.settle(entry, .refused(error))
            if error.isOfCapability, let index { channels[index].fail(error, at: now) }
        }
    }

    private mutating func sendHeld(at now: EventTime) {
        for entry in takeHeld() { line.send(entry.body, of: entry.trackable, isAfterRenewal: true, at: now) }
    }

    private mutating func takeHeld() -> [UnansweredFrames.Entry] {
        defer { held = [] }
        return held
    }

    private mutating func settleAll(_ entries: [UnansweredFrames.Entry], _ outcome: Outcome) {
        for entry in entries { line.settle(entry, outcome) }
    }
}
