/// A JSON value that keeps the order of its members, as it was read or as it is to be written.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// `scaled` · 10^−`places`, written with fixed decimals: 2710 with 1 place is `271.0`.
    case decimal(scaled: Int64, places: Int)
    /// The shortest digits that read back as the same value; NaN and infinity are left out with their key.
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([Member])

    public struct Member: Hashable, Sendable {
        public var name: String
        public var value: JSONValue

        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }
}

// What a value holds; nil where it is of another kind.
extension JSONValue {
    /// The first member of a name, null included.
    public subscript(name: String) -> JSONValue? { members?.first { $0.name == name }?.value }

    public var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    public var items: [JSONValue]? { if case .array(let items) = self { items } else { nil } }
    public var string: String? { if case .string(let string) = self { string } else { nil } }
    public var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }

    /// A whole number, also one with a point or an exponent.
    public var integer: Int64? {
        switch self {
        case .int(let int): int
        case .double(let double): Int64(exactly: double)
        default: nil
        }
    }

    /// A finite number.
    public var number: Double? {
        switch self {
        case .int(let int): Double(int)
        case .double(let double): double.isFinite ? double : nil
        default: nil
        }
    }

    /// A string as it is, a number or bool as JSON writes it.
    public var text: String? {
        switch self {
        case .string(let string): string
        case .bool(let bool): bool ? "true" : "false"
        case .int(let int): String(int)
        case .double, .decimal: isWritable ? String(decoding: bytes, as: UTF8.self) : nil
        case .null, .array, .object: nil
        }
    }
}

extension JSONValue {
    /// What a path of member names and array indexes leads to; nil when it leads nowhere or to null.
    public func value(at path: [String]) -> JSONValue? {
        var value = self
        for step in path {
            switch value {
            case .object:
                guard let member = value[step] else { return nil }
                value = member
            case .array(let items):
                guard let index = Int(step), items.indices.contains(index) else { return nil }
                value = items[index]
            default: return nil
            }
        }
        return value == .null ? nil : value
    }

    /// The first of several paths that leads somewhere.
    public func value(atFirstOf paths: [[String]]) -> JSONValue? {
        for path in paths { if let value = value(at: path) { return value } }
        return nil
    }

    /// An object in it has two members of one name: which of them counts would be a guess.
    public var repeatsAName: Bool {
        switch self {
        case .object(let members):
            Set(members.map(\.name)).count < members.count || members.contains { $0.value.repeatsAName }
        case .array(let items): items.contains { $0.repeatsAName }
        case .null, .bool, .int, .decimal, .double, .string: false
        }
    }
}
