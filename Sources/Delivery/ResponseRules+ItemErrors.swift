import Positioning

extension ResponseRules.ItemErrors {
    /// What the entries say about the rows; nil when there are none.
    func verdict(in reply: UplinkReply, about rows: RowNames, after: Duration?) -> Verdict? {
        guard case .array(let entries) = reply.json?.value(at: path), !entries.isEmpty else { return nil }
        var items = ItemVerdicts(after: after)
        for (index, entry) in entries.enumerated() {
            let code = entry.value(at: self.code)?.text
            let seqs: [Int64]
            switch match {
            case .index:
                if code == nil { continue }
                seqs = rows.batch.rows.indices.contains(index) ? [rows.batch.rows[index].seq] : []
            case .fields(let fields):
                seqs = rows.seqs { row in
                    !fields.isEmpty
                        && fields.allSatisfy { rows.value($0.value, of: row, is: entry.value(at: [$0.key])) }
                }
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

/// The names by which a reply may speak of the rows of a batch.
struct RowNames {
    let batch: Batch
    let device: String
    let identify: ([UInt8], Int64) -> String

    func seqs(where matches: (QueuedLocation) -> Bool) -> [Int64] { batch.rows.filter(matches).map(\.seq) }

    /// - Parameter reference: `seq` or `$seq`, with or without casts.
    func value(_ reference: String, of row: QueuedLocation, is answer: JSONValue?) -> Bool {
        guard let answer = answer?.text else { return false }
        let bare = reference.hasPrefix("$") ? reference.dropFirst() : reference[...]
        let time = row.location.time.milliseconds
        switch bare.prefix(while: { $0 != ":" && $0 != "|" }) {
        case "seq": return answer == String(row.seq)
        case "id": return answer == identify(batch.outbox, row.seq)
        case "time_ms": return answer == String(time)
        case "time_s": return answer == String(time.quotient(1000))
        // As instants: a server may write the same one in another way.
        case "time_iso": return UTCTime.milliseconds(iso8601: answer) == time
        case "time_iso_s": return UTCTime.milliseconds(iso8601: answer)?.quotient(1000) == time.quotient(1000)
        case "device": return answer == device
        case "trackable": return answer == row.location.trackable
        case "batch_id": return answer == batch.id
        default: return false
        }
    }
}

extension Int64 {
    /// Rounded down, also below zero.
    fileprivate func quotient(_ divisor: Int64) -> Int64 { self >= 0 ? self / divisor : (self + 1) / divisor - 1 }
}

extension UTCTime {
    /// Unix milliseconds of `2023-11-14T22:13:20.123Z`, with any number of fraction digits, or with an offset instead of
    /// `Z`; nil for anything else.
    static func milliseconds(iso8601 text: String) -> Int64? {
        let bytes = Array(text.utf8)
        func number(_ start: Int, _ count: Int) -> Int? {
            guard start + count <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[start..<start + count] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            return value
        }
        guard (20...40).contains(bytes.count), bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] | 0x20 == UInt8(ascii: "t") || bytes[10] == 0x20, bytes[13] == UInt8(ascii: ":"),
            bytes[16] == UInt8(ascii: ":"), let year = number(0, 4), let month = number(5, 2), let day = number(8, 2),
            let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2), hour < 24, minute < 60,
            second <= 60, let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        var end = 19
        var thousandths = 0
        if bytes[end] == UInt8(ascii: ".") {
            let digits = bytes[(end + 1)...].prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            for place in 0..<3 {
                thousandths = thousandths * 10 + (place < digits.count ? Int(digits[end + 1 + place] - 0x30) : 0)
            }
            end += 1 + digits.count
        }
        let zone = bytes[end...]
        var offset = 0
        if zone.count == 6, zone[end + 3] == UInt8(ascii: ":"), let hours = number(end + 1, 2),
            let minutes = number(end + 4, 2),
            zone[end] == UInt8(ascii: "+") || zone[end] == UInt8(ascii: "-")
        {
            offset = (hours * 60 + minutes) * (zone[end] == UInt8(ascii: "-") ? -1 : 1)
        } else if !(zone.count == 1 && zone[end] | 0x20 == UInt8(ascii: "z")) {
            return nil
        }
        let timeOfDay = ((hour * 60 + minute - offset) * 60 + second) * 1000 + thousandths
        return UTCTime(date: date, timeOfDay: timeOfDay).milliseconds
    }
}
