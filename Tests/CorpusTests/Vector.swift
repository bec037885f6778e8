import Foundation
import Testing
import WaypostCore

/// A value of JSON that remembers nothing; what was read of an object, its `Fields` knows.
enum JSON: Decodable, Hashable {
    case null
    case flag(Bool)
    case number(Double)
    case text(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let array = try? container.decode([JSON].self) {
            self = .array(array)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }
}

/// A vector that does not say what it should.
struct Malformed: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

/// One vector of `../shared/vectors/asset-tracking.json`, or of the file that WAYPOST_VECTORS names.
struct Vector: CustomTestStringConvertible, Sendable {
    var name: String
    var kind: String
    var source: String
    var input: JSON
    /// `waypost` where that is told, else the reference's.
    var expected: JSON

    var testDescription: String { "\(kind): \(name) (\(source))" }

    static let path: String = {
        if let named = getenv("WAYPOST_VECTORS") { return String(cString: named) }
        let repository = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(repository)/../shared/vectors/asset-tracking.json"
    }()

    static let all = Result { try load() }

    private static func load() throws -> [Vector] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Malformed("\(path) cannot be read; set WAYPOST_VECTORS to the file of the vectors")
        }
        return try JSONDecoder().decode([[String: JSON]].self, from: data).map { object in
            let fields = Fields(object)
            let vector = Vector(
                name: try fields.text("name"), kind: try fields.text("kind"), source: try fields.text("source"),
                input: try fields.value("input"),
                expected: fields.has("waypost") ? try fields.value("waypost") : try fields.value("expected"))
            _ = (fields.optional("note"), fields.optional("expected"))
            try fields.finish(vector.name)
            return vector
        }
    }
}

/// The members of an object, each of which must be asked for: a new one is never passed over in silence.
final class Fields {
    private let members: [String: JSON]
    private var unread: Set<String>

    init(_ members: [String: JSON]) {
        self.members = members
        unread = Set(members.keys)
    }

    convenience init(_ value: JSON) throws {
        guard case .object(let members) = value else { throw Malformed("not an object: \(value)") }
        self.init(members)
    }

    /// Reads an object to its end.
    static func read<Result>(_ value: JSON, _ body: (Fields) throws -> Result) throws -> Result {
        let fields = try Fields(value)
        let result = try body(fields)
        try fields.finish("\(value)")
        return result
    }

    func finish(_ owner: String) throws {
        if !unread.isEmpty { throw Malformed("unknown fields \(unread.sorted()) of \(owner)") }
    }

    func has(_ key: String) -> Bool { members[key] != nil }

    /// nil when it is not there, or null.
    func optional(_ key: String) -> JSON? {
        unread.remove(key)
        guard let value = members[key], value != .null else { return nil }
        return value
    }

    func value(_ key: String) throws -> JSON {
        unread.remove(key)
        guard let value = members[key] else { throw Malformed("no \(key)") }
        return value
    }

    func text(_ key: String) throws -> String {
        guard case .text(let text) = try value(key) else { throw Malformed("\(key) is no text") }
        return text
    }

    func flag(_ key: String) throws -> Bool {
        guard case .flag(let flag) = try value(key) else { throw Malformed("\(key) is neither true nor false") }
        return flag
    }

    func number(_ key: String) throws -> Double {
        guard let number = try optionalNumber(key) else { throw Malformed("no \(key)") }
        return number
    }

    func optionalNumber(_ key: String) throws -> Double? {
        guard let value = optional(key) else { return nil }
        guard case .number(let number) = value else { throw Malformed("\(key) is no number") }
        return number
    }

    func array(_ key: String) throws -> [JSON] {
        guard case .array(let array) = try value(key) else { throw Malformed("\(key) is no array") }
        return array
    }

    func resolution(_ key: String) throws -> Resolution {
        guard let resolution = try optionalResolution(key) else { throw Malformed("no \(key)") }
        return resolution
    }

    func optionalResolution(_ key: String) throws -> Resolution? { try optional(key).map { try Resolution($0) } }

    func coordinate() throws -> Coordinate {
        let (latitude, longitude) = (try number("latitude"), try number("longitude"))
        guard let coordinate = Coordinate(latitude: latitude, longitude: longitude) else {
            throw Malformed("no place: \(latitude), \(longitude)")
        }
        return coordinate
    }
}

extension Resolution {
    init(_ value: JSON) throws {
        self = try Fields.read(value) { fields in
            let word = try fields.text("accuracy").lowercased()
            guard let priority = AccuracyPriority(word: word) else { throw Malformed("unknown accuracy \(word)") }
            return Resolution(
                priority: priority, intervalMs: Int64(try fields.number("desiredInterval")),
                displacement: try fields.number("minimumDisplacement"))
        }
    }
}
