import Delivery
import Live
import Positioning

/// A connection to a broker that is kept, and the requests that go over it, one after the other.
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

    private struct Request {
        var number: Int
        var broker: BrokerRequest
        /// One for each message.
        var reasons: [MQTTReason?]
        /// Messages that are written.
        var sent = 0
        /// Messages without an answer, in the order of sending.
        var inFlight: [(id: UInt16, place: Int)] = []
        var detail: String?
        let limit: Duration
        /// For the connection; while it is open the machine keeps the time of answers.
        var deadline: EventTime

        var isAnswered: Bool { !reasons.contains { $0 == nil } }
    }

    /// After a connection that ended for the subscriptions: once it may have been by chance.
    private static let firstPause = Duration.seconds(60)
    private static let laterPause = Duration.seconds(3600)

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
    private var requests: [Request] = []
    private var pace = MessagePace()
    private var delay = ReconnectDelay()
    private var takeover = TakeoverWatch()
    /// No attempt to connect before.
    private var notBefore = EventTime.zero
    /// The connection is wanted without requests as well.
    private var isKept = false
    private var commands: [Command] = []
    private var outcomes: [Outcome] = []
    private var news: [BrokerNews] = []

    /// - Parameter jitter: 0 ≤ jitter < 1, from the system's random source.
    init(_ session: BrokerSession, jitter: @escaping () -> Double) {
        self.session = session
        self.jitter = jitter
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

    /// Whether a message could be sent now were it not for the pace.
    private var paceDeadline: EventTime? {
        guard isConnected, let request = requests.first, request.sent < request.broker.messages.count,
            (client?.room ?? 0) > 0
        else { return nil }
        return pace.next(request.broker.rate)
    }

    private var subscribeDeadline: EventTime? {
        guard isConnected, case .none = subscription, requests.isEmpty, !session.subscriptions.isEmpty else {
            return nil
        }
        return subscribeFrom
    }

    private var isWanted: Bool { isKept || !requests.isEmpty }

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
        requests.append(
            Request(
                number: number, broker: broker, reasons: Array(repeating: nil, count: broker.messages.count),
                limit: limit, deadline: now + limit))
        isKept = session.staysOpen
        advance(at: now)
    }

    mutating func cancel(_ number: Int) { requests.removeAll { $0.number == number } }

    /// Our own link came back, or somebody waits. What is open may be dead, which shows when it does not answer.
    mutating func reconnect(at now: EventTime) {
        delay.linkChanged()
        notBefore = now
        advance(at: now)
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
        settings.keepAlive = UInt16(clamping: session.keepAlive.milliseconds / 1000)
        if let limit = requests.first?.limit { settings.answerLimit = limit }
        do throws(MQTTSetupError) {
            client = try MQTTClient(settings, at: now)
            state = .open
        } catch {
            stop(.broken(error.description), reason: .badClientID, detail: error.description, at: now)
        }
    }

    mutating func received(_ bytes: ArraySlice<UInt8>, at now: EventTime) {
        guard let events = client?.received(bytes, at: now) else { return }
        take(events, at: now)
        advance(at: now)
    }

    /// The connection could not be made, or has ended.
    mutating func lost(_ failure: TransportFailure, at now: EventTime) {
        let unansweredSince = client?.unansweredSince
        if let events = client?.connectionLost(at: now) {
            take(events, failure, unansweredSince: unansweredSince, at: now)
        } else if case .connecting = state {
            takeover.failed()
            stop(failure, reason: nil, detail: nil, at: now)
        }
        advance(at: now)
    }

    mutating func deadlineReached(at now: EventTime) {
        if let events = client?.deadlineReached(at: now) { take(events, at: now) }
        if !isConnected {
            for request in requests where request.deadline <= now {
                outcomes.append(
                    Outcome(number: request.number, result: .failed(.connect("no connection to the broker in time"))))
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
                delay.connected()
                takeover.connected(at: now)
                unsentBirths = session.births[...]
            case .settled(let id, let reason, let detail): settled(id, reason, detail)
            case .subscribed(_, let reasons):
                (subscription, subscriptionLosses) = (.answered, 0)
                let refused = zip(session.subscriptions, reasons).filter { $0.1.isError }
                news.append(.subscribed(refused: refused.map(\.0.filter)))
            // One that nobody asked for is for nobody.
            case .message(let message) where session.subscriptions.contains { $0.filter == message.topic }:
                news.append(.message(message))
            case .message, .unsubscribed: break
            case .ended(let ending, _):
                if case .asked = subscription {
                    endedBySubscribing(failure ?? ending.failure, at: now)
                } else {
                    let isTaken = takeover.ended(ending, unansweredSince: unansweredSince, at: now)
                    ended(ending, failure, isTaken: isTaken, at: now)
                }
            }
        }
    }

    private mutating func settled(_ id: UInt16, _ reason: MQTTReason, _ detail: String?) {
        // Others are births, and of a request that was given up.
        guard !requests.isEmpty, let index = requests[0].inFlight.firstIndex(where: { $0.id == id }) else { return }
        requests[0].reasons[requests[0].inFlight.remove(at: index).place] = reason
        if reason.isError { requests[0].detail = detail }
    }

    /// As AWS IoT does where a topic is not allowed. That says nothing about the rows, nor about another client.
    private mutating func endedBySubscribing(_ failure: TransportFailure, at now: EventTime) {
        subscriptionLosses += 1
        subscribeFrom = now + (subscriptionLosses == 1 ? Self.firstPause : Self.laterPause)
        if subscriptionLosses > 1 { news.append(.subscribed(refused: session.subscriptions.map(\.filter))) }
        stop(failure, reason: nil, detail: nil, at: now)
    }

    private mutating func ended(
        _ ending: MQTTClient.Ending, _ failure: TransportFailure?, isTaken: Bool, at now: EventTime
    ) {
        if isOtherVersionNext(after: ending) {
            close()
            notBefore = now
            return
        }
        let (reason, detail) = isTaken ? (.sessionTakenOver, nil) : ending.said
        stop(failure ?? ending.failure, reason: reason, detail: detail, at: now)
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
    private mutating func stop(
        _ failure: TransportFailure, reason: MQTTReason?, detail: String?, at now: EventTime
    ) {
        close()
        notBefore = now + delay.lost(jitter: jitter())
        switch reason?.meaning {
        case nil, .accepted, .retry, .slowDown: break
        // It would only be refused again: the next request tries it.
        default: isKept = false
        }
        for request in requests {
            let isDecided = reason.map { $0.meaning != .retry } == true || request.reasons.contains { $0 != nil }
            let reply = BrokerReply(
                request.reasons, ending: reason, failure: failure, detail: detail ?? request.detail)
            outcomes.append(
                Outcome(number: request.number, result: isDecided ? .published(reply) : .failed(failure)))
        }
        requests = []
    }

    private mutating func close() {
        flush()
        if case .resting = state {} else { commands.append(.close) }
        state = .resting
        client = nil
        isConnected = false
        subscription = .none
        for index in requests.indices { requests[index].inFlight = [] }
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
            do throws(MQTTRefusal) { _ = try client?.publish(birth, at: now) } catch .windowFull { break } catch {}
            unsentBirths = unsentBirths.dropFirst()
        }
        while !requests.isEmpty, unsentBirths.isEmpty {
            publishFirst(at: now)
            guard requests[0].isAnswered else { break }
            let done = requests.removeFirst()
            outcomes.append(
                Outcome(number: done.number, result: .published(BrokerReply(done.reasons, detail: done.detail))))
        }
        if let due = subscribeDeadline, due <= now, unsentBirths.isEmpty {
            do throws(MQTTRefusal) {
                _ = try client?.subscribe(session.subscriptions, at: now)
                subscription = .asked
            } catch {
                subscription = .answered
                news.append(.subscribed(refused: session.subscriptions.map(\.filter)))
            }
        }
    }

    private mutating func publishFirst(at now: EventTime) {
        while requests[0].sent < requests[0].broker.messages.count, (client?.room ?? 0) > 0,
            pace.next(requests[0].broker.rate).map({ $0 <= now }) ?? true
        {
            let place = requests[0].sent
            do throws(MQTTRefusal) {
                if let id = try client?.publish(requests[0].broker.messages[place], at: now) {
                    requests[0].inFlight.append((id, place))
                } else {
                    // Of QoS 0 nothing more is heard.
                    requests[0].reasons[place] = .success
                }
            } catch {
                guard let reason = error.reason else { return }
                requests[0].reasons[place] = reason
                requests[0].detail = error.words
            }
            requests[0].sent += 1
            pace.sent(requests[0].broker.rate, at: now)
        }
    }

    private mutating func flush() {
        guard let bytes = client?.takeOutput(), !bytes.isEmpty else { return }
        commands.append(.write(bytes))
    }
}

/// As many messages as may go out in a second leave together: one wake-up for all of them.
private struct MessagePace {
    private var second = EventTime.zero
    private var count = 0

    /// When the next message may go out; nil = at any time.
    func next(_ rate: Int?) -> EventTime? {
        guard let rate else { return nil }
        return count < rate ? .zero : second + .seconds(1)
    }

    mutating func sent(_ rate: Int?, at now: EventTime) {
        guard rate != nil else { return }
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

    fileprivate var failure: TransportFailure {
        switch self {
        case .refused(let reason, _): .connect("the broker refuses the connection: \(reason.words)")
        case .dismissed(let reason, _): .broken("the broker ended the connection: \(reason.words)")
        case .disconnected: .broken("the connection was ended")
        case .defect(let defect): .broken("the broker sent \(defect.words)")
        case .noAnswer(to: .connect): .timeout("no CONNACK of the broker in time")
        case .noAnswer: .timeout("no answer of the broker in time")
        case .lost: .closedWithoutReply("the broker closed the connection")
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
