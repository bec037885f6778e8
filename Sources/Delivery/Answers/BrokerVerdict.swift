import Live

// What the answers of a broker mean, in the verdicts of HTTP: so one schedule serves both.
extension BrokerReply {
    /// The broker asks for fewer messages.
    private static let slowDownRest = Duration.seconds(10)

    /// - Parameters:
    ///   - rowsPerMessage: maximum rows of one message.
    ///   - wantsStored: a message that nobody subscribes to is not enough.
    func verdict(of batch: Batch, rowsPerMessage: Int, wantsStored: Bool) -> Verdict {
        let meanings = reasons.map { reason in
            reason.map { !wantsStored && $0.meaning == .notConfirmed ? MQTTMeaning.accepted : $0.meaning }
        }
        if ending?.meaning == .taken { return .collision }
        let accepted = meanings.count { $0 == .accepted }
        if accepted == meanings.count, ending == nil || accepted > 0 { return .accepted }
        if accepted > 0 { return .partlyAccepted(items(meanings, of: batch, rowsPerMessage)) }
        let decisive = zip(reasons, meanings).first { $0.1 != nil && $0.1 != .accepted }
        guard let reason = decisive?.0 ?? ending else {
            return .retry(.transport(failure ?? .broken("the connection ended without an answer")), after: nil)
        }
        return Verdict(reason, failure)
    }

    private func items(_ meanings: [MQTTMeaning?], of batch: Batch, _ rowsPerMessage: Int) -> ItemVerdicts {
        var items = ItemVerdicts()
        for (index, meaning) in meanings.enumerated() where meaning != .accepted {
            let start = min(index * rowsPerMessage, batch.rows.count)
            let rows = batch.rows[start..<min(start + rowsPerMessage, batch.rows.count)]
            // Of several in one message nobody knows which is refused: alone that message is taken apart.
            if meaning == .bisect, rows.count == 1, let row = rows.first {
                items.refused[row.seq] = reasons[index]?.words ?? ""
            } else {
                items.again.formUnion(rows.map(\.seq))
            }
            if meaning == .auth { items.needsCredential = true }
            if meaning == .slowDown { items.after = Self.slowDownRest }
        }
        return items
    }

    /// For people.
    public var words: String? {
        let said = reasons.compactMap { $0 }.first { $0.isError || $0 == .noMatchingSubscribers } ?? ending
        return said.map { $0.words + (detail.map { " (\($0.prefix(100)))" } ?? "") }
    }
}

extension Verdict {
    /// - Parameter failure: how the connection ended; nil = it goes on.
    fileprivate init(_ reason: MQTTReason, _ failure: TransportFailure?) {
        let code = Int(reason.rawValue)
        switch reason.meaning {
        case .accepted, .retry: self = .retry(failure.map { .transport($0) } ?? .reason(reason.rawValue), after: nil)
        case .notConfirmed, .slowDown: self = .retry(.reason(reason.rawValue), after: nil)
        case .auth: self = .authStop(status: code)
        case .misconfigured, .version: self = .misconfigured(status: code)
        case .bisect: self = reason == .packetTooLarge ? .tooLarge(status: code, after: nil) : .split(status: code)
        case .taken: self = .collision
        }
    }

    /// `status 404`, or the reason of a broker: HTTP has no final status below 200.
    public static func words(ofStatus status: Int) -> String {
        guard status < 200, let code = UInt8(exactly: status) else { return "status \(status)" }
        let reason = MQTTReason(rawValue: code)
        return "\(reason.code): \(reason.words)"
    }
}
