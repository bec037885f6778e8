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

extension JSONWriter {
    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let bool): self.value(bool)
        case .int(let int): self.value(int)
        case .decimal(let scaled, let places): self.value(scaled: scaled, places: places)
        case .double(let double): self.value(double)
        case .string(let string): self.value(string)
        case .array(let items):
            beginArray()
            for item in items where item.isWritable { self.value(item) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members where member.value.isWritable {
                key(member.name)
                self.value(member.value)
            }
            endObject()
        }
    }

    public mutating func field(_ name: StaticString, _ value: JSONValue?) {
        guard let value, value.isWritable else { return }
        key(name)
        self.value(value)
    }
}
