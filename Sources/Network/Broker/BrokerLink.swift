import Protocols
import WaypostCore

/// A connection to a broker that is kept, and the requests that go over it. Several publish in turns, so that none waits for
/// the answers of another.
///
/// Its owner does what `takeCommands` says, reports what becomes of the connection, and hands on what `takeOutcomes`
/// returns. A request ends when the broker has answered all of its messages, or with the connection: nothing is published
/// again by itself.
struct BrokerLink {
    enum Command: Hashable {
        case connect
        case write([UInt8])
        /// After what was to be written.
        case close
    }

    struct Outcome: Hashable {
        var number: Int
        var result: UplinkOutcome.Result
    }

    private enum State {
        /// Leaves to `connecting` when somebody wants it and the time has come.
        case resting
        /// Leaves to `open` with `opened`, to `resting` with `lost`.
        case connecting
        /// Leaves to `resting` when either side ends it.
        case open
    }

    fileprivate struct Request {
        var number: Int
        var broker: BrokerRequest
        /// One for each message.
        var reasons: [MQTTReason?]
        /// Messages that are written.
        var sent = 0
        /// Messages without an answer, in the order of sending.
        var inFlight: [(id: UInt16, place: Int)] = []
        /// Nobody subscribes: the messages that are not written are not published.
        var isHeld = false
        /// Answered messages.
        var answered = 0
        var detail: String?
        let limit: Duration
        /// For the connection; while it is open the machine keeps the time of answers.
        var deadline: EventTime

        /// Nothing of it is waited for.
        var isOver: Bool { answered == reasons.count || isHeld && inFlight.isEmpty }

        /// The broker may have something of it.
        var hasBegun: Bool { !inFlight.isEmpty || answered > 0 }

        mutating func settle(_ place: Int, _ reason: MQTTReason, _ words: String?) {
            reasons[place] = reason
            answered += 1
            if reason.isError { detail = words }
            // Of several topics it is to be known which.
            if reason == .noMatchingSubscribers && broker.subscriber != .optional
                || reason == .notAuthorised && words == nil
            {
                detail = broker.messages[place].topic
            }
            switch broker.subscriber {
            case .optional: break
            case .required: if reason == .noMatchingSubscribers { isHeld = true }
            case .awaited where reason.publishMeaning == .accepted: broker.subscriber = .required
            case .awaited: isHeld = true
            }
        }
    }

    /// After a connection that ended for the subscriptions: once it may have been by chance.
    private static let firstPause = Duration.seconds(60)
    private static let laterPause = Duration.seconds(3600)
    /// Before the connection is made again that a single message has ended: whoever sends it again waits longer each time.
    private static let messagePause = Duration.seconds(4)
    /// Between waits that an event or a person may cut short.
    private static let cutPause = Duration.seconds(10)

    let session: BrokerSession
    private let jitter: () -> Double
    private var version = MQTTVersion.v5
    /// The broker has answered a CONNECT of this version, or refused the other.
    private var isVersionKnown = false
    private var state = State.resting
    private var client: MQTTClient?
    /// CONNACK has come.
    private var isConnected = false
    private var unsentBirths: ArraySlice<MQTTMessage> = []
    /// Those of the session that no broker has cleared yet.
    private var formerTopics: [String]
    /// Topics of those that are not answered, by packet id, and of those that were refused over this connection.
    private var openBirths: [UInt16: String] = [:]
    private var refusedBirths: [String] = []
    private enum Subscription {
        /// Leaves to `asked` once the rows that wait are out and the time has come.
        case none
        /// Leaves to `answered` with SUBACK, and to `none` with the connection.
        case asked
        /// Leaves to `none` with the connection.
        case answered
    }

    private var subscription = Subscription.none
    /// Connections in a row that ended instead of an answer to the subscriptions, and when they are asked for again.
    private var subscriptionLosses = 0
    private var subscribeFrom = EventTime.zero
    /// Whose turn it is comes first.
    private var requests: [Request] = []
    /// By the name of the sender.
    private var paces: [String: MessagePace] = [:]
    /// Names of those who have sent messages.
    private var senders: Set<String> = []
    /// Of all requests.
    private var owners: Set<String> = []
    /// Owners that had no request when the broker said that another client has this client id: they hear it with their next one,
    /// instead of ending the connection of that client in their turn.
    private var untold: Set<String> = []
    /// Senders whose messages the broker does not confirm, or ends connections over, while there are others.
    private var hindrances: [String: Hindrance] = [:]
    /// A connection was lost with messages unanswered: so many are published one at a time, to find one that is to blame.
    private var suspects = 0
    /// The only message of a request that was unanswered as the last connection was lost.
    private var lastSole: MQTTMessage?
    /// Why there is no connection; nil = there is one, or none was tried.
    private var lastFailure: TransportFailure?
    private var delay = ReconnectDelay()
    private var takeover = TakeoverWatch()
    private var keepAlive: KeepAliveWatch
    /// No attempt to connect before.
    private var notBefore = EventTime.zero
    /// That wait follows something that the broker said.
    private var waitsAfterAnswer = false
    /// It follows an attempt in which nothing came back from the broker: whoever sends something has waited by itself.
    private var waitsForNetwork = false
    /// When a wait was last cut short; nil = never.
    private var cutAt: EventTime?
    /// The connection is wanted without requests as well.
    private var isKept = false
    private var commands: [Command] = []
    private var outcomes: [Outcome] = []
    private var news: [BrokerNews] = []

    /// - Parameter jitter: 0 ≤ jitter < 1, from the system's random source.
    init(_ session: BrokerSession, jitter: @escaping () -> Double) {
        self.session = session
        self.jitter = jitter
        formerTopics = session.formerTopics
        keepAlive = KeepAliveWatch(session.keepAlive, learns: session.learnsKeepAlive)
    }

    /// nil = never.
    var nextDeadline: EventTime? {
        var deadlines: [EventTime?] = []
        switch state {
        case .resting: deadlines = [isWanted ? notBefore : nil, requests.map(\.deadline).min()]
        case .connecting: deadlines = [requests.map(\.deadline).min()]
        case .open: deadlines = [client?.nextDeadline, paceDeadline, subscribeDeadline]
        }
        return deadlines.compactMap { $0 }.min()
    }

    /// When a message that only its pace holds back may go out.
    private var paceDeadline: EventTime? {
        guard isConnected, unsentBirths.isEmpty else { return nil }
        return requests.compactMap { mayPublish($0) ? nextTurn(of: $0) : nil }.min()
    }

    private var subscribeDeadline: EventTime? {
        guard isConnected, case .none = subscription, requests.allSatisfy({ hindrance(of: $0) != nil }),
            !session.subscriptions.isEmpty
        else { return nil }
        return subscribeFrom
    }

    private var isWanted: Bool { isKept || !requests.isEmpty }

    /// Before it no connection is made, whoever sends something; nil = it is made as soon as somebody does, or there is one.
    var restsUntil: EventTime? {
        if case .resting = state, !waitsForNetwork { notBefore } else { nil }
    }

    /// Something waits to be taken.
    var hasReports: Bool { !outcomes.isEmpty || !news.isEmpty || !commands.isEmpty }

    /// What was to be written since the last time is one piece.
    mutating func takeCommands() -> [Command] {
        flush()
        defer { commands = [] }
        return commands
    }

    mutating func takeOutcomes() -> [Outcome] {
        defer { outcomes = [] }
        return outcomes
    }

    mutating func takeNews() -> [BrokerNews] {
        defer { news = [] }
        return news
    }
}

// What its owner wants.
extension BrokerLink {
    /// - Parameter limit: for the connection, and then for each answer.
    mutating func send(_ broker: BrokerRequest, number: Int, limit: Duration, at now: EventTime) {
        if untold.remove(broker.sender) != nil {
            let reasons = [MQTTReason?](repeating: nil, count: broker.messages.count)
            let failure = MQTTClient.Ending.dismissed(.sessionTakenOver, detail: nil).failure(isConnected: true)
            outcomes.append(
                Outcome(
                    number: number,
                    result: .published(BrokerReply(reasons, ending: .sessionTakenOver, failure: failure))))
            return
        }
        owners.insert(broker.sender)
        requests.append(
            Request(
                number: number, broker: broker, reasons: Array(repeating: nil, count: broker.messages.count),
                limit: limit, deadline: now + limit))
        if !broker.messages.isEmpty { senders.insert(broker.sender) }
        if waitsForNetwork { notBefore = min(notBefore, now) }
        isKept = session.staysOpen
        advance(at: now)
    }

    /// The others go on.
    mutating func cancel(_ number: Int, at now: EventTime) {
        requests.removeAll { $0.number == number }
        advance(at: now)
    }

    /// What is open may be dead, which shows when it does not answer.
    mutating func reconnect(_ cause: ReconnectCause, at now: EventTime) {
        if cause != .event { hindrances = [:] }
        let isWaiting = notBefore > now
        if isWaiting, waitsAfterAnswer, cause != .operatorFlush { return }
        switch cause {
        case .linkChanged: delay.linkChanged()
        case .event, .operatorFlush:
            guard isWaiting, cutAt.map({ now >= $0 + Self.cutPause }) ?? true else { return }
            cutAt = now
        }
        notBefore = now
        advance(at: now)
    }

    /// A connection for another session takes its place: the requests end with what was answered.
    mutating func replaced(at now: EventTime) {
        stop(.broken("the connection was replaced by one with another session"), unanswered: .max, at: now)
    }

    /// Leaves the broker for good, which publishes the will where there is one: nobody is here any more.
    mutating func end() {
        requests = []
        isKept = false
        if isConnected { _ = client?.disconnect(withWill: session.will != nil) }
        close()
    }
}

// What becomes of the connection.
extension BrokerLink {
    mutating func opened(at now: EventTime) {
        var settings = MQTTClient.Settings(clientID: session.clientID)
        settings.version = version
        settings.user = session.user
        settings.password = session.password.map { Array($0.utf8) }
        settings.will = session.will
        settings.keepAlive = UInt16(clamping: keepAlive.interval.milliseconds / 1000)
        if let limit = requests.map(\.limit).max() { settings.answerLimit = limit }
        do throws(MQTTSetupError) {
            client = try MQTTClient(settings, at: now)
            state = .open
        } catch {
            stop(.broken(error.description), said: .badClientID, detail: error.description, at: now)
        }
    }

    mutating func received(_ bytes: ArraySlice<UInt8>, at now: EventTime) {
        let unansweredSince = client?.unansweredSince
        guard let events = client?.received(bytes, at: now) else { return }
        take(events, unansweredSince: unansweredSince, at: now)
        advance(at: now)
    }

    /// The connection could not be made, or has ended.
    mutating func lost(_ failure: TransportFailure, at now: EventTime) {
        if case .moved = failure { return moved(failure, at: now) }
        let unansweredSince = client?.unansweredSince
        if isConnected, unansweredSince == nil, let silent = client?.lastPacketAt,
            keepAlive.lost(after: now.duration(since: silent))
        {
            news.append(.keepAliveShortened(keepAlive.interval, owners: owners.sorted()))
        }
        if let events = client?.connectionLost(at: now) {
            take(events, failure, unansweredSince: unansweredSince, at: now)
        } else if case .connecting = state {
            takeover.failed()
            stop(failure, at: now)
        }
        advance(at: now)
    }

    /// The connection went with its link, which says nothing about the broker, another client or a message: it is made again at
    /// once. What had not begun goes over the next one.
    private mutating func moved(_ failure: TransportFailure, at now: EventTime) {
        for request in requests where request.hasBegun {
            let result = request.result(failure, said: nil, nil, isAlone: false)
            outcomes.append(Outcome(number: request.number, result: result))
        }
        requests.removeAll(where: \.hasBegun)
        close()
        delay.linkChanged()
        hindrances = [:]
        (notBefore, waitsAfterAnswer) = (now, false)
        advance(at: now)
    }

    mutating func deadlineReached(at now: EventTime) {
        if let events = client?.deadlineReached(at: now) { take(events, at: now) }
        if !isConnected {
            let failure =
                lastFailure?.beforePublishing.adding("and no connection since")
                ?? suspecting(.connect("no connection to the broker in time"))
            for request in requests where request.deadline <= now {
                outcomes.append(Outcome(number: request.number, result: .failed(failure)))
            }
            requests.removeAll { $0.deadline <= now }
        }
        advance(at: now)
    }

    private mutating func take(
        _ events: [MQTTClient.Event], _ failure: TransportFailure? = nil, unansweredSince: EventTime? = nil,
        at now: EventTime
    ) {
        for event in events {
            switch event {
            case .connected:
                isConnected = true
                isVersionKnown = true
                lastFailure = nil
                news.append(.connected(owners: owners.sorted()))
                takeover.connected(at: now)
                if !takeover.isSuspected { delay.connected() }
                let clearing = formerTopics.map { MQTTMessage(topic: $0, payload: [], isRetained: true) }
                unsentBirths = clearing + session.births[...]
                (openBirths, refusedBirths) = ([:], [])
            case .settled(let id, let reason, let detail): settled(id, reason, detail)
            case .subscribed(_, let reasons):
                (subscription, subscriptionLosses) = (.answered, 0)
                let refused = zip(session.subscriptions, reasons).filter { $0.1.isError }
                news.append(.subscribed(refused: refused.map(\.0.filter)))
            // One that nobody asked for is for nobody.
            case .message(let message) where session.subscriptions.contains { $0.filter == message.topic }:
                news.append(.message(message))
            case .message, .unsubscribed: break
            case .ended(let ending, let unsettled):
                if case .asked = subscription, ending.meaning != .taken {
                    endedBySubscribing(failure ?? ending.failure(isConnected: isConnected), at: now)
                } else {
                    let sole = unsettled.count == 1 ? soleMessage : nil
                    let isRepeated = sole != nil && sole == lastSole
                    lastSole = sole
                    let isPrompt = unansweredSince.map { now < $0 + TakeoverWatch.answerLimit } == true
                    let culprit = culprit(of: ending, unsettled, isRepeated: isRepeated, isPrompt: isPrompt)
                    let isKnown = isRepeated || culprit.map { hindrances[$0.sender] != nil } == true
                    if let culprit { hindrances[culprit.sender, default: Hindrance()].happened(at: now) }
                    // Twice over the same message it is no other client.
                    if !isKnown { takeover.ended(ending, unansweredSince: unansweredSince, at: now) }
                    // One that has lasted: the next wait does not grow.
                    if isConnected, !takeover.isSuspected { delay.connected() }
                    let isOverMessage =
                        sole != nil && (isKnown || !takeover.isSuspected) && ending.mayBeOverMessage && isPrompt
                    ended(
                        ending, failure, unanswered: unsettled.count, isOverMessage: isOverMessage, culprit, at: now)
                }
            }
        }
    }

    private mutating func settled(_ id: UInt16, _ reason: MQTTReason, _ detail: String?) {
        for index in requests.indices {
            guard let place = requests[index].inFlight.firstIndex(where: { $0.id == id }) else { continue }
            requests[index].settle(requests[index].inFlight.remove(at: place).place, reason, detail)
            let sender = requests[index].broker.sender
            hindrances[sender] = nil
            for other in hindrances.keys { hindrances[other]?.isProven = true }
            suspects = max(0, suspects - 1)
            return
        }
        // Others are births, and of a request that was given up.
        guard let topic = openBirths.removeValue(forKey: id) else { return }
        if let place = formerTopics.firstIndex(of: topic) {
            // One that is refused stays with the broker: who may not write to it has not written to it.
            formerTopics.remove(at: place)
        } else if reason.isError {
            refusedBirths.append(topic)
        }
        reportBirths()
    }

    private mutating func reportBirths() {
        guard openBirths.isEmpty, unsentBirths.isEmpty else { return }
        news.append(.birthsAnswered(refused: refusedBirths, owners: owners.sorted()))
    }

    /// As AWS IoT does where a topic is not allowed. That says nothing about the rows, nor about another client.
    private mutating func endedBySubscribing(_ failure: TransportFailure, at now: EventTime) {
        subscriptionLosses += 1
        subscribeFrom = now + (subscriptionLosses == 1 ? Self.firstPause : Self.laterPause)
        if subscriptionLosses > 1 { news.append(.subscribed(refused: session.subscriptions.map(\.filter))) }
        stop(failure, unanswered: .max, at: now)
    }

    /// The only one of a request that is unanswered.
    private var soleMessage: MQTTMessage? {
        requests.lazy.compactMap { request in request.inFlight.first.map { request.broker.messages[$0.place] } }.first
    }

    /// Whose message has ended the connection, as far as that is known, where there are others that must not wait for it.
    ///
    /// - Parameters:
    ///   - isRepeated: the connection before has ended over the same message, which alone was unanswered.
    ///   - isPrompt: it ended soon after the message was sent.
    private func culprit(
        of ending: MQTTClient.Ending, _ unsettled: [UInt16], isRepeated: Bool, isPrompt: Bool
    ) -> (sender: String, topic: String)? {
        guard senders.count > 1 else { return nil }
        let request: Request?
        if case .noAnswer(to: .publish) = ending {
            request = requests.first { $0.inFlight.contains { $0.id == unsettled.first } }
        } else if ending.mayBeOverMessage, isPrompt {
            // A sender that was shown to hinder may have sent beside others.
            let known = requests.first { !$0.inFlight.isEmpty && hindrance(of: $0) != nil }
            request = known ?? (isRepeated ? requests.first { !$0.inFlight.isEmpty } : nil)
        } else {
            request = nil
        }
        return request.flatMap { request in
            request.inFlight.first.map { (request.broker.sender, request.broker.messages[$0.place].topic) }
        }
    }

    private func hindrance(of request: Request) -> Hindrance? {
        senders.count > 1 ? hindrances[request.broker.sender] : nil
    }

    private mutating func ended(
        _ ending: MQTTClient.Ending, _ failure: TransportFailure?, unanswered: Int, isOverMessage: Bool,
        _ culprit: (sender: String, topic: String)?, at now: EventTime
    ) {
        if isOtherVersionNext(after: ending) {
            close()
            notBefore = now
            return
        }
        let (reason, detail) = ending.said
        if let culprit { endOver(culprit, ending, at: now) }
        stop(
            suspecting(failure ?? ending.failure(isConnected: isConnected)), said: reason, detail: detail,
            unanswered: unanswered, isAnswer: ending.isAnswer, isOverMessage: isOverMessage || culprit != nil,
            culprit: culprit?.sender, at: now)
    }

    /// Ends the request of the sender over whose message the connection has ended, with words of its own.
    private mutating func endOver(
        _ culprit: (sender: String, topic: String), _ ending: MQTTClient.Ending, at now: EventTime
    ) {
        let cure =
            "it takes those of others over the same connection, so check its access rules and limits for this topic"
        let failure: TransportFailure =
            ending.mayBeOverMessage
            ? .closedWithoutReply("the broker closes the connection over messages on \(culprit.topic): \(cure)")
            : .timeout("the broker does not confirm messages on \(culprit.topic): \(cure)")
        let isAlone = requests.reduce(0) { $0 + $1.inFlight.count } == 1
        let (reason, detail) = ending.said
        for request in requests where request.broker.sender == culprit.sender {
            outcomes.append(
                Outcome(
                    number: request.number,
                    result: request.result(failure, said: reason, detail, isAlone: isAlone)))
        }
        requests.removeAll { $0.broker.sender == culprit.sender }
    }

    /// Whoever reads it may know of the other client.
    private func suspecting(_ failure: TransportFailure) -> TransportFailure {
        guard takeover.isSuspected else { return failure }
        return failure.adding(
            "after \(takeover.losses) losses in a row soon after connecting: perhaps another client has the client id "
                + session.clientID)
    }

    /// A broker that does not know MQTT 5 says so, or closes without a word as RabbitMQ 3.10 does. So does what stands before a
    /// broker that is away: when 3.1.1 gets no answer either, 5 is the next again.
    private mutating func isOtherVersionNext(after ending: MQTTClient.Ending) -> Bool {
        switch ending {
        case .refused(let reason, _):
            isVersionKnown = true
            guard reason.meaning == .version, version == .v5 else { return false }
        case .lost where !isVersionKnown:
            guard version == .v5 else {
                version = .v5
                return false
            }
        default: return false
        }
        version = .v3
        return true
    }

    /// The connection is over, and with it the requests.
    ///
    /// - Parameters:
    ///   - reason: an error that the broker said; nil = none.
    ///   - unanswered: publishes that the broker had not answered; more where it is known that none is to blame.
    ///   - isAnswer: the broker has said something.
    ///   - isOverMessage: a single message has probably ended it.
    ///   - culprit: whose message that was; what others have not begun goes over the next connection.
    private mutating func stop(
        _ failure: TransportFailure, said reason: MQTTReason? = nil, detail: String? = nil, unanswered: Int = 0,
        isAnswer: Bool = false, isOverMessage: Bool = false, culprit: String? = nil, at now: EventTime
    ) {
        lastFailure = failure
        if reason?.meaning == .taken { untold = owners.subtracting(requests.map(\.broker.sender)) }
        for request in requests where !request.inFlight.isEmpty && culprit == nil {
            suspects = max(suspects, request.reasons.count - request.answered)
        }
        let staying = culprit == nil ? [] : requests.filter { !$0.hasBegun }.map { $0.number }
        for request in requests where !staying.contains(request.number) {
            outcomes.append(
                Outcome(
                    number: request.number,
                    result: request.result(failure, said: reason, detail, isAlone: unanswered == 1)))
        }
        requests.removeAll { !staying.contains($0.number) }
        for index in requests.indices { requests[index].deadline = now + requests[index].limit }
        close()
        notBefore =
            now
            + (isOverMessage
                ? .nanoseconds(max(1, Int64(Double(Self.messagePause.nanoseconds) * (1 - jitter()))))
                : delay.lost(jitter: jitter()))
        waitsAfterAnswer = isAnswer || reason != nil
        waitsForNetwork = failure.isUnreached
        switch reason?.meaning {
        case nil, .accepted, .retry, .slowDown: break
        // It would only be refused again: the next request tries it.
        default: isKept = false
        }
    }

    private mutating func close() {
        flush()
        if case .resting = state {} else { commands.append(.close) }
        state = .resting
        client = nil
        isConnected = false
        subscription = .none
    }
}

// What goes out.
extension BrokerLink {
    private mutating func advance(at now: EventTime) {
        switch state {
        case .resting where isWanted && notBefore <= now:
            state = .connecting
            commands.append(.connect)
        case .open where isConnected: publish(at: now)
        case .resting, .connecting, .open: break
        }
    }

    private mutating func publish(at now: EventTime) {
        while let birth = unsentBirths.first {
            // A broker that does not take one takes rows all the same.
            do throws(MQTTRefusal) {
                if let id = try client?.publish(birth, at: now) { openBirths[id] = birth.topic }
            } catch .windowFull {
                break
            } catch {
                if !formerTopics.contains(birth.topic) { refusedBirths.append(birth.topic) }
            }
            unsentBirths = unsentBirths.dropFirst()
        }
        guard unsentBirths.isEmpty else { return }
        publishInTurns(at: now)
        if let due = subscribeDeadline, due <= now {
            do throws(MQTTRefusal) {
                _ = try client?.subscribe(session.subscriptions, at: now)
                subscription = .asked
            } catch {
                subscription = .answered
                news.append(.subscribed(refused: session.subscriptions.map(\.filter)))
            }
        }
    }

    /// Ends when no request may publish another message now.
    private mutating func publishInTurns(at now: EventTime) {
        var idle = 0
        while idle < requests.count {
            idle = publishFirst(at: now) ? 0 : idle + 1
            if requests[0].isOver {
                let done = requests.removeFirst()
                outcomes.append(
                    Outcome(number: done.number, result: .published(BrokerReply(done.reasons, detail: done.detail))))
                idle = 0
            } else if requests.count > 1 {
                requests.append(requests.removeFirst())
            }
        }
    }

    /// - Returns: whether the request whose turn it is had a message for now.
    private mutating func publishFirst(at now: EventTime) -> Bool {
        guard mayPublish(requests[0]), nextTurn(of: requests[0]).map({ $0 <= now }) ?? true else { return false }
        let place = requests[0].sent
        var message = requests[0].broker.messages[place]
        // What the broker keeps of the topic may be newer than a message that is only tried.
        if requests[0].broker.subscriber == .awaited { message.isRetained = false }
        do throws(MQTTRefusal) {
            if let id = try client?.publish(message, at: now) {
                requests[0].inFlight.append((id, place))
            } else {
                // Of QoS 0 nothing more is heard.
                requests[0].settle(place, .success, nil)
            }
        } catch {
            guard let reason = error.reason else { return false }
            requests[0].settle(place, reason, error.words)
        }
        requests[0].sent += 1
        if let rate = requests[0].broker.rate {
            paces[requests[0].broker.sender, default: MessagePace()].sent(rate, at: now)
        }
        return true
    }

    /// Whether it has another message that may go out, were it not for its pace.
    private func mayPublish(_ request: Request) -> Bool {
        guard let client, request.sent < request.reasons.count, !request.isHeld, client.room > 0 else { return false }
        if hindrance(of: request) != nil {
            return request.inFlight.isEmpty && !requests.contains { !$0.isOver && hindrance(of: $0) == nil }
        }
        if suspects > 0 { return client.unanswered == 0 }
        if request.inFlight.isEmpty { return true }
        // Each of the others finds room at once, as far as the broker allows as many.
        return request.broker.subscriber != .awaited && client.room > min(senders.count - 1, client.window - 1)
    }

    private func nextTurn(of request: Request) -> EventTime? {
        let paced = request.broker.rate.flatMap { paces[request.broker.sender]?.next($0) }
        return [paced, hindrance(of: request)?.until].compactMap { $0 }.max()
    }

    private mutating func flush() {
        guard let bytes = client?.takeOutput(), !bytes.isEmpty else { return }
        commands.append(.write(bytes))
    }
}

extension BrokerLink.Request {
    /// How it ends with its connection.
    ///
    /// - Parameter isAlone: the broker had not answered exactly one publish.
    fileprivate func result(
        _ failure: TransportFailure, said reason: MQTTReason?, _ detail: String?, isAlone: Bool
    ) -> UplinkOutcome.Result {
        let isTaken = reason?.meaning == .taken
        // One that wanted only a connection is over with that, and has none here.
        if isOver, !reasons.isEmpty, !isTaken { return .published(BrokerReply(reasons, detail: self.detail)) }
        guard hasBegun || reason.map({ $0.meaning != .retry }) == true else {
            return .failed(failure.beforePublishing)
        }
        return .published(
            BrokerReply(
                reasons, ending: reason, failure: failure,
                unanswered: inFlight.isEmpty ? .nothing : isAlone ? .oneAlone : .several,
                detail: detail ?? self.detail))
    }
}

extension TransportFailure {
    /// Nothing of a request was written, so that nothing of it can be the cause.
    fileprivate var beforePublishing: TransportFailure {
        switch self {
        case .timeout(let words), .closedWithoutReply(let words), .broken(let words): .connect(words)
        case .resolve, .connect, .unreachable, .moved, .tls, .clock, .credential: self
        }
    }
}

/// A sender has ended connections that others use as well, or kept them waiting: it publishes one message at a time, after
/// theirs.
private struct Hindrance {
    private var times = 0
    private var since = EventTime.zero
    /// The broker has answered another since: it is not the broker or the link as a whole.
    var isProven = false

    mutating func happened(at now: EventTime) {
        (times, since, isProven) = (min(times + 1, 5), now, false)
    }

    /// When it may publish again; nil = at any time. One minute at first, then twice as long up to 16 minutes.
    var until: EventTime? { isProven ? since + .seconds(60 << Int64(times - 1)) : nil }
}

/// As many messages as may go out in a second leave together: one wake-up for all of them.
private struct MessagePace {
    private var second = EventTime.zero
    private var count = 0

    /// When the next message may go out; nil = at any time.
    func next(_ rate: Int) -> EventTime? { count < rate ? nil : second + .seconds(1) }

    mutating func sent(_ rate: Int, at now: EventTime) {
        if now >= second + .seconds(1) { (second, count) = (now, 0) }
        count += 1
    }
}

extension MQTTClient.Ending {
    /// What the broker said; nil where it said nothing.
    fileprivate var said: (MQTTReason?, String?) {
        switch self {
        case .refused(let reason, let detail), .dismissed(let reason, let detail):
            // A farewell without an error is a restart.
            (reason.isError ? reason : nil, detail)
        case .disconnected, .defect, .noAnswer, .lost: (nil, nil)
        }
    }

    /// The broker has said something, if only that it stops.
    fileprivate var isAnswer: Bool {
        switch self {
        case .refused, .dismissed: true
        case .disconnected, .defect, .noAnswer, .lost: false
        }
    }

    /// Brokers end the connection over a message that they do not take, with a word or without.
    fileprivate var mayBeOverMessage: Bool {
        switch self {
        case .lost: true
        case .dismissed(let reason, _): reason.meaning == .bisect
        case .refused, .disconnected, .defect, .noAnswer: false
        }
    }

    /// - Parameter isConnected: after CONNACK.
    fileprivate func failure(isConnected: Bool) -> TransportFailure {
        switch self {
        case .refused(let reason, _): .connect("the broker refuses the connection: \(reason.words)")
        case .dismissed(let reason, _): .broken("the broker ended the connection: \(reason.words)")
        case .disconnected: .broken("the connection was ended")
        case .defect(let defect): .broken("the broker sent \(defect.words)")
        case .noAnswer(to: .connect): .timeout("no CONNACK of the broker in time")
        case .noAnswer: .timeout("no answer of the broker in time")
        case .lost:
            .closedWithoutReply(
                isConnected ? "the broker closed the connection" : "the broker closed the connection before CONNACK")
        }
    }
}

extension MQTTRefusal {
    /// As if the broker had said it; nil = not now.
    fileprivate var reason: MQTTReason? {
        switch self {
        case .notConnected, .windowFull: nil
        case .impossible: .badTopic
        case .tooLarge: .packetTooLarge
        case .qosUnsupported: MQTTReason(rawValue: 0x9B)
        case .retainUnsupported: MQTTReason(rawValue: 0x9A)
        }
    }

    fileprivate var words: String? {
        switch self {
        case .impossible(let words): words
        case .tooLarge(let bytes, let bytesMax): "\(bytes) bytes, of which the broker takes \(bytesMax)"
        case .notConnected, .windowFull, .qosUnsupported, .retainUnsupported: nil
        }
    }
}
