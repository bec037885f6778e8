import Delivery
import Protocols

// A broker in its mood: it answers each message, or the connection ends before.
extension SimulatedNetwork {
    func publish(
        _ request: BrokerRequest, _ mood: Mood, _ attempt: RequestOracle.Attempt, _ transfer: UplinkTransfer,
        timeout: Double, _ endpoint: WorldEndpoint, _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        let count = request.messages.count
        let soon = dice.between(0, 0.4)
        let name = endpoint.name
        if unheard.contains(name), request.subscriber == .required {
            oracle.published(allTo: name)
        }
        let completion = { [unowned self] (outcome: UplinkOutcome) in
            noteSubscriber(outcome, of: name)
            completion(outcome)
        }
        /// - Parameters:
        ///   - stored: messages that arrived although no answer to them does.
        ///   - isConnected: the connection was there when it failed.
        ///   - isAccepted: the broker had accepted the connection, so that messages were published.
        ///   - isAlone: messages went out one at a time.
        func answer(
            _ reasons: [MQTTReason?], ending: MQTTReason? = nil, failure: TransportFailure? = nil,
            stored: Set<Int> = [], isConnected: Bool = true, isAccepted: Bool = true, isAlone: Bool = false,
            after delay: Double
        ) {
            let reasons = published(reasons, request.subscriber)
            let good = Set(reasons.indices.filter { isSettled(reasons[$0], endpoint) })
            oracle.stored(attempt, but: Set(reasons.indices).subtracting(good.union(stored)))
            let open = reasons.count { $0 == nil }
            let unanswered: BrokerReply.Unanswered = open == 0 ? .nothing : open == 1 || isAlone ? .oneAlone : .several
            let result: UplinkOutcome.Result =
                if let failure, !isConnected { .failed(failure) } else {
                    .published(
                        BrokerReply(
                            reasons, ending: ending, failure: failure,
                            unanswered: failure == nil || !isAccepted ? .nothing : unanswered))
                }
            finish(
                result, attempt, transfer, after: delay, timeout: timeout, accepts: !good.isEmpty,
                but: Set(reasons.indices).subtracting(good), completion)
        }
        func all(_ reason: MQTTReason) -> [MQTTReason?] { [MQTTReason?](repeating: reason, count: count) }
        let none = [MQTTReason?](repeating: nil, count: count)
        /// Answered up to a message, and broken off there.
        func cut(_ failure: TransportFailure) {
            let answered = dice.below(count + 1)
            let arrived = answered + dice.below(count - answered + 1)
            answer(
                (0..<count).map { $0 < answered ? .success : nil }, failure: answered < count ? failure : nil,
                stored: Set(answered..<arrived), after: dice.between(0, timeout))
        }
        switch mood {
        case .good, .narrow: answer(all(.success), after: soon)
        case .slow(let seconds): answer(all(.success), after: dice.between(0, Double(seconds)))
        case .late: answer(all(.success), after: timeout * dice.between(0.9, 1.5))
        case .refused: answer(none, failure: .connect("refused"), isConnected: false, after: 0.02)
        case .noName, .unresolved:
            answer(none, failure: .resolve("no such host"), isConnected: false, after: mood == .noName ? 0.5 : 30)
        case .forgets: answer(none, failure: .timeout("no answer"), after: 30)
        case .lost: cut(.closedWithoutReply("closed"))
        case .broken: cut(.broken("a packet that is none"))
        case .interim:
            answer(none, failure: .connect("no CONNACK"), isConnected: false, after: dice.between(0, timeout))
        case .taken:
            // What the broker had confirmed by then has come before.
            let confirmed = dice.below(count + 1)
            answer(
                (0..<count).map { $0 < confirmed ? .success : nil }, ending: .sessionTakenOver,
                failure: .broken("taken"), after: soon)
        case .partial(let code, let share):
            let reason: MQTTReason = code == "busy" ? .quotaExceeded : code == "who" ? .notAuthorised : .badPayload
            answer((0..<count).map { _ in dice.chance(share) ? reason : .success }, after: soon)
        case .contradictory: answer(all(.noMatchingSubscribers), after: soon)
        case .stumble(let divisor, let stumble):
            let poisoned = Set(oracle.isPoisoned(attempt, divisor))
            let reason: MQTTReason =
                switch stumble {
                case .status(403): .notAuthorised
                case .status(404), .status(410), .status(501): .badTopic
                default: .unspecified
                }
            answer(attempt.rows.map { poisoned.contains($0) ? reason : .success }, after: soon)
        case .plainOnly: answer(all(.success), after: soon)
        case .poison(let divisor, let status):
            let poisoned = Set(oracle.isPoisoned(attempt, divisor))
            if status >= 500, let first = attempt.rows.firstIndex(where: poisoned.contains) {
                // Some say so by ending the connection.
                return answer(
                    (0..<count).map { $0 < first ? .success : nil }, ending: .packetTooLarge,
                    failure: .broken("too large"), isAlone: true, after: soon)
            }
            answer(attempt.rows.map { poisoned.contains($0) ? .badPayload : .success }, after: soon)
        case .status(let status, _):
            let reason = reason(for: status)
            if reason.meaning == .auth, dice.chance(0.5) {
                return answer(none, ending: reason, failure: .connect("refused"), isAccepted: false, after: soon)
            }
            answer(all(reason), after: soon)
        }
    }

    /// The answers to messages that are published at all: where no one subscribes, those in flight are the last.
    private func published(_ reasons: [MQTTReason?], _ subscriber: BrokerRequest.Subscriber) -> [MQTTReason?] {
        var last = reasons.count
        switch subscriber {
        case .optional: break
        case .required: if let unheard = reasons.firstIndex(of: .noMatchingSubscribers) { last = unheard + 20 }
        case .awaited: if reasons.first??.meaning != .accepted { last = 1 }
        }
        return reasons.enumerated().map { $0 < last ? $1 : nil }
    }

    private func noteSubscriber(_ outcome: UplinkOutcome, of name: String) {
        guard case .published(let reply) = outcome.result else { return }
        let said = reply.reasons.compactMap { $0 }
        // What was confirmed before the connection ended counts as well.
        guard reply.ending == nil else {
            if said.contains(.success) { unheard.remove(name) }
            return
        }
        if said.first == .noMatchingSubscribers || said.contains(.noMatchingSubscribers) && said.contains(.success) {
            unheard.insert(name)
        } else if said.contains(.success) {
            unheard.remove(name)
        }
    }

    /// A broker's word for what a server of HTTP would say.
    private func reason(for status: Int) -> MQTTReason {
        switch status {
        case 200...299: .success
        case 401, 402, 403, 407: .notAuthorised
        case 413, 414: .packetTooLarge
        case 400, 422: .badPayload
        case 404, 405, 406, 410, 411, 412, 415, 417, 501, 505: .badTopic
        case 429: .quotaExceeded
        case 409: .noMatchingSubscribers
        default: .serverUnavailable
        }
    }

    private func isSettled(_ reason: MQTTReason?, _ endpoint: WorldEndpoint) -> Bool {
        reason == .success || endpoint.isLatest && reason == .noMatchingSubscribers
    }
}
