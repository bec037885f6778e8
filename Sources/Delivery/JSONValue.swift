/// A JSON value that keeps the order of its members, for output whose exact bytes matter.
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

    /// UTF-8, no spaces.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    var isWritable: Bool {
        if case .double(let value) = self { value.isFinite } else { true }
    }
}
