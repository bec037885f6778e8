import Positioning

extension ResponseRules.ItemErrors {
    /// What the entries say about the rows; nil when there are none.
    func verdict(in reply: UplinkReply, about rows: RowNames, after: Duration?) -> Verdict? {
        guard case .array(let entries) = reply.json?.value(at: path), !entries.isEmpty else { return nil }
        var items = ItemVerdicts(after: after)
        let columns = columns(of: rows)
        for (index, entry) in entries.enumerated() {
            let code = entry.value(at: self.code)?.text
            let seqs: [Int64]
            switch match {
            case .index:
                if code == nil { continue }
                seqs = rows.batch.rows.indices.contains(index) ? [rows.batch.rows[index].seq] : []
            case .fields:
                seqs = columns.map { rows.seqs(by: $0.map { ($0.column, entry.value(at: [$0.field])) }) } ?? []
            }
            // Whoever speaks of other rows may have mistaken these for others: nothing is settled.
            guard !seqs.isEmpty else { return .retry(.unclear, after: after) }
            for seq in seqs { items.add(seq, code ?? "", words(entry, code), self) }
        }
        for seq in items.again { items.refused[seq] = nil }
        if items.refused.isEmpty, items.again.isEmpty { return nil }
        let taken = rows.batch.rows.count - items.refused.count - items.again.count
        if taken > 0 { return .partlyAccepted(items) }
        // None was taken: only a request for each row can tell a bad row from a bad endpoint.
        if items.again.isEmpty { return .split(status: reply.status) }
        return items.needsCredential ? .authStop(status: reply.status) : .retry(.status(reply.status), after: after)
    }

    /// The values by which an entry names a row; nil when entries go by their place.
    private func columns(of rows: RowNames) -> [(field: String, column: RowNames.Column)]? {
        guard case .fields(let fields) = match else { return nil }
        return fields.map { ($0.key, rows.column($0.value)) }
    }

    private func words(_ entry: JSONValue, _ code: String?) -> String {
        let reason = reason.flatMap { entry.value(at: $0)?.text }
        return String([code, reason].compactMap { $0 }.joined(separator: ": ").prefix(200))
    }
}

extension ItemVerdicts {
    fileprivate mutating func add(_ seq: Int64, _ code: String, _ words: String, _ rules: ResponseRules.ItemErrors) {
        if rules.authCodes.contains(code) {
            needsCredential = true
            again.insert(seq)
        } else if rules.retryCodes.contains(code) {
            again.insert(seq)
        } else {
            refused[seq] = words.isEmpty ? "refused" : words
        }
    }
}
