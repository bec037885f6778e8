import WaypostCore

/// A batch in the native shape, checked.
struct NativeBatch {
    struct Row {
        var seq: Int64
        /// The record as it was sent, with the fields of the batch merged in, as one line without its end.
        var line: [UInt8]
        /// What is shown of it.
        var location: LiveRequest.Location?
    }

    var device: String
    var outbox: String
    var id: String
    var rows: [Row]

    /// What is wrong with a body, with the path of the value.
    struct ShapeProblem: Error {
        var text: String
    }

    init(_ bytes: [UInt8]) throws(ShapeProblem) {
        let top = try Self.read(bytes)
        device = try Self.text(top, "device", "")
        outbox = try Self.outbox(top)
        id = try Self.text(top, "batch_id", "")
        for key in ["sent_at", "boot_id", "trackable"] where top[key] != nil { _ = try Self.text(top, key, "") }
        let written = WrittenMembers(of: bytes)
        guard let records = top["locations"]?.items, !records.isEmpty, let list = written["locations"] else {
            throw ShapeProblem(text: "locations: must be an array with at least one record")
        }
        let ranges = JSONReader.children(of: bytes, at: list).map(\.range)
        let shared = ["device", "outbox", "batch_id", "boot_id", "trackable"].compactMap { key in
            written[key].map { Array("\"\(key)\":".utf8) + bytes[$0] + [UInt8(ascii: ",")] }
        }
        rows = []
        for (index, record) in records.enumerated() {
            let path = "locations[\(index)]"
            let seq = try LocationShape.check(record, path)
            if let last = rows.last?.seq, seq <= last {
                throw ShapeProblem(text: "\(path).seq: \(seq) does not rise above \(last)")
            }
            rows.append(
                Row(
                    seq: seq, line: Self.line(bytes[ranges[index]], shared.flatMap { $0 }),
                    location: .init(record, seq: seq)))
        }
    }

    static func read(_ bytes: [UInt8]) throws(ShapeProblem) -> JSONValue {
        let top: JSONValue
        do {
            top = try JSONReader.parse(bytes, bytesMax: bytes.count, valuesMax: .max)
        } catch {
            throw ShapeProblem(text: "not JSON: a mistake at byte \(error.offset)")
        }
        if top.repeatsAName { throw ShapeProblem(text: "not JSON to rely on: an object has a key twice") }
        return top
    }

    static func outbox(_ top: JSONValue) throws(ShapeProblem) -> String {
        let outbox = try text(top, "outbox", "")
        guard outbox.utf8.count == 8, outbox.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
            throw ShapeProblem(text: "outbox: must be 8 lower-case hexadecimal digits")
        }
        return outbox
    }

    static func text(_ node: JSONValue, _ key: String, _ path: String) throws(ShapeProblem) -> String {
        let path = path.isEmpty ? key : "\(path).\(key)"
        guard let member = node[key] else { throw ShapeProblem(text: "\(path): is missing") }
        guard let text = member.string, !text.isEmpty else {
            throw ShapeProblem(text: "\(path): must be a text that is not empty")
        }
        return text
    }

    private static func line(_ record: ArraySlice<UInt8>, _ shared: [UInt8]) -> [UInt8] {
        // Line ends occur only between tokens: within strings they are escaped.
        [UInt8(ascii: "{")] + shared + record.dropFirst().map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
    }
}

/// Where each member of the outermost object is in a text, so that a value can be passed on as it was sent.
struct WrittenMembers {
    private let ranges: [String: Range<Int>]

    init(of bytes: [UInt8]) {
        let members = JSONReader.children(of: bytes, at: bytes.indices).map { ($0.name ?? "", $0.range) }
        ranges = Dictionary(members) { first, _ in first }
    }

    subscript(name: String) -> Range<Int>? { ranges[name] }
}

/// What a record of the native profile must and may hold. Unknown keys are let through.
enum LocationShape {
    private enum Kind {
        case number(ClosedRange<Double>)
        case integer(ClosedRange<Double>)
        case text
        case flag
    }

    private static let integers = -9_007_199_254_740_992.0...9_007_199_254_740_992.0

    private static let optional: KeyValuePairs<String, Kind> = [
        "accuracy": .number(0.000_001...10_000_000), "speed": .number(0...10_000), "bearing": .number(0...359.999_999),
        "altitude": .number(-20_000...1_000_000), "altitude_hae": .number(-20_000...1_000_000),
        "odometer": .number(0...1e12), "hdop": .number(0...100_000), "satellites": .integer(0...255),
        "battery": .integer(0...100), "received_ms": .integer(integers), "clock_ms": .integer(integers),
        "fix_mode": .text, "quality": .text,
        "event": .text, "reason": .text, "id": .text, "trackable": .text, "boot_id": .text, "moving": .flag,
        "charging": .flag, "external_power": .flag, "published": .flag, "simulated": .flag,
    ]

    /// The record's seq.
    static func check(_ record: JSONValue, _ path: String) throws(NativeBatch.ShapeProblem) -> Int64 {
        guard record.members != nil else { throw .init(text: "\(path): must be an object") }
        for key in ["device", "outbox", "batch_id"] where record[key] != nil {
            throw .init(text: "\(path).\(key): belongs to the batch, not to a record")
        }
        try checkPlace(record, path)
        for (key, kind) in optional where record[key] != nil { try check(record, key, path, kind) }
        if let fence = record["geofence"] { try checkGeofence(fence, "\(path).geofence") }
        if let activity = record["activity"] {
            try check(activity, "type", "\(path).activity", .text)
            try check(activity, "confidence", "\(path).activity", .integer(0...100))
        }
        if let change = record["settings"], change.members == nil {
            throw .init(text: "\(path).settings: must be an object")
        }
        return Int64(try number(record, "seq", path, .integer(0...integers.upperBound)))
    }

    /// Position and time, or neither in what happened without a fix.
    private static func checkPlace(_ record: JSONValue, _ path: String) throws(NativeBatch.ShapeProblem) {
        guard let place = record["location"] else {
            guard record["event"]?.string != nil, record["time_ms"] == nil, record["timeStamp"] == nil else {
                throw .init(text: "\(path).location: is missing")
            }
            return
        }
        _ = try number(place, "lat", "\(path).location", .number(-90...90))
        _ = try number(place, "lon", "\(path).location", .number(-180...180))
        let seconds = try number(record, "timeStamp", path, .integer(integers))
        let milliseconds = try number(record, "time_ms", path, .integer(integers))
        if (milliseconds / 1000).rounded(.down) != seconds {
            throw .init(text: "\(path).timeStamp: is not time_ms in whole seconds")
        }
    }

    private static func checkGeofence(_ fence: JSONValue, _ path: String) throws(NativeBatch.ShapeProblem) {
        guard fence.members != nil else { throw .init(text: "\(path): must be an object") }
        for key in ["id", "name", "action", "source", "server_id"] where fence[key] != nil {
            _ = try NativeBatch.text(fence, key, path)
        }
    }

    private static func check(
        _ record: JSONValue, _ key: String, _ path: String, _ kind: Kind
    ) throws(NativeBatch.ShapeProblem) {
        switch kind {
        case .number, .integer: _ = try number(record, key, path, kind)
        case .text: _ = try NativeBatch.text(record, key, path)
        case .flag:
            guard record[key]?.bool != nil else { throw .init(text: "\(path).\(key): must be true or false") }
        }
    }

    private static func number(
        _ node: JSONValue, _ key: String, _ path: String, _ kind: Kind
    ) throws(NativeBatch.ShapeProblem) -> Double {
        let path = "\(path).\(key)"
        guard let member = node[key] else { throw .init(text: "\(path): is missing") }
        guard let value = member.number else { throw .init(text: "\(path): must be a number") }
        switch kind {
        case .number(let range) where !range.contains(value):
            throw .init(text: "\(path): \(value) is outside \(range.lowerBound)…\(range.upperBound)")
        case .integer(let range) where !range.contains(value) || value != value.rounded():
            throw .init(text: "\(path): \(value) is no whole number that is allowed here")
        default:
            return value
        }
    }
}
