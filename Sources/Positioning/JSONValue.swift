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
