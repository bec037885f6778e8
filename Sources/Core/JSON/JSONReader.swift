/// Reads JSON (RFC 8259) from an untrusted peer: strictly, and within bounds.
public struct JSONReader {
    /// Arrays and objects within each other.
    public static let depthMax = 32
    /// Bytes of a text, unless the caller allows more.
    public static let bytesMax = 65_536
    /// Values of a text, unless the caller allows more: a text of the shortest ones takes 40 times its length in memory.
    public static let valuesMax = 100_000

    /// A text that cannot be read.
    public struct Problem: Error, Hashable, Sendable {
        /// Bytes before the mistake.
        public var offset: Int
        /// There are more values than were allowed.
        public var hasTooManyValues = false
    }

    /// The one value of a text; nil when it is no JSON, is cut short, is too long, or nests too deeply.
    ///
    /// A whole number that fits 64 bits is `.int`, any other `.double`. Names may repeat; the first one counts.
    ///
    /// - Parameters:
    ///   - omitting: arrays and objects of members of this name are left out and become null. They cost no memory,
    ///     and of their content only the ends of brackets and texts are checked.
    ///   - readsNonFinite: `nan` and `inf`, which programs in C write for a number that is none, become null. JSON does not
    ///     have them.
    ///   - valuesMax: each text, number, array and object is a value.
    public static func read(
        _ bytes: [UInt8], omitting: String? = nil, readsNonFinite: Bool = false, bytesMax: Int = bytesMax,
        valuesMax: Int = valuesMax
    ) -> JSONValue? {
        try? parse(
            bytes, omitting: omitting, readsNonFinite: readsNonFinite, bytesMax: bytesMax, valuesMax: valuesMax)
    }

    /// As `read`, with the place of the mistake.
    public static func parse(
        _ bytes: [UInt8], omitting: String? = nil, readsNonFinite: Bool = false, bytesMax: Int = bytesMax,
        valuesMax: Int = valuesMax
    ) throws(Problem) -> JSONValue {
        guard bytes.count <= bytesMax else { throw Problem(offset: bytesMax) }
        var reader = JSONReader(bytes: bytes, omitted: omitting)
        reader.readsNonFinite = readsNonFinite
        reader.valuesLeft = valuesMax
        reader.skipSpace()
        guard let value = reader.value(depth: 0) else {
            throw Problem(offset: reader.position, hasTooManyValues: reader.valuesLeft < 0)
        }
        reader.skipSpace()
        guard reader.position == bytes.count else { throw Problem(offset: reader.position) }
        return value
    }

    /// Reads a text whose array at `path` may be long: its items are given one by one, so that only one is in memory.
    ///
    /// - Parameters:
    ///   - path: names of members and indexes of arrays; empty = the text is that array.
    ///   - valuesMax: of one item, and of all that is not an item, so that their memory is bounded. Each text, number, array and
    ///     object is a value.
    ///   - take: returns false to stop there, as at a mistake.
    /// - Returns: the text without the items; the array is empty there.
    public static func parse(
        _ bytes: [UInt8], itemsAt path: [String], valuesMax: Int, bytesMax: Int, _ take: (JSONValue) -> Bool
    ) throws(Problem) -> JSONValue {
        guard bytes.count <= bytesMax else { throw Problem(offset: bytesMax) }
        var reader = JSONReader(bytes: bytes, omitted: nil)
        reader.valuesMax = valuesMax
        reader.valuesLeft = valuesMax
        reader.skipSpace()
        let value = reader.value(depth: 0, toItemsAt: path[...], take)
        reader.skipSpace()
        guard let value, reader.position == bytes.count else {
            throw Problem(offset: reader.position, hasTooManyValues: reader.valuesLeft < 0)
        }
        return value
    }

    /// The bytes of each member or item of the object or array at `range`, in order; empty for any other value.
    ///
    /// - Parameter range: of a value in a text that has been read.
    public static func children(of bytes: [UInt8], at range: Range<Int>) -> [(name: String?, range: Range<Int>)] {
        var reader = JSONReader(bytes: bytes, omitted: nil)
        reader.position = range.lowerBound
        reader.skipSpace()
        let isObject = reader.next == UInt8(ascii: "{")
        guard isObject || reader.next == UInt8(ascii: "[") else { return [] }
        var children: [(name: String?, range: Range<Int>)] = []
        repeat {
            reader.position += 1
            reader.skipSpace()
            let name = isObject ? reader.memberName() : nil
            let start = reader.position
            guard reader.value(depth: 0) != nil else { break }
            children.append((name, start..<reader.position))
            reader.skipSpace()
        } while reader.next == UInt8(ascii: ",")
        return children
    }

    private let bytes: [UInt8]
    private let omitted: String?
    private var readsNonFinite = false
    private var position = 0
    private var valuesMax = Int.max
    /// Below zero once there were too many.
    private var valuesLeft = Int.max

    private init(bytes: [UInt8], omitted: String?) {
        self.bytes = bytes
        self.omitted = omitted
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func consume(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func consume(_ word: StaticString) -> Bool {
        let end = position + word.utf8CodeUnitCount
        guard end <= bytes.count, word.withUTF8Buffer({ $0.elementsEqual(bytes[position..<end]) }) else { return false }
        position = end
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    private mutating func value(depth: Int) -> JSONValue? {
        valuesLeft -= 1
        guard valuesLeft >= 0 else { return nil }
        return switch next {
        case UInt8(ascii: "{"): object(depth: depth + 1)
        case UInt8(ascii: "["): array(depth: depth + 1)
        case UInt8(ascii: "\""): string().map(JSONValue.string)
        case UInt8(ascii: "t"): consume("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): consume("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): consume("null") || consumeNonFinite() ? .null : nil
        default: numberOrNone()
        }
    }

    private mutating func numberOrNone() -> JSONValue? {
        let start = position
        if let number = number() { return number }
        position = start
        return consumeNonFinite() ? .null : nil
    }

    /// In the forms of C and of other languages, with or without a sign.
    private mutating func consumeNonFinite() -> Bool {
        guard readsNonFinite else { return false }
        if !consume(UInt8(ascii: "-")) { _ = consume(UInt8(ascii: "+")) }
        return consume("nan") || consume("NaN") || consume("NAN") || consume("infinity") || consume("Infinity")
            || consume("inf") || consume("Inf") || consume("INF")
    }

    /// A value on the way to the array at `path`, or that array.
    private mutating func value(
        depth: Int, toItemsAt path: ArraySlice<String>, _ take: (JSONValue) -> Bool
    ) -> JSONValue? {
        guard depth < Self.depthMax else { return nil }
        if next == UInt8(ascii: "["), path.isEmpty { return items(depth: depth + 1, take) }
        guard let step = path.first, next == UInt8(ascii: "{") || next == UInt8(ascii: "[") else {
            return value(depth: depth)
        }
        let isObject = next == UInt8(ascii: "{")
        let end = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        position += 1
        skipSpace()
        var members: [JSONValue.Member] = []
        if !consume(end) {
            repeat {
                skipSpace()
                guard let name = isObject ? memberName() : String(members.count) else { return nil }
                let value =
                    name == step ? value(depth: depth + 1, toItemsAt: path.dropFirst(), take) : value(depth: depth + 1)
                guard let value else { return nil }
                members.append(.init(name, value))
                skipSpace()
            } while consume(UInt8(ascii: ","))
            guard consume(end) else { return nil }
        }
        return isObject ? .object(members) : .array(members.map(\.value))
    }

    private mutating func items(depth: Int, _ take: (JSONValue) -> Bool) -> JSONValue? {
        position += 1
        skipSpace()
        if consume(UInt8(ascii: "]")) { return .array([]) }
        let left = valuesLeft
        repeat {
            skipSpace()
            valuesLeft = valuesMax
            guard let item = value(depth: depth), take(item) else { return nil }
            skipSpace()
        } while consume(UInt8(ascii: ","))
        valuesLeft = left
        return consume(UInt8(ascii: "]")) ? .array([]) : nil
    }

    private mutating func object(depth: Int) -> JSONValue? {
        guard depth <= Self.depthMax else { return nil }
        position += 1
        skipSpace()
        var members: [JSONValue.Member] = []
        if consume(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpace()
            guard let name = memberName() else { return nil }
            guard let value = name == omitted ? omittedValue(depth: depth) : value(depth: depth) else { return nil }
            members.append(.init(name, value))
            skipSpace()
        } while consume(UInt8(ascii: ","))
        return consume(UInt8(ascii: "}")) ? .object(members) : nil
    }

    /// A name, its colon and the space before the value.
    private mutating func memberName() -> String? {
        guard let name = string() else { return nil }
        skipSpace()
        guard consume(UInt8(ascii: ":")) else { return nil }
        skipSpace()
        return name
    }

    private mutating func omittedValue(depth: Int) -> JSONValue? {
        guard next == UInt8(ascii: "[") || next == UInt8(ascii: "{") else { return value(depth: depth) }
        var open = 0
        var isText = false
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): isText.toggle()
            case UInt8(ascii: "\\") where isText: position += 1
            case UInt8(ascii: "["), UInt8(ascii: "{"): if !isText { open += 1 }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): if !isText { open -= 1 }
            default: break
            }
            if open == 0 { return .null }
        }
        return nil
    }

    private mutating func array(depth: Int) -> JSONValue? {
        guard depth <= Self.depthMax else { return nil }
        position += 1
        skipSpace()
        var items: [JSONValue] = []
        if consume(UInt8(ascii: "]")) { return .array(items) }
        repeat {
            skipSpace()
            guard let item = value(depth: depth) else { return nil }
            items.append(item)
            skipSpace()
        } while consume(UInt8(ascii: ","))
        return consume(UInt8(ascii: "]")) ? .array(items) : nil
    }

    private mutating func string() -> String? {
        guard consume(UInt8(ascii: "\"")) else { return nil }
        let start = position
        var all: UInt8 = 0
        while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
            all |= byte
            position += 1
        }
        if next == UInt8(ascii: "\"") {
            position += 1
            let text = bytes[start..<position - 1]
            // ASCII is valid, and to be told so takes longer than to make a text of it.
            return all < 0x80 ? String(decoding: text, as: UTF8.self) : String(validating: text, as: UTF8.self)
        }
        var text = Array(bytes[start..<position])
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escape() else { return nil }
                text.append(contentsOf: UTF8.encode(scalar) ?? .init())
            case 0..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    private mutating func escape() -> Unicode.Scalar? {
        guard let letter = next else { return nil }
        position += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = codeUnit() else { return nil }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
        // The second half of a character beyond the basic plane has to follow.
        guard consume("\\u"), let low = codeUnit(), (0xDC00..<0xE000).contains(low) else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func codeUnit() -> UInt32? {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                return nil
            }
            unit = unit << 4 | UInt32(digit)
            position += 1
        }
        return unit
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
        return position > start
    }

    private mutating func number() -> JSONValue? {
        let start = position
        _ = consume(UInt8(ascii: "-"))
        guard consume(UInt8(ascii: "0")) || digits() else { return nil }
        var isWhole = true
        if consume(UInt8(ascii: ".")) {
            isWhole = false
            guard digits() else { return nil }
        }
        if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
            isWhole = false
            if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
            guard digits() else { return nil }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let int = Int64(text) { return .int(int) }
        return Double(text).map(JSONValue.double)
    }
}
