import WaypostCore

/// A value that a message can hold: text, numbers, flags, lists, and messages within messages.
///
/// Names on the wire: a duration of a reply ends in `_s` or `_ms`; metres, percent and UTC need no ending, and `help` has the unit.
public protocol ControlValue: Sendable {
    /// nil where the value is of another kind.
    static func read(_ json: JSONValue) -> Self?

    /// A single value as it is written; nil = the member is left out.
    func scalar(_ format: FieldFormat) -> JSONValue?

    /// - Returns: entries of a list that were left out because the frame is full; nil = the member is left out.
    func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int?

    /// The word for the kind of value in `help`.
    static var kind: String { get }

    /// A field of this kind, and what is within it.
    static func help(_ field: FieldHelp) -> [FieldHelp]
}

extension ControlValue {
    public func scalar(_ format: FieldFormat) -> JSONValue? { nil }

    public func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int? {
        guard let value = scalar(format) else { return nil }
        if let key { writer.key(key) }
        writer.value(value)
        return 0
    }

    public static func help(_ field: FieldHelp) -> [FieldHelp] { [field] }
}

/// How a value is written.
public struct FieldFormat: Sendable {
    /// Fixed decimals of a number, trailing zeros trimmed; nil = the shortest digits that read back as the same value.
    var places: Int?
    /// A list ends once the frame has this many bytes.
    var frameBytesMax = Int.max
    /// The member after a list that says how many entries were left out.
    var more: String?
}

/// A member of a message, declared once: its name on the wire, its unit and its meaning. Reading, writing and `help` follow.
///
///     public struct OdometerRequest: ControlRequest {
///         @Field("metres", unit: "m", "Reading from now on, 0 to 1e11; required") public var metres: Double?
///     }
///
/// A member of an optional type may be absent. With an empty name, the members of its value are written in its place.
@propertyWrapper
public struct Field<Value: ControlValue>: Sendable {
    private var member: TypedMember<Value>

    public init(
        wrappedValue: Value, _ name: String, unit: String? = nil, places: Int? = nil,
        frameBytesMax: Int = .max, more: String? = nil, _ meaning: String
    ) {
        let format = FieldFormat(places: places, frameBytesMax: frameBytesMax, more: more)
        member = TypedMember(wrappedValue, name, unit, meaning, format)
    }

    public init(
        _ name: String, unit: String? = nil, places: Int? = nil, frameBytesMax: Int = .max, more: String? = nil,
        _ meaning: String
    ) where Value: ExpressibleByNilLiteral {
        self.init(
            wrappedValue: nil, name, unit: unit, places: places, frameBytesMax: frameBytesMax, more: more, meaning)
    }

    public var wrappedValue: Value {
        get { member.value }
        set {
            // Copies of a message share a member until one of them changes it.
            if isKnownUniquelyReferenced(&member) {
                member.value = newValue
            } else {
                member = member.with(newValue)
            }
        }
    }
}

/// What a message does with its members, whatever they hold: `TypedMember` does it.
private class Member: @unchecked Sendable {
    fileprivate let name: String
    fileprivate let unit: String?
    fileprivate let meaning: String
    fileprivate let format: FieldFormat

    fileprivate init(_ name: String, _ unit: String?, _ meaning: String, _ format: FieldFormat) {
        self.name = name
        self.unit = unit
        self.meaning = meaning
        self.format = format
    }

    func write(to writer: inout JSONWriter) {}
    func read(_ object: JSONValue) -> Bool { false }
    func help(prefix: String) -> [FieldHelp] { [] }
}

private final class TypedMember<Value: ControlValue>: Member, @unchecked Sendable {
    /// Set only where nobody else has the member.
    var value: Value

    init(_ value: Value, _ name: String, _ unit: String?, _ meaning: String, _ format: FieldFormat) {
        self.value = value
        super.init(name, unit, meaning, format)
    }

    func with(_ value: Value) -> TypedMember { TypedMember(value, name, unit, meaning, format) }

    override func write(to writer: inout JSONWriter) {
        if name.isEmpty, let message = value as? any ControlMessage { return message.writeMembers(to: &writer) }
        guard let left = value.write(name, to: &writer, format), left > 0, let more = format.more else { return }
        writer.key(more)
        writer.value(Int64(left))
    }

    override func read(_ object: JSONValue) -> Bool {
        guard let value = Value.read(name.isEmpty ? object : object[name] ?? .null) else { return false }
        self.value = value
        return true
    }

    override func help(prefix: String) -> [FieldHelp] {
        if name.isEmpty { return Value.help(FieldHelp(name: prefix)).dropFirst().map { $0 } }
        return Value.help(FieldHelp(name: prefix + name, type: Value.kind, unit: unit, meaning: meaning))
    }
}

private protocol MemberReference {}
extension Field: MemberReference {}

/// An object on the wire: a struct whose stored properties are fields, without exception. Members that it does not know are ignored.
public protocol ControlMessage: ControlValue {
    init()
}

extension ControlMessage {
    /// A field is one reference and a message nothing but fields, so that it can be read as an array of references.
    /// Reflection would find the same, at five times the cost of the rest of a reply.
    private var fields: [Member] {
        assert(Mirror(reflecting: self).children.allSatisfy { $0.value is any MemberReference }, "fields only")
        return withUnsafeBytes(of: self) { Array($0.bindMemory(to: Member.self)) }
    }

    public static func read(_ json: JSONValue) -> Self? {
        guard json.members != nil else { return nil }
        let message = Self()
        return message.fields.allSatisfy { $0.read(json) } ? message : nil
    }

    public func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int? {
        if let key { writer.key(key) }
        writer.beginObject()
        writeMembers(to: &writer)
        writer.endObject()
        return 0
    }

    /// As one object of JSON.
    package var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writeMembers(to: &writer)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    func writeMembers(to writer: inout JSONWriter) { for field in fields { field.write(to: &writer) } }

    public static var kind: String { "object" }

    public static func help(_ field: FieldHelp) -> [FieldHelp] {
        let prefix = field.name.isEmpty || field.name.hasSuffix(".") ? field.name : field.name + "."
        return [field] + Self().fields.flatMap { $0.help(prefix: prefix) }
    }

    /// Every field, those of messages within it after their own.
    static var fieldHelp: [FieldHelp] { Array(help(FieldHelp()).dropFirst()) }
}

/// A member, as `help` lists it.
public struct FieldHelp: ControlMessage {
    @Field("name", "`a.b` = member b of a; `a[].b` = b of each entry of list a; `a.*` = under any name") public
        var name = ""
    @Field("type", "boolean, integer, number, text, list or object") public var type = ""
    @Field("optional", "true = may be absent") public var optional: Bool?
    @Field("unit", "Unit of a number") public var unit: String?
    @Field("meaning", "What it says") public var meaning = ""

    public init() {}

    init(name: String, type: String = "", unit: String? = nil, meaning: String = "") {
        self.name = name
        self.type = type
        self.unit = unit
        self.meaning = meaning
    }
}

extension Bool: ControlValue {
    public static func read(_ json: JSONValue) -> Bool? { json.bool }
    public func scalar(_ format: FieldFormat) -> JSONValue? { .bool(self) }
    public static var kind: String { "boolean" }
}

extension String: ControlValue {
    public static func read(_ json: JSONValue) -> String? { json.string }
    public func scalar(_ format: FieldFormat) -> JSONValue? { .string(self) }
    public static var kind: String { "text" }
}

extension Double: ControlValue {
    public static func read(_ json: JSONValue) -> Double? { json.number }
    public static var kind: String { "number" }

    public func scalar(_ format: FieldFormat) -> JSONValue? {
        guard let places = format.places else { return isFinite ? .double(self) : nil }
        return Scaled.integer(self, places: places).map { .decimal(scaled: $0, places: places) }
    }
}

extension ControlValue where Self: FixedWidthInteger {
    public static func read(_ json: JSONValue) -> Self? { json.integer.flatMap(Self.init(exactly:)) }
    public func scalar(_ format: FieldFormat) -> JSONValue? { .int(Int64(self)) }
    public static var kind: String { "integer" }
}

extension Int: ControlValue {}
extension Int64: ControlValue {}

extension Optional: ControlValue where Wrapped: ControlValue {
    public static func read(_ json: JSONValue) -> Self? { json == .null ? .some(nil) : Wrapped.read(json).map { $0 } }
    public static var kind: String { Wrapped.kind }

    public func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int? {
        flatMap { $0.write(key, to: &writer, format) }
    }

    public static func help(_ field: FieldHelp) -> [FieldHelp] {
        var field = field
        field.optional = true
        return Wrapped.help(field)
    }
}

extension Array: ControlValue where Element: ControlValue {
    public static var kind: String { "list" }

    public static func read(_ json: JSONValue) -> Self? {
        guard let items = json.items else { return nil }
        let values = items.compactMap(Element.read)
        return values.count == items.count ? values : nil
    }

    public func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int? {
        if let key { writer.key(key) }
        writer.beginArray()
        var rest = self[...]
        while writer.count < format.frameBytesMax, let item = rest.popFirst() {
            _ = item.write(nil, to: &writer, format)
        }
        writer.endArray()
        return rest.count
    }

    public static func help(_ field: FieldHelp) -> [FieldHelp] {
        var item = field
        item.name += "[]"
        return [field] + Element.help(item).dropFirst()
    }
}

/// Values under names that the daemon's configuration or its peers chose, in their order.
public struct Named<Value: ControlValue>: ControlValue {
    public struct Entry: Sendable {
        public var name: String
        public var value: Value
    }

    public var entries: [Entry]

    public init(_ entries: some Sequence<(String, Value)>) {
        self.entries = entries.map { Entry(name: $0.0, value: $0.1) }
    }

    public static var kind: String { "object" }

    public static func read(_ json: JSONValue) -> Self? {
        guard let members = json.members else { return nil }
        let named = Named(members.compactMap { member in Value.read(member.value).map { (member.name, $0) } })
        return named.entries.count == members.count ? named : nil
    }

    public func write(_ key: String?, to writer: inout JSONWriter, _ format: FieldFormat) -> Int? {
        if let key { writer.key(key) }
        writer.beginObject()
        var rest = entries[...]
        while writer.count < format.frameBytesMax, let entry = rest.popFirst() {
            _ = entry.value.write(entry.name, to: &writer, format)
        }
        writer.endObject()
        return rest.count
    }

    public static func help(_ field: FieldHelp) -> [FieldHelp] {
        var entry = field
        entry.name += ".*"
        return [field] + Value.help(entry).dropFirst()
    }
}
