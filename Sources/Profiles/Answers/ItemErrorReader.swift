import Protocols
import WaypostCore

/// Reads what a reply says about single rows.
struct ItemErrorReader {
    let rules: ResponseRules.ItemErrors
    let rows: RowNames
    let after: Duration?

    /// Most names for a row in one reply, on average: more is not a list of errors and only costs time.
    private static let namesOfRowMax = 16

    /// What the entries say about the rows; nil when they refuse none.
    func verdict(in body: ReplyBody, of status: Int) -> Verdict? {
        do throws(Doubt) {
            guard let items = try items(in: body) else { return nil }
            let accepted = rows.batch.rows.count - items.refused.count - items.again.count
            if accepted > 0 { return .partlyAccepted(items) }
            // None was accepted: only a request for each row can distinguish a bad row from a bad endpoint.
            if items.again.isEmpty {
                let isAlone = rows.batch.rows.count == 1
                return .split(status: status, reason: isAlone ? items.refused.values.first : nil)
            }
            return items.needsCredential
                ? .authStop(status: status, after: after) : .retry(.status(status), after: after)
        } catch {
            return .retry(.unclear(error.why), after: after)
        }
    }

    /// One entry that cannot be understood may be about any row: none is settled.
    private struct Doubt: Error {
        var why: UnclearBody
    }

    private func items(in body: ReplyBody) throws(Doubt) -> ItemVerdicts? {
        guard let entries = try list(in: body) else {
            if rules.always { throw Doubt(why: .noList) }
            return nil
        }
        if rules.match == .index, entries.count != rows.batch.rows.count, rules.always || !entries.isEmpty {
            throw Doubt(why: .incompleteList)
        }
        var items = ItemVerdicts(after: after)
        var names = 0
        let columns = entries.isEmpty ? nil : columns()
        for (index, entry) in entries.enumerated() {
            guard case .object = entry else { throw Doubt(why: .otherForm) }
            let code = try code(of: entry)
            let seqs: [Int64]
            switch rules.match {
            case .index:
                if code == nil { continue }
                seqs = [rows.batch.rows[index].seq]
            case .fields:
                seqs = columns.map { rows.seqs(by: $0.map { ($0.column, entry.value(at: [$0.field])) }) } ?? []
            }
            // A server that names other rows may have mistaken these for others.
            guard !seqs.isEmpty else { throw Doubt(why: .unknownRow) }
            names += seqs.count
            guard names <= Self.namesOfRowMax * rows.batch.rows.count else { throw Doubt(why: .otherForm) }
            for seq in seqs { items.add(seq, code ?? "", words(entry, code), rules) }
        }
        for seq in items.again { items.refused[seq] = nil }
        return items.refused.isEmpty && items.again.isEmpty ? nil : items
    }

    /// nil when the reply has no list.
    private func list(in body: ReplyBody) throws(Doubt) -> [JSONValue]? {
        switch body {
        case .empty: return nil
        case .cut: throw Doubt(why: .cut)
        case .notJSON: throw Doubt(why: .notJSON)
        case .repeatedName: throw Doubt(why: .repeatedName)
        // Whoever answers so has read no list.
        case .json(.null): throw Doubt(why: .otherForm)
        case .json(let value):
            switch value.find(rules.path) {
            case .found(.array(let entries)): return entries
            case .found, .otherForm: throw Doubt(why: .otherForm)
            case .absent: return nil
            }
        }
    }

    private func code(of entry: JSONValue) throws(Doubt) -> String? {
        switch entry.find(rules.code) {
        case .absent: return nil
        case .found(let value):
            if let text = value.text { return text }
            throw Doubt(why: .otherForm)
        case .otherForm: throw Doubt(why: .otherForm)
        }
    }

    /// The values by which an entry names a row; nil when entries go by their place.
    private func columns() -> [(field: String, column: RowNames.Column)]? {
        guard case .fields(let fields) = rules.match else { return nil }
        return fields.map { ($0.key, rows.column($0.value)) }
    }

    private func words(_ entry: JSONValue, _ code: String?) -> String {
        let reason = rules.reason.flatMap { entry.value(at: $0)?.text }
        return [code, reason].compactMap { $0 }.joined(separator: ": ").cut(toBytes: 200)
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
