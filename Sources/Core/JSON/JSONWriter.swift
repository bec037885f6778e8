/// Writes JSON (RFC 8259) into one growing buffer: no spaces, members in the order in which they are written.
///
/// The same calls always give the same bytes. Text is UTF-8 with control characters, `"` and `\` escaped and nothing
/// else. Numbers that JSON cannot hold (NaN, infinity) and nil are left out together with their key.
public struct JSONWriter: Sendable {
    /// Bytes that have been written.
    public private(set) var count = 0
    /// Those, and room for more: where there is enough, nothing is asked of the array for each piece.
    private var buffer: [UInt8]
    private var needsComma = false
    /// Everything beyond ASCII in text is escaped too.
    private let isASCII: Bool
    /// Optional containers that have begun, the innermost last. Here, so that each record does not allocate it anew.
    private var optional: [(before: Mark, empty: Int, isObject: Bool)] = []

    public init(reserving capacity: Int = 0, isASCII: Bool = false) {
        self.isASCII = isASCII
        buffer = [UInt8](repeating: 0, count: capacity)
    }

    /// What has been written; a copy.
    public var bytes: [UInt8] { Array(buffer[..<count]) }

    /// What has been written, of a writer that is not needed any more.
    package consuming func finished() -> [UInt8] {
        buffer.removeLast(buffer.count - count)
        return buffer
    }

    /// A place to which the writer can go back.
    package struct Mark {
        fileprivate var count: Int
        fileprivate var needsComma: Bool
    }

    package var mark: Mark { Mark(count: count, needsComma: needsComma) }

    /// Forgets what was written since.
    package mutating func goBack(to mark: Mark) {
        count = mark.count
        needsComma = mark.needsComma
    }

    /// The key of the next value as it was rendered before: a comma, the name in quotes and a colon; empty in arrays.
    package mutating func key(rendered: UnsafeBufferPointer<UInt8>) {
        guard !rendered.isEmpty else { return }
        append(needsComma ? rendered : UnsafeBufferPointer(rebasing: rendered[1...]))
        needsComma = false
    }

    /// Begins an object or array that is taken back, with its key, when nothing is in it at its end.
    package mutating func beginOptional(key: UnsafeBufferPointer<UInt8>, isObject: Bool) {
        let before = mark
        self.key(rendered: key)
        if isObject { beginObject() } else { beginArray() }
        optional.append((before, count, isObject))
    }

    package mutating func endOptional() {
        guard let start = optional.popLast() else { return }
        if count == start.empty {
            goBack(to: start.before)
        } else if start.isObject {
            endObject()
        } else {
            endArray()
        }
    }

    /// A complete value as it was rendered before.
    package mutating func value(rendered: UnsafeBufferPointer<UInt8>) {
        separate()
        append(rendered)
        needsComma = true
    }

    /// A string made of pieces, between `beginText` and `endText`.
    package mutating func beginText() {
        separate()
        append(UInt8(ascii: "\""))
    }

    package mutating func append(text: String) { appendContent(text) }

    package mutating func endText() {
        append(UInt8(ascii: "\""))
        needsComma = true
    }

    /// Starts again and keeps the memory.
    public mutating func removeAll() {
        count = 0
        needsComma = false
    }

    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// A line feed; the next value has a line of its own (JSON Lines).
    public mutating func newline() {
        append(UInt8(ascii: "\n"))
        needsComma = false
    }

    /// The key of the next value. It must need no escapes.
    public mutating func key(_ name: StaticString) {
        separate()
        appendQuoted(name)
        append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// The key of the next value, escaped as needed.
    public mutating func key(_ name: String) {
        separate()
        appendQuoted(name)
        append(UInt8(ascii: ":"))
        needsComma = false
    }

    public mutating func value(_ value: Int64) {
        separate()
        appendInteger(value)
        needsComma = true
    }

    public mutating func value(_ value: Bool) {
        separate()
        append(value ? "true" : "false")
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
        append("null")
        needsComma = true
    }

    /// The shortest digits that read back as the same value; null where it is not finite.
    public mutating func value(_ value: Double) {
        guard value.isFinite else { return null() }
        separate()
        var text = (value == 0 ? 0.0 : value).description
        text.withUTF8 { append($0) }
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

    private static let hexDigits = Array("0123456789abcdef".utf8)

    @inline(__always)
    private mutating func separate() {
        if needsComma { append(UInt8(ascii: ",")) }
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        append(bracket)
        needsComma = true
    }

    private mutating func appendInteger(_ value: Int64) {
        let width = Self.digits(of: value.magnitude)
        write(width + 1) { start in
            let end = start + Self.write(sign: value, at: start) + width
            Self.write(value.magnitude, before: end, width: width)
            return end - start
        }
    }

    private mutating func appendDecimal(_ scaled: Int64, places: Int) {
        guard places > 0 else { return appendInteger(scaled) }
        var fractionWidth = min(places, 18)
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: Scaled.powersOfTen[fractionWidth])
        var fraction = rest
        while fractionWidth > 1, fraction % 10 == 0 {
            fraction /= 10
            fractionWidth -= 1
        }
        let width = Self.digits(of: whole)
        write(width + fractionWidth + 2) { start in
            let point = start + Self.write(sign: scaled, at: start) + width
            Self.write(whole, before: point, width: width)
            point.pointee = UInt8(ascii: ".")
            let end = point + 1 + fractionWidth
            Self.write(fraction, before: end, width: fractionWidth)
            return end - start
        }
    }

    /// How many digits a number has; 1 for 0.
    @inline(__always)
    private static func digits(of value: UInt64) -> Int {
        var (count, rest) = (1, value)
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        return count
    }

    /// - Returns: bytes that it takes.
    @inline(__always)
    private static func write(sign value: Int64, at start: UnsafeMutablePointer<UInt8>) -> Int {
        guard value < 0 else { return 0 }
        start.pointee = UInt8(ascii: "-")
        return 1
    }

    /// Writes the last digits of a number, with leading zeros.
    @inline(__always)
    private static func write(_ value: UInt64, before end: UnsafeMutablePointer<UInt8>, width: Int) {
        var rest = value
        var place = end
        for _ in 0..<width {
            place -= 1
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            place.pointee = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
            rest = quotient
        }
    }

    // MARK: Bytes

    /// - Parameter fill: writes at most `room` bytes from this address on, and returns how many.
    @inline(__always)
    private mutating func write(_ room: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Int) {
        if buffer.count - count < room { grow(by: room) }
        let start = count
        let written = buffer.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.map { fill($0 + start) } ?? 0
        }
        count = start + written
    }

    @inline(never)
    private mutating func grow(by room: Int) {
        buffer += [UInt8](repeating: 0, count: max(room, buffer.count, 64))
    }

    @inline(__always)
    private mutating func append(_ byte: UInt8) {
        write(1) { start in
            start.pointee = byte
            return 1
        }
    }

    private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let first = bytes.baseAddress else { return }
        write(bytes.count) { start in
            start.update(from: first, count: bytes.count)
            return bytes.count
        }
    }

    private mutating func append(_ text: StaticString) { text.withUTF8Buffer { append($0) } }

    private mutating func appendQuoted(_ text: StaticString) {
        append(UInt8(ascii: "\""))
        append(text)
        append(UInt8(ascii: "\""))
    }

    private mutating func appendQuoted(_ text: String) {
        append(UInt8(ascii: "\""))
        appendContent(text)
        append(UInt8(ascii: "\""))
    }

    private mutating func appendContent(_ text: String) {
        let limit: UInt8 = isASCII ? 0x7F : 0xFF
        let plain: Bool? = text.utf8.withContiguousStorageIfAvailable { buffer in
            for byte in buffer where byte < 0x20 || byte == 0x22 || byte == 0x5C || byte > limit { return false }
            append(buffer)
            return true
        }
        if plain == true { return }
        guard isASCII else { return appendEscaped(text) }
        for unit in text.utf16 {
            if unit < 0x80 { appendEscaped(UInt8(unit)) } else { appendUnicodeEscape(unit) }
        }
    }

    private mutating func appendUnicodeEscape(_ unit: UInt16) {
        append("\\u")
        for shift in [12, 8, 4, 0] as [UInt16] { append(Self.hexDigits[Int(unit >> shift & 15)]) }
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
        default: append(byte)
        }
    }

    private mutating func escape(_ letter: UInt8) {
        append(UInt8(ascii: "\\"))
        append(letter)
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
