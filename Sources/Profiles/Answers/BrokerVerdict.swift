import Protocols

// What the answers of a broker mean, in the verdicts of HTTP: so one schedule serves both.
extension BrokerReply {
    /// The broker asks for fewer messages.
    private static let slowDownRest = Duration.seconds(10)

    /// - Parameters:
    ///   - rowsPerMessage: maximum rows of one message.
    ///   - needsSubscriber: a message that no one subscribes to is not settled.
    func verdict(of batch: Batch, rowsPerMessage: Int, needsSubscriber: Bool) -> Verdict {
        let meanings = reasons.map { reason in
            reason.map { !needsSubscriber && $0 == .noMatchingSubscribers ? MQTTMeaning.accepted : $0.publishMeaning }
        }
        let isTaken = ending?.meaning == .taken
        let accepted = meanings.count { $0 == .accepted }
        // What was acknowledged is settled, whatever ended the connection.
        if accepted > 0 {
            if accepted == meanings.count, !isTaken { return .accepted }
            return .partlyAccepted(items(meanings, of: batch, rowsPerMessage))
        }
        if isTaken { return .collision }
        if let said = reasons.compactMap({ $0 }).first { return Verdict(ofMessage: said) }
        guard let ending else { return failure == nil && meanings.isEmpty ? .accepted : lost }
        switch ending.meaning {
        case .auth, .slowDown, .misconfigured, .version: return Verdict(ofMessage: ending)
        case .accepted, .notConfirmed, .retry, .bisect, .taken: return lost
        }
    }

    private var lost: Verdict {
        let failure = failure ?? .broken("the connection ended without an answer")
        return switch unanswered {
        case .nothing: .retry(.transport(failure), after: nil)
        case .oneAlone: .retry(.lost(failure, isAlone: true), after: nil)
        case .several: .retry(.lost(failure, isAlone: false), after: nil)
        }
    }

    private func items(_ meanings: [MQTTMeaning?], of batch: Batch, _ rowsPerMessage: Int) -> ItemVerdicts {
        var items = ItemVerdicts()
        items.isTaken = ending?.meaning == .taken
        for (index, meaning) in meanings.enumerated() where meaning != .accepted {
            let start = min(index * rowsPerMessage, batch.rows.count)
            let rows = batch.rows[start..<min(start + rowsPerMessage, batch.rows.count)]
            items.again.formUnion(rows.map(\.seq))
            if meaning == .bisect { items.isRefused = true }
            if meaning == .auth { items.needsCredential = true }
            if meaning == .misconfigured { items.isMisconfigured = true }
            if meaning == .slowDown { items.after = Self.slowDownRest }
            if reasons[index] == .noMatchingSubscribers { items.lacksSubscriber = true }
        }
        return items
    }

    /// For people.
    package var words: String? {
        let said = reasons.compactMap { $0 }.first { $0.isError || $0 == .noMatchingSubscribers } ?? ending
        return said.map { $0.words + (detail.map { " (\($0.prefix(100)))" } ?? "") }
    }
}

extension Verdict {
    /// What a broker said of the first message that it did not accept, or instead of an answer to it.
    fileprivate init(ofMessage reason: MQTTReason) {
        let code = Int(reason.rawValue)
        switch reason.meaning {
        case .notConfirmed where reason == .noMatchingSubscribers: self = .retry(.noSubscriber, after: nil)
        // Another client can only end a connection, not a message.
        case .accepted, .retry, .notConfirmed, .slowDown, .taken: self = .retry(.reason(reason.rawValue), after: nil)
        case .auth: self = .authStop(status: code)
        case .misconfigured, .version: self = .misconfigured(status: code)
        case .bisect: self = reason == .packetTooLarge ? .tooLarge(status: code, after: nil) : .split(status: code)
        }
    }

    /// `status 404`, or the reason of a broker: HTTP has no final status below 200.
    package static func words(ofStatus status: Int) -> String {
        guard status < 200, let code = UInt8(exactly: status) else { return "status \(status)" }
        let reason = MQTTReason(rawValue: code)
        return "\(reason.code): \(reason.words)"
    }
}
