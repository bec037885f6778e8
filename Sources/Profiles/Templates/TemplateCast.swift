import WaypostCore

/// What follows a name and a colon.
enum TemplateCast: Hashable, Sendable {
    case int, ceil, floor
    case round(Int)
    case string, upper, lower
    /// 1 or 0.
    case bool01
    /// Escaped for the tags of line protocol.
    case tag
    /// Quoted for the fields of line protocol.
    case quoted
    /// Letters, digits, `_` and `-` of ASCII; anything else is a `_`.
    case slug

    static let words: [(String, TemplateCast)] =
        [("int", .int), ("ceil", .ceil), ("floor", .floor)] + (0...7).map { ("round\($0)", .round($0)) }
        + [
            ("string", .string), ("upper", .upper), ("lower", .lower), ("bool01", .bool01), ("lptag", .tag),
            ("lpstr", .quoted), ("slug", .slug),
        ]

    init?(word: String) {
        guard let match = Self.words.first(where: { $0.0 == word }) else { return nil }
        self = match.1
    }

    /// The type after the cast; nil where it does not fit.
    func type(of type: ValueType) -> ValueType? {
        switch (self, type) {
        case (.int, .int), (.int, .float), (.ceil, .int), (.ceil, .float), (.floor, .int), (.floor, .float): .int
        case (.round, .int), (.round, .float): type
        case (.string, .int), (.string, .float), (.string, .bool), (.string, .string): .string
        case (.upper, .string), (.lower, .string), (.tag, .string), (.quoted, .string), (.slug, .string): .string
        case (.bool01, .bool): .int
        default: nil
        }
    }

    /// What it can be applied to, for messages.
    var fits: String {
        switch self {
        case .int, .ceil, .floor, .round: "a number"
        case .string: "a number, a truth value or text"
        case .upper, .lower, .tag, .quoted, .slug: "text"
        case .bool01: "a truth value"
        }
    }

    /// - Parameter name: whose value it is: a bearing stays below 360, and an accuracy is never 0.
    func applied(to value: RenderedValue, of name: RecordName?) -> RenderedValue {
        switch (self, value) {
        case (.int, .decimal(let scaled, let places)):
            .int(scaled.dividedHalfAway(by: Scaled.power(places))).kept(for: name)
        case (.ceil, .decimal(let scaled, let places)):
            .int(scaled.ceiledDivision(by: Scaled.power(places))).kept(for: name)
        case (.floor, .decimal(let scaled, let places)):
            .int(scaled.flooredDivision(by: Scaled.power(places))).kept(for: name)
        case (.round(let kept), .decimal(let scaled, let places)) where kept < places:
            // One decimal stays in any case, so that a float never looks like an integer.
            .decimal(
                scaled.dividedHalfAway(by: Scaled.power(places - kept)).saturated(times: kept == 0 ? 10 : 1),
                places: max(1, kept)
            ).kept(for: name)
        case (.string, _): .text(value.plain)
        case (.upper, .text(let text)): .text(text.uppercased())
        case (.lower, .text(let text)): .text(text.lowercased())
        case (.bool01, .bool(let flag)): .int(flag ? 1 : 0)
        case (.tag, .text(let text)): .text(text.lineProtocolTag)
        case (.quoted, .text(let text)): .text(text.lineProtocolString)
        case (.slug, .text(let text)): .text(text.slug)
        default: value
        }
    }
}

extension RenderedValue {
    fileprivate func kept(for name: RecordName?) -> RenderedValue {
        switch (name, self) {
        case (.bearing, .int(360)): .int(0)
        case (.bearing, .decimal(let scaled, let places)) where scaled == 360 * Int64(Scaled.power(places)):
            .decimal(0, places: places)
        case (.accuracy, .int(0)): .int(1)
        case (.accuracy, .decimal(0, let places)): .decimal(places == 1 ? 10 : 1, places: places)
        default: self
        }
    }

    /// As on the wire outside of quotes.
    var plain: String {
        switch self {
        case .text(let text): return text
        case .bool(let flag): return flag ? "true" : "false"
        case .masked: return "***"
        case .null: return ""
        case .int(let number): return String(number)
        case .decimal(let scaled, let places):
            var writer = JSONWriter(reserving: 24)
            writer.value(scaled: scaled, places: places)
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: UInt64) -> Int64 {
        let (quotient, rest) = magnitude.quotientAndRemainder(dividingBy: divisor)
        guard self < 0 else { return Int64(clamping: quotient) }
        return -Int64(clamping: rest > 0 ? quotient + 1 : quotient)
    }

    fileprivate func ceiledDivision(by divisor: UInt64) -> Int64 {
        let (quotient, rest) = magnitude.quotientAndRemainder(dividingBy: divisor)
        return self < 0 ? -Int64(clamping: quotient) : Int64(clamping: rest > 0 ? quotient + 1 : quotient)
    }
}

extension String {
    /// Comma, `=` and space escaped. Control characters are spaces too, since a line must not contain any.
    ///
    /// A `\` at the end would escape what follows, and two of them before a comma are an escaped comma to some servers and an
    /// escaped `\` to others: both are left out. A tag without a value is no tag, so an empty one is written as `_`.
    fileprivate var lineProtocolTag: String {
        let backslash = UInt8(ascii: "\\")
        var bytes: [UInt8] = []
        func dropBackslashes() { while bytes.last == backslash { bytes.removeLast() } }
        for byte in utf8 {
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: "="), 0x00...0x20, 0x7F:
                dropBackslashes()
                bytes += [backslash, byte > 0x20 && byte < 0x7F ? byte : 0x20]
            default: bytes.append(byte)
            }
        }
        dropBackslashes()
        return bytes.isEmpty ? "_" : String(decoding: bytes, as: UTF8.self)
    }

    /// Letters, digits, `_` and `-` of ASCII, anything else as `_`. Names of other scripts would all be the same: one without
    /// any letter or digit of ASCII is `_` and a hash.
    var slug: String {
        formerSlug.utf8.contains(where: \.isASCIIAlphanumeric) || isEmpty ? formerSlug : "_\(fingerprint)"
    }

    /// The same without the hash, as earlier versions had it.
    var formerSlug: String {
        let kept = unicodeScalars.map { scalar in
            scalar.isASCII && (UInt8(ascii: scalar).isASCIIAlphanumeric || scalar == "_" || scalar == "-")
                ? Character(scalar) : "_"
        }
        return kept.isEmpty ? "_" : String(kept)
    }

    /// Eight hexadecimal digits: FNV-1a of the UTF-8, of 32 bits.
    private var fingerprint: String {
        let hash = utf8.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }

    fileprivate var lineProtocolString: String {
        var bytes = [UInt8(ascii: "\"")]
        for byte in utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isASCIIAlphanumeric: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
