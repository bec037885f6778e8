/// A JSON value with the place where it stands, so that a record can be passed on byte by byte.
struct JSONNode {
    indirect enum Value {
        case null
        case bool(Bool)
        case number(Double)
        case string(String)
        case array([JSONNode])
        case object([(key: String, node: JSONNode)])
    }

    var value: Value
    var range: Range<Int>

    subscript(key: String) -> JSONNode? {
        guard case .object(let members) = value else { return nil }
        return members.first { $0.key == key }?.node
    }
}

/// Reads JSON (RFC 8259) strictly: no comments, no trailing commas, no text after the value.
struct JSONReader {
    struct Problem: Error {
        var offset: Int
        var what: String
    }

    private let bytes: [UInt8]
    private var position = 0
    private static let deepest = 32

    static func read(_ bytes: [UInt8]) throws(Problem) -> JSONNode {
        var reader = JSONReader(bytes: bytes)
        let node = try reader.node(depth: 0)
        reader.skipBlanks()
        if reader.position < bytes.count { throw reader.problem("text after the end") }
        return node
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func problem(_ what: String) -> Problem { Problem(offset: position, what: what) }

    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func node(depth: Int) throws(Problem) -> JSONNode {
        skipBlanks()
        if depth > Self.deepest { throw problem("nested too deeply") }
        let start = position
        let value: JSONNode.Value
        switch next {
        case UInt8(ascii: "{"): value = try object(depth)
        case UInt8(ascii: "["): value = try array(depth)
        case UInt8(ascii: "\""): value = .string(try string())
        case UInt8(ascii: "t"): value = try word("true", .bool(true))
        case UInt8(ascii: "f"): value = try word("false", .bool(false))
        case UInt8(ascii: "n"): value = try word("null", .null)
        default: value = .number(try number())
        }
        return JSONNode(value: value, range: start..<position)
    }

    private mutating func object(_ depth: Int) throws(Problem) -> JSONNode.Value {
        position += 1
        var members: [(key: String, node: JSONNode)] = []
        skipBlanks()
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipBlanks()
            guard next == UInt8(ascii: "\"") else { throw problem("a key is missing") }
            let key = try string()
            skipBlanks()
            guard take(UInt8(ascii: ":")) else { throw problem("a colon is missing") }
            if members.contains(where: { $0.key == key }) { throw problem("the key \(key) stands twice") }
            members.append((key, try node(depth: depth + 1)))
            skipBlanks()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw problem("a comma or closing brace is missing") }
        return .object(members)
    }

    private mutating func array(_ depth: Int) throws(Problem) -> JSONNode.Value {
        position += 1
        var elements: [JSONNode] = []
        skipBlanks()
        if take(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            elements.append(try node(depth: depth + 1))
            skipBlanks()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw problem("a comma or closing bracket is missing") }
        return .array(elements)
    }

    private mutating func word(_ word: StaticString, _ value: JSONNode.Value) throws(Problem) -> JSONNode.Value {
        let length = word.utf8CodeUnitCount
        let text = word.withUTF8Buffer { Array($0) }
        guard position + length <= bytes.count, Array(bytes[position..<(position + length)]) == text else {
            throw problem("not a value")
        }
        position += length
        return value
    }

    private mutating func number() throws(Problem) -> Double {
        let start = position
        _ = take(UInt8(ascii: "-"))
        let whole = digits()
        var isPlain = !whole.isEmpty && (whole.count == 1 || whole.first != UInt8(ascii: "0"))
        if take(UInt8(ascii: ".")) { isPlain = !digits().isEmpty && isPlain }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            isPlain = !digits().isEmpty && isPlain
        }
        guard isPlain, let number = Double(String(decoding: bytes[start..<position], as: UTF8.self)), number.isFinite
        else { throw problem("not a value") }
        return number
    }

    private mutating func digits() -> ArraySlice<UInt8> {
        let start = position
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func string() throws(Problem) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else { throw problem("not UTF-8") }
                return string
            case UInt8(ascii: "\\"): text.append(contentsOf: String(try escape()).utf8)
            case 0..<0x20: throw problem("a control character in a string")
            default: text.append(byte)
            }
        }
        throw problem("a string does not end")
    }

    private mutating func escape() throws(Problem) -> Unicode.Scalar {
        guard let letter = next else { throw problem("a string does not end") }
        position += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(letter)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw problem("an unknown escape")
        }
    }

    private mutating func unicodeEscape() throws(Problem) -> Unicode.Scalar {
        let unit = try hexUnit()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard (0xD800..<0xDC00).contains(unit), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
            throw problem("half a surrogate pair")
        }
        let low = try hexUnit()
        guard (0xDC00..<0xE000).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
        else { throw problem("half a surrogate pair") }
        return scalar
    }

    private mutating func hexUnit() throws(Problem) -> UInt32 {
        guard position + 4 <= bytes.count else { throw problem("a string does not end") }
        let text = bytes[position..<(position + 4)]
        guard text.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
            let unit = UInt32(String(decoding: text, as: UTF8.self), radix: 16)
        else { throw problem("not four hexadecimal digits") }
        position += 4
        return unit
    }
}
