import WaypostCore

extension NativeBatch {
    static let compactType = "application/vnd.waypost.compact+json"

    /// A batch in columns, turned into records of the native shape. Columns that are not known are let through unread.
    /// - Parameter id: of the batch, which a body of this shape does not contain.
    init(compact bytes: [UInt8], id: String) throws(ShapeProblem) {
        let top = try Self.read(bytes)
        guard let version = top["v"] else { throw ShapeProblem(text: "v: is missing") }
        guard version.number == 1 || version.number == 2 else {
            throw ShapeProblem(text: "v: only versions 1 and 2 are understood")
        }
        device = try Self.text(top, "device", "")
        outbox = try Self.outbox(top)
        self.id = id
        if let sent = top["sent_ms"] { _ = try CompactColumns.whole(sent, "sent_ms") }
        rows = try CompactColumns(top, bytes).rows(batch: id)
    }
}

/// The columns of one body.
///
/// A number column holds integers: the first known cell itself, each later one the difference from the last known. A
/// flag or text column with one value in all rows is that value alone. In version 2, cells of seq, time, lat and lon
/// from the third on are changes of the difference.
private struct CompactColumns {
    private typealias ShapeProblem = NativeBatch.ShapeProblem

    /// Decimals of each number column, and its name in a record.
    private static let numbers: KeyValuePairs<String, (name: String, decimals: Int)> = [
        "accuracy": ("accuracy", 1), "speed": ("speed", 1), "bearing": ("bearing", 0), "altitude": ("altitude", 0),
        "odometer": ("odometer", 0), "battery_pct": ("battery", 0), "altitude_hae": ("altitude_hae", 0),
        "satellites": ("satellites", 0),
    ]
    private static let flags = ["moving", "charging", "external_power", "simulated"]
    private static let texts = ["event", "trackable", "reason", "quality", "fix_mode", "boot_id"]
    private static let fence = ["id", "name", "action", "source", "server_id"]
    private static let rowsMax = 100_000
    private static let largest = 9_007_199_254_740_992.0

    private let top: JSONValue
    private let bytes: [UInt8]
    private let written: WrittenMembers
    private let count: Int
    private let predicts: Bool

    init(_ top: JSONValue, _ bytes: [UInt8]) throws(NativeBatch.ShapeProblem) {
        self.top = top
        self.bytes = bytes
        written = WrittenMembers(of: bytes)
        predicts = top["v"]?.number == 2
        guard let node = top["n"] else { throw ShapeProblem(text: "n: is missing") }
        let count = try Self.whole(node, "n")
        guard (1...Int64(Self.rowsMax)).contains(count) else {
            throw ShapeProblem(text: "n: must be 1 to \(Self.rowsMax)")
        }
        self.count = Int(count)
    }

    static func whole(_ node: JSONValue, _ path: String) throws(NativeBatch.ShapeProblem) -> Int64 {
        guard let value = node.number, value == value.rounded(), abs(value) <= Self.largest else {
            throw ShapeProblem(text: "\(path): must be a whole number")
        }
        return Int64(value)
    }

    func rows(batch: String) throws(NativeBatch.ShapeProblem) -> [NativeBatch.Row] {
        let (seqs, times) = (try known("seq"), try known("time"))
        let (latitudes, longitudes) = (try known("lat"), try known("lon"))
        let members = try recordMembers()
        let head = shared(batch: batch)
        var rows: [NativeBatch.Row] = []
        for index in 0..<count {
            let time = times[index]
            let seconds = (time >= 0 ? time : time - 999) / 1000
            let place =
                "\"location\":{\"lat\":\(Self.decimal(latitudes[index], 6)),\"lon\":\(Self.decimal(longitudes[index], 6))}"
            let text = "\(place),\"timeStamp\":\(seconds),\"time_ms\":\(time),\"seq\":\(seqs[index])\(members[index])}"
            let path = "row \(index)"
            let record = try NativeBatch.read(Array("{\(text)".utf8))
            let seq = try LocationShape.check(record, path)
            if let last = rows.last?.seq, seq <= last {
                throw ShapeProblem(text: "\(path): seq \(seq) does not rise above \(last)")
            }
            rows.append(
                .init(seq: seq, line: Array("{\(head)\(text)".utf8), location: .init(record, seq: seq)))
        }
        return rows
    }

    /// What follows the place and the time in each record.
    private func recordMembers() throws(ShapeProblem) -> [String] {
        var members = [String](repeating: "", count: count)
        func add(_ name: String, _ values: [String?]) {
            for (index, value) in values.enumerated() {
                if let value { members[index] += ",\"\(name)\":\(value)" }
            }
        }
        for (column, native) in Self.numbers {
            add(native.name, try numbers(column).map { $0.map { Self.decimal($0, native.decimals) } })
        }
        for column in Self.flags { add(column, try flags(column)) }
        for column in Self.texts { add(column, try texts(column)) }
        var fences = [String](repeating: "", count: count)
        for part in Self.fence {
            for (index, value) in try texts("geofence_\(part)").enumerated() {
                if let value { fences[index] += "\(fences[index].isEmpty ? "" : ",")\"\(part)\":\(value)" }
            }
        }
        add("geofence", fences.map { $0.isEmpty ? nil : "{\($0)}" })
        return members
    }

    /// What is the same for all rows. Without a column each row's trackable is the device.
    private func shared(batch: String) -> String {
        var fields = ["device", "outbox"].map { "\"\($0)\":\(written[$0].map(raw) ?? "null")" }
        fields.append("\"batch_id\":\"\(batch)\"")
        if written["trackable"] == nil, let device = written["device"] { fields.append("\"trackable\":\(raw(device))") }
        return fields.map { $0 + "," }.joined()
    }

    // Columns

    private func cells(_ name: String) throws(ShapeProblem) -> [JSONValue]? {
        guard let node = top[name] else { return nil }
        guard let cells = node.items, cells.count == count else {
            throw ShapeProblem(text: "\(name): must be an array of \(count) cells")
        }
        return cells
    }

    private func numbers(_ name: String, predicted: Bool = false) throws(ShapeProblem) -> [Int64?] {
        guard let cells = try cells(name) else { return Array(repeating: nil, count: count) }
        var (base, step): (Int64, Int64) = (0, 0)
        var values: [Int64?] = []
        for (index, cell) in cells.enumerated() {
            if cell == .null {
                values.append(nil)
                continue
            }
            // Cells and sums are at most 2^53, so nothing overflows before it is refused.
            let difference = step + (try Self.whole(cell, "\(name)[\(index)]"))
            base += difference
            guard Double(abs(base)) <= Self.largest else {
                throw ShapeProblem(text: "\(name)[\(index)]: the sum of the differences is too large")
            }
            if predicted, index > 0 { step = difference }
            values.append(base)
        }
        return values
    }

    private func known(_ name: String) throws(ShapeProblem) -> [Int64] {
        guard top[name] != nil else { throw ShapeProblem(text: "\(name): is missing") }
        let values = try numbers(name, predicted: predicts).compactMap { $0 }
        guard values.count == count else { throw ShapeProblem(text: "\(name): must be known in all rows") }
        return values
    }

    private func flags(_ name: String) throws(ShapeProblem) -> [String?] {
        func flag(_ node: JSONValue) throws(ShapeProblem) -> String? {
            switch node.number {
            case nil where node == .null: return nil
            case 0: return "false"
            case 1: return "true"
            default: throw ShapeProblem(text: "\(name): a flag is 0, 1 or null")
            }
        }
        guard let node = top[name] else { return Array(repeating: nil, count: count) }
        guard node.items != nil else { return Array(repeating: try flag(node), count: count) }
        var values: [String?] = []
        for cell in try cells(name) ?? [] { values.append(try flag(cell)) }
        return values
    }

    private func texts(_ name: String) throws(ShapeProblem) -> [String?] {
        guard let node = top[name], let range = written[name] else { return Array(repeating: nil, count: count) }
        switch node {
        case .null: return Array(repeating: nil, count: count)
        case .string: return Array(repeating: raw(range), count: count)
        case .array(let parts):
            guard parts.count == 2, let words = parts[0].items, let places = parts[1].items, places.count == count,
                let column = JSONReader.children(of: bytes, at: range).first
            else { throw ShapeProblem(text: "\(name): must be [[words], [\(count) indexes]]") }
            let texts = JSONReader.children(of: bytes, at: column.range).map { raw($0.range) }
            var values: [String?] = []
            for (index, place) in places.enumerated() {
                if place == .null {
                    values.append(nil)
                    continue
                }
                let word = try Self.whole(place, "\(name)[1][\(index)]")
                guard words.indices.contains(Int(word)), words[Int(word)].string != nil else {
                    throw ShapeProblem(text: "\(name)[1][\(index)]: there is no word \(word)")
                }
                values.append(texts[Int(word)])
            }
            return values
        default: throw ShapeProblem(text: "\(name): must be a text or [[words], [indexes]]")
        }
    }

    /// As it was sent, escapes included.
    private func raw(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// `value` with its last `decimals` digits behind the point: -5 with one is `-0.5`.
    private static func decimal(_ value: Int64, _ decimals: Int) -> String {
        guard decimals > 0 else { return String(value) }
        let digits = String(value.magnitude)
        let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
        return "\(value < 0 ? "-" : "")\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
    }
}
