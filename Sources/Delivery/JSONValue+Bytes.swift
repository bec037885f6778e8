import Positioning

extension JSONValue {
    /// UTF-8, no spaces.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    var isWritable: Bool {
        if case .double(let value) = self { value.isFinite } else { true }
    }

    /// A string as it is, a number or bool as JSON writes it; nil for anything else.
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
