/// Writes JSON (RFC 8259) into one growing buffer: no spaces, members in the order in which they are written.
///
/// The same calls always give the same bytes. Text is UTF-8 with control characters, `"` and `\` escaped and nothing
/// else. Numbers that JSON cannot hold (NaN, infinity) and nil are left out together with their key.
public struct JSONWriter: Sendable {
    /// What has been written.
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false
    /// Everything beyond ASCII in text is escaped too.
    private let isASCII: Bool

    public init(reserving capacity: Int = 0, isASCII: Bool = false) {
        self.isASCII = isASCII
        bytes.reserveCapacity(capacity)
    }

    /// A place to which the writer can go back.
    package struct Mark {
        fileprivate var count: Int
        fileprivate var needsComma: Bool
    }

    package var mark: Mark { Mark(count: bytes.count, needsComma: needsComma) }

    /// Forgets what was written since.
    package mutating func goBack(to mark: Mark) {
        bytes.removeLast(bytes.count - mark.count)
        needsComma = mark.needsComma
    }

    /// The key of the next value as it was rendered before: a comma, the name in quotes and a colon; empty in arrays.
    package mutating func key(rendered: UnsafeBufferPointer<UInt8>) {
        guard !rendered.isEmpty else { return }
        bytes.append(contentsOf: needsComma ? rendered : UnsafeBufferPointer(rebasing: rendered[1...]))
        needsComma = false
    }

    /// A complete value as it was rendered before.
    package mutating func value(rendered: UnsafeBufferPointer<UInt8>) {
        separate()
        bytes.append(contentsOf: rendered)
        needsComma = true
    }

    /// A string made of pieces, between `beginText` and `endText`.
    package mutating func beginText() {
        separate()
        bytes.append(UInt8(ascii: "\""))
    }

    package mutating func append(text: String) { appendContent(text) }

    package mutating func endText() {
        bytes.append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Starts again and keeps the memory.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        needsComma = false
    }

    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// A line feed; the next value has a line of its own (JSON Lines).
    public mutating func newline() {
        bytes.append(UInt8(ascii: "\n"))
        needsComma = false
    }

    /// The key of the next value. It must need no escapes.
    public mutating func key(_ name: StaticString) {
        separate()
        appendQuoted(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// The key of the next value, escaped as needed.
    public mutating func key(_ name: String) {
        separate()
        appendQuoted(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    public mutating func value(_ value: Int64) {
        separate()
        appendInteger(value)
        needsComma = true
    }

    public mutating func value(_ value: Bool) {
        separate()
        bytes.append(contentsOf: value ? Self.trueWord : Self.falseWord)
        needsComma = true
    }

    public mutating func value(_ value: String) {
        separate()
        appendQuoted(value)
        needsComma = true
    }

    /// `scaled` · 10^−`places`; trailing zeros are trimmed, one fraction digit stays (`271.0`). 0 places: an integer.
    public mutating func value(scaled: Int64, places: Int) {
        separate()
        appendDecimal(scaled, places: places)
        needsComma = true
    }

    public mutating func null() {
        separate()
        bytes.append(contentsOf: Self.nullWord)
        needsComma = true
    }

    /// The shortest digits that read back as the same value; null where it is not finite.
    public mutating func value(_ value: Double) {
        guard value.isFinite else { return null() }
        separate()
        bytes.append(contentsOf: (value == 0 ? 0.0 : value).description.utf8)
        needsComma = true
    }

    public mutating func field(_ name: StaticString, _ value: Int64?) {
        guard let value else { return }
        key(name)
        self.value(value)
    }

    public mutating func field(_ name: StaticString, _ value: Int?) {
        guard let value else { return }
        key(name)
        self.value(Int64(value))
    }

    public mutating func field(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        key(name)
        self.value(value)
    }

    public mutating func field(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        key(name)
        self.value(value)
    }

    /// A word that needs no escapes.
    public mutating func field(_ name: StaticString, word: StaticString) {
        key(name)
        appendQuoted(word)
        needsComma = true
    }

    public mutating func field(_ name: StaticString, _ value: Double?) {
        guard let value, value.isFinite else { return }
        key(name)
        self.value(value)
    }

    /// Fixed decimals from an integer that is already scaled.
    public mutating func field(_ name: StaticString, scaled: Int64?, places: Int) {
        guard let scaled else { return }
        key(name)
        appendDecimal(scaled, places: places)
        needsComma = true
    }

    /// Fixed decimals, rounded half away from zero; left out when not finite or beyond ±9·10^15 of the last place.
    public mutating func field(_ name: StaticString, _ value: Double?, places: Int) {
        field(name, scaled: Scaled.integer(value, places: places), places: places)
    }

    private static let trueWord = Array("true".utf8)
    private static let falseWord = Array("false".utf8)
    private static let nullWord = Array("null".utf8)
    private static let hexDigits = Array("0123456789abcdef".utf8)

    @inline(__always)
    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func appendInteger(_ value: Int64) {
        appendFromTheEnd { text in
            text.prependDigits(of: value.magnitude, atLeast: 1)
            if value < 0 { text.prepend(UInt8(ascii: "-")) }
        }
    }

    private mutating func appendDecimal(_ scaled: Int64, places: Int) {
        guard places > 0 else { return appendInteger(scaled) }
        var width = min(places, 18)
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: Scaled.powersOfTen[width])
        var fraction = rest
        while width > 1, fraction % 10 == 0 {
            fraction /= 10
            width -= 1
        }
        appendFromTheEnd { text in
            text.prependDigits(of: fraction, atLeast: width)
            text.prepend(UInt8(ascii: "."))
            text.prependDigits(of: whole, atLeast: 1)
            if scaled < 0 { text.prepend(UInt8(ascii: "-")) }
        }
    }

    /// Appends a number that is written from its last digit to its first.
    @inline(__always)
    private mutating func appendFromTheEnd(_ write: (inout NumberText) -> Void) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 40) { buffer in
            var text = NumberText(buffer: buffer, start: buffer.count)
            write(&text)
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[text.start...]))
        }
    }

    private mutating func appendQuoted(_ text: StaticString) {
        bytes.append(UInt8(ascii: "\""))
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendQuoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        appendContent(text)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendContent(_ text: String) {
        let limit: UInt8 = isASCII ? 0x7F : 0xFF
        let plain: Bool? = text.utf8.withContiguousStorageIfAvailable { buffer in
            for byte in buffer where byte < 0x20 || byte == 0x22 || byte == 0x5C || byte > limit { return false }
            bytes.append(contentsOf: buffer)
            return true
        }
        if plain == true { return }
        guard isASCII else { return appendEscaped(text) }
        for unit in text.utf16 {
            if unit < 0x80 { appendEscaped(UInt8(unit)) } else { appendUnicodeEscape(unit) }
        }
    }

    private mutating func appendUnicodeEscape(_ unit: UInt16) {
        bytes.append(contentsOf: "\\u".utf8)
        for shift in [12, 8, 4, 0] as [UInt16] { bytes.append(Self.hexDigits[Int(unit >> shift & 15)]) }
    }

    private mutating func appendEscaped(_ text: String) {
        for byte in text.utf8 { appendEscaped(byte) }
    }

    private mutating func appendEscaped(_ byte: UInt8) {
        switch byte {
        case 0x22, 0x5C: escape(byte)
        case 0x08: escape(UInt8(ascii: "b"))
        case 0x09: escape(UInt8(ascii: "t"))
        case 0x0A: escape(UInt8(ascii: "n"))
        case 0x0C: escape(UInt8(ascii: "f"))
        case 0x0D: escape(UInt8(ascii: "r"))
        case 0..<0x20: appendUnicodeEscape(UInt16(byte))
        default: bytes.append(byte)
        }
    }

    private mutating func escape(_ letter: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(letter)
    }
}

/// The text of a number in the last bytes of a buffer; no number has more than 40.
private struct NumberText {
    let buffer: UnsafeMutableBufferPointer<UInt8>
    /// Where the text begins.
    var start: Int

    @inline(__always)
    mutating func prepend(_ byte: UInt8) {
        start -= 1
        buffer[start] = byte
    }

    /// - Parameter width: digits at least, with leading zeros.
    @inline(__always)
    mutating func prependDigits(of value: UInt64, atLeast width: Int) {
        let end = start
        var rest = value
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            prepend(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit))
            rest = quotient
        } while rest > 0
        while end - start < width { prepend(UInt8(ascii: "0")) }
    }
}

extension JSONValue {
    /// UTF-8, no spaces.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    var isWritable: Bool { if case .double(let value) = self { value.isFinite } else { true } }
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
