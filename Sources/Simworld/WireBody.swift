/// What a server finds in a request: read without any code of the daemon.
enum WireBody {
    /// A record by what every profile says of it.
    struct Record {
        var key: RowKey
        /// `<outbox>/<seq>`, or the id of the record.
        var identity: String
        /// The time as it stands there, where it is what an answer calls the row.
        var time: String?
        /// nil: it does not say.
        var trackable: String?
        /// It does not say of each crossing that it is one.
        var mayBeCrossing = false
    }

    /// Each message to a broker has one, and the id of the batch that it belongs to.
    static func records(_ payloads: [[UInt8]]) -> (records: [Record], batch: String)? {
        var records: [Record] = []
        var batch: String?
        for payload in payloads {
            guard let row = JSON(payload), let outbox = row["outbox"]?.text, let seq = row["seq"]?.integer else {
                return nil
            }
            batch = batch ?? row["batch"]?.text ?? ""
            records.append(
                Record(
                    key: RowKey(ms: row["ms"]?.integer ?? -1, event: row["event"]?.text ?? "none"),
                    identity: "\(outbox)/\(seq)", trackable: row["who"]?.text))
        }
        return (records, batch ?? "")
    }

    /// nil: the body is not of this profile.
    static func records(_ body: [UInt8], _ profile: String) -> [Record]? {
        switch profile {
        case "csv": return csv(body)
        case "waypost", "narrow":
            guard let root = JSON(body), case .list(let rows)? = root["locations"],
                let outbox = root["outbox"]?.text
            else { return nil }
            let all = root["trackable"]?.text
            return rows.map { row in
                Record(
                    key: RowKey(ms: row["time_ms"]?.integer ?? -1, event: row["event"]?.text ?? "none"),
                    identity: "\(outbox)/\(row["seq"]?.integer ?? -1)", trackable: row["trackable"]?.text ?? all)
            }
        case "fleet":
            guard let root = JSON(body), case .list(let rows)? = root["pts"], let outbox = root["outbox"]?.text,
                root["n"]?.integer == Int64(rows.count)
            else { return nil }
            return rows.map { row in
                Record(
                    key: RowKey(ms: row["ms"]?.integer ?? -1, event: row["event"]?.text ?? "none"),
                    identity: "\(outbox)/\(row["seq"]?.integer ?? -1)", time: row["at"]?.text,
                    trackable: root["who"]?.text)
            }
        case "yard":
            guard let root = JSON(body), case .list(let rows)? = root["pts"], let outbox = root["outbox"]?.text else {
                return nil
            }
            // What it is not to hear of as a crossing is a plain fix to it, and so another content.
            return rows.map { row in
                Record(
                    key: RowKey(ms: row["ms"]?.integer ?? -1, event: row["event"]?.text ?? "none"),
                    identity: "yard of \(outbox)/\(row["seq"]?.integer ?? -1)",
                    trackable: row["who"]?.text ?? root["who"]?.text, mayBeCrossing: true)
            }
        case "waypost-compact": return JSON(body).flatMap(columns)
        case "transistor":
            guard case .list(let rows)? = JSON(body)?["location"] else { return nil }
            return rows.map { record($0, time: "timestamp", id: $0["uuid"]?.text) }
        case "geojson":
            guard case .list(let rows)? = JSON(body)?["features"] else { return nil }
            return rows.map { record($0["properties"] ?? .null, time: "time", id: $0["id"]?.text) }
        default: return nil
        }
    }

    private static func record(_ row: JSON, time: String, id: String?) -> Record {
        Record(
            key: RowKey(
                ms: milliseconds(Array((row[time]?.text ?? "").utf8)) ?? -1, event: row["event"]?.text ?? "none"),
            identity: id ?? "")
    }

    /// A word that all rows share stands alone.
    private static func columns(_ root: JSON) -> [Record]? {
        guard root["v"]?.integer == 2, let outbox = root["outbox"]?.text,
            let count = root["n"]?.integer.map(Int.init), let seqs = sums(root["seq"], count),
            let times = sums(root["time"], count)
        else { return nil }
        guard let events = words(root["event"], count), let trackables = words(root["trackable"], count) else {
            return nil
        }
        return (0..<count).map { row in
            Record(
                key: RowKey(ms: times[row], event: events[row] ?? "none"), identity: "\(outbox)/\(seqs[row])",
                trackable: trackables[row])
        }
    }

    /// - Returns: nil: it is no column of words.
    private static func words(_ column: JSON?, _ count: Int) -> [String?]? {
        switch column {
        case .string(let word)?: return [String?](repeating: word, count: count)
        case .list(let parts)?:
            guard parts.count == 2, case .list(let words) = parts[0], case .list(let places) = parts[1],
                places.count == count
            else { return nil }
            var found: [String?] = []
            for place in places {
                guard let place = place.integer else {
                    found.append(nil)
                    continue
                }
                guard words.indices.contains(Int(place)), let word = words[Int(place)].text else { return nil }
                found.append(word)
            }
            return found
        default: return [String?](repeating: nil, count: count)
        }
    }

    /// The first cell is the value, the second the difference to it, each later one the change of the difference.
    private static func sums(_ column: JSON?, _ count: Int) -> [Int64]? {
        guard case .list(let cells)? = column, cells.count == count else { return nil }
        var (sum, difference): (Int64, Int64) = (0, 0)
        var sums: [Int64] = []
        for (row, cell) in cells.enumerated() {
            guard let change = cell.integer else { return nil }
            sum += difference + change
            if row > 0 { difference += change }
            sums.append(sum)
        }
        return sums
    }

    private static func csv(_ body: [UInt8]) -> [Record]? {
        let lines = body.split(separator: 0x0A).map { $0.filter { $0 != 0x0D } }
        guard let head = lines.first else { return nil }
        let names = head.split(separator: 0x2C, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard let id = names.firstIndex(of: "id"), let time = names.firstIndex(of: "time"),
            let event = names.firstIndex(of: "event")
        else { return nil }
        return lines.dropFirst().map { line in
            let fields = line.split(separator: 0x2C, omittingEmptySubsequences: false)
            func text(_ index: Int) -> String {
                fields.indices.contains(index) ? String(decoding: fields[index], as: UTF8.self) : ""
            }
            let word = text(event)
            return Record(
                key: RowKey(ms: milliseconds(Array(text(time).utf8)) ?? -1, event: word.isEmpty ? "none" : word),
                identity: text(id))
        }
    }

    /// `2026-11-22T08:30:00.123Z`
    private static func milliseconds(_ text: [UInt8]) -> Int64? {
        let numbers = text.split { !(0x30...0x39).contains($0) }.map {
            $0.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        }
        guard numbers.count >= 6 else { return nil }
        let (year, month, day) = (numbers[1] > 2 ? numbers[0] : numbers[0] - 1, numbers[1], numbers[2])
        // Days since 1970 in the proleptic Gregorian calendar, March first.
        let era = (month + 9) % 12
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (era * 306 + 5) / 10 + day - 1 - 719_468
        return (((days * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5]) * 1000
            + (numbers.count > 6 ? numbers[6] : 0)
    }

    /// Of the body without what may differ from one attempt to the next.
    static func digest(_ body: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        let marks = [Array(#""sent_at":"#.utf8), Array(#""sent_ms":"#.utf8)]
        var index = 0
        while index < body.count {
            if body[index] == 0x22, index + 1 < body.count, body[index + 1] == 0x73,
                let mark = marks.first(where: { body[index...].starts(with: $0) })
            {
                index += mark.count
                while index < body.count, body[index] != 0x2C, body[index] != 0x7D { index += 1 }
            }
            hash = (hash ^ UInt64(index < body.count ? body[index] : 0)) &* 0x100_0000_01B3
            index += 1
        }
        return hash
    }
}

/// What distinguishes a record from all others in every profile.
struct RowKey: Hashable {
    /// Unix milliseconds; -1 = it has no time of a fix.
    var ms: Int64
    var event: String
}

/// As much of JSON as the bodies have.
enum JSON {
    case null, flag(Bool), number(Double), string(String), list([JSON]), object([(String, JSON)])

    subscript(_ name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.0 == name }?.1
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var integer: Int64? { if case .number(let value) = self { Int64(value) } else { nil } }

    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard let value = reader.value(), reader.atEnd else { return nil }
        self = value
    }

    private struct Reader {
        let bytes: [UInt8]
        var index = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        var atEnd: Bool { bytes[index...].allSatisfy { $0 <= 0x20 } }

        private mutating func next() -> UInt8? {
            while index < bytes.count, bytes[index] <= 0x20 { index += 1 }
            guard index < bytes.count else { return nil }
            index += 1
            return bytes[index - 1]
        }

        private mutating func skip(_ word: StaticString) -> Bool {
            guard index + word.utf8CodeUnitCount <= bytes.count else { return false }
            index += word.utf8CodeUnitCount
            return true
        }

        mutating func value() -> JSON? {
            switch next() {
            case 0x7B: return members()
            case 0x5B: return elements()
            case 0x22: return string().map { .string($0) }
            case 0x74: return skip("rue") ? .flag(true) : nil
            case 0x66: return skip("alse") ? .flag(false) : nil
            case 0x6E: return skip("ull") ? .null : nil
            case .some: return number()
            case nil: return nil
            }
        }

        private mutating func members() -> JSON? {
            var members: [(String, JSON)] = []
            while true {
                guard let sign = next() else { return nil }
                if sign == 0x7D { return .object(members) }
                if sign == 0x2C { continue }
                guard sign == 0x22, let name = string(), next() == 0x3A, let value = value() else { return nil }
                members.append((name, value))
            }
        }

        private mutating func elements() -> JSON? {
            var elements: [JSON] = []
            while true {
                guard let sign = next() else { return nil }
                if sign == 0x5D { return .list(elements) }
                if sign == 0x2C { continue }
                index -= 1
                guard let value = value() else { return nil }
                elements.append(value)
            }
        }

        private mutating func string() -> String? {
            let start = index
            while index < bytes.count, bytes[index] != 0x22 { index += bytes[index] == 0x5C ? 2 : 1 }
            guard index < bytes.count else { return nil }
            index += 1
            return String(decoding: bytes[start..<index - 1], as: UTF8.self)
        }

        /// Most numbers are whole, and short enough for a double.
        private static func whole(_ text: ArraySlice<UInt8>) -> Double? {
            let digits = text.first == 0x2D ? text.dropFirst() : text
            guard (1...15).contains(digits.count) else { return nil }
            var value: Int64 = 0
            for digit in digits {
                guard (0x30...0x39).contains(digit) else { return nil }
                value = value * 10 + Int64(digit - 0x30)
            }
            return Double(digits.count == text.count ? value : -value)
        }

        private mutating func number() -> JSON? {
            index -= 1
            let start = index
            while index < bytes.count, bytes[index] > 0x20, bytes[index] != 0x2C, bytes[index] != 0x5D,
                bytes[index] != 0x7D
            { index += 1 }
            if let whole = Self.whole(bytes[start..<index]) { return .number(whole) }
            return Double(String(decoding: bytes[start..<index], as: UTF8.self)).map { .number($0) }
        }
    }
}
