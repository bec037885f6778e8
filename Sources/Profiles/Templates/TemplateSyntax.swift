/// What a string leaf of a template says, before names are looked up.
enum TemplateSyntax: Hashable {
    case literal(String)
    /// The whole leaf is one reference, so that a number stays a number.
    case reference(Reference)
    case text([Part])

    struct Reference: Hashable {
        var name: String
        /// `$vars.x?`: a missing constant is nil.
        var isOptional = false
        var casts: [String] = []
        var fallback: RenderedValue?
        /// `$vars.x?|$name`: the value that stands in for a missing constant.
        var otherwise: String?
    }

    enum Part: Hashable {
        case literal(String)
        case reference(Reference)
        /// `[? … ]`; such parts inside of it have none of their own.
        case optional([Part])
    }

    /// Why a leaf cannot be read.
    struct Flaw: Error, Hashable {
        /// `found …, expected …`
        var message: String
        var suggestion: String?
    }
}

/// Reads one string leaf.
struct TemplateParser {
    private let text: [UInt8]
    private let allowsSegments: Bool
    private var index = 0

    /// - Parameter allowsSegments: `[? … ]` is allowed in this leaf.
    static func parse(_ text: String, allowsSegments: Bool) -> Result<TemplateSyntax, TemplateSyntax.Flaw> {
        var parser = TemplateParser(text: Array(text.utf8), allowsSegments: allowsSegments)
        return Result { () throws(TemplateSyntax.Flaw) in try parser.leaf() }
    }

    private init(text: [UInt8], allowsSegments: Bool) {
        self.text = text
        self.allowsSegments = allowsSegments
    }

    private var next: UInt8? { index < text.count ? text[index] : nil }
    private var afterNext: UInt8? { index + 1 < text.count ? text[index + 1] : nil }

    private func flaw(_ message: String, suggestion: String? = nil) -> TemplateSyntax.Flaw {
        TemplateSyntax.Flaw(message: message, suggestion: suggestion)
    }

    private var whole: String { "\"\(String(decoding: text, as: UTF8.self))\"" }

    private mutating func leaf() throws(TemplateSyntax.Flaw) -> TemplateSyntax {
        if text.first == UInt8(ascii: "$"), let start = afterNext, start.isLetter {
            index = 1
            let reference = try reference(until: nil)
            guard index == text.count else {
                throw flaw(
                    "found \(whole), expected one reference alone, or ${\(reference.name)} inside text, or $$ for a dollar"
                )
            }
            return .reference(reference)
        }
        let parts = try parts(depth: 0)
        switch parts.count {
        case 0: return .literal("")
        case 1: if case .literal(let text) = parts[0] { return .literal(text) }
        default: break
        }
        return .text(parts)
    }

    /// - Parameter depth: how many `[?` are open.
    private mutating func parts(depth: Int) throws(TemplateSyntax.Flaw) -> [TemplateSyntax.Part] {
        var parts: [TemplateSyntax.Part] = []
        var plain: [UInt8] = []
        func flush() {
            if !plain.isEmpty { parts.append(.literal(String(decoding: plain, as: UTF8.self))) }
            plain = []
        }
        while let byte = next {
            switch (byte, afterNext) {
            case (UInt8(ascii: "$"), UInt8(ascii: "{")):
                index += 2
                flush()
                parts.append(.reference(try reference(until: UInt8(ascii: "}"))))
            case (UInt8(ascii: "$"), UInt8(ascii: "$")), (UInt8(ascii: "$"), UInt8(ascii: "[")):
                plain.append(text[index + 1])
                index += 2
            case (UInt8(ascii: "$"), let letter?) where letter.isLetter:
                index += 1
                let name = (try? reference(until: nil).name) ?? ""
                throw flaw(
                    "found $\(name) inside text, expected ${\(name)}, or $$ for a dollar", suggestion: "${\(name)}")
            case (UInt8(ascii: "["), UInt8(ascii: "?")):
                guard allowsSegments else {
                    throw flaw("found [? in \(whole), expected it only in url, headers and line; $[ is a plain [")
                }
                guard depth < 2 else { throw flaw("found [? in \(whole) at a third level, expected at most two") }
                index += 2
                flush()
                parts.append(.optional(try self.parts(depth: depth + 1)))
            case (UInt8(ascii: "]"), _) where depth > 0:
                index += 1
                flush()
                return parts
            default:
                plain.append(byte)
                index += 1
            }
        }
        if depth > 0 { throw flaw("found [? without ] in \(whole), expected [? … ]") }
        flush()
        return parts
    }

    /// After `$` or `${`, up to and including `end`.
    private mutating func reference(until end: UInt8?) throws(TemplateSyntax.Flaw) -> TemplateSyntax.Reference {
        var reference = TemplateSyntax.Reference(name: word { $0.isNamePart })
        guard !reference.name.isEmpty else { throw flaw("found \(whole), expected a name between ${ and }") }
        if next == UInt8(ascii: "?") {
            index += 1
            reference.isOptional = true
        }
        while next == UInt8(ascii: ":") {
            index += 1
            reference.casts.append(word { $0.isNamePart })
        }
        if next == UInt8(ascii: "|") {
            index += 1
            if next == UInt8(ascii: "$") {
                index += 1
                reference.otherwise = word { $0.isNamePart }
            } else {
                reference.fallback = try fallback(of: reference.name)
            }
        }
        if let end {
            guard next == end else { throw flaw("found \(whole), expected } behind ${\(reference.name)") }
            index += 1
        }
        return reference
    }

    private mutating func word(_ belongs: (UInt8) -> Bool) -> String {
        let start = index
        while let byte = next, belongs(byte) { index += 1 }
        return String(decoding: text[start..<index], as: UTF8.self)
    }

    /// A JSON scalar.
    private mutating func fallback(of name: String) throws(TemplateSyntax.Flaw) -> RenderedValue {
        if next == UInt8(ascii: "\"") { return .text(try quoted()) }
        let word = word { $0.isNamePart || $0 == UInt8(ascii: "+") }
        switch word {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .null
        default: break
        }
        if let number = RenderedValue(number: word) { return number }
        throw flaw(
            "found \"\(word)\" as default of $\(name), expected a number without exponent, true, false, null or \"text\"",
            suggestion: word.isEmpty ? nil : "$\(name)|\"\(word)\"")
    }

    private mutating func quoted() throws(TemplateSyntax.Flaw) -> String {
        index += 1
        var bytes: [UInt8] = []
        while let byte = next, byte != UInt8(ascii: "\"") {
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch next {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(text[index])
            case UInt8(ascii: "n"): bytes.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "t"): bytes.append(UInt8(ascii: "\t"))
            default: throw flaw("found a \\ in the default of \(whole), expected \\\", \\\\, \\/, \\n or \\t")
            }
            index += 1
        }
        guard next != nil else { throw flaw("found \(whole), expected the default to end with \"") }
        index += 1
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isLetter: Bool { (0x61...0x7A).contains(self | 0x20) }
    fileprivate var isNamePart: Bool {
        isLetter || (0x30...0x39).contains(self) || self == UInt8(ascii: "_") || self == UInt8(ascii: ".")
            || self == UInt8(ascii: "-")
    }
}

extension RenderedValue {
    /// `-1` or `0.5`; nil for what is no JSON number, has an exponent or more than 15 digits.
    init?(number text: String) {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        let halves = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(halves.count), digits.utf8.count <= 16, let whole = halves.first, !whole.isEmpty,
            whole == "0" || !whole.hasPrefix("0"),
            halves.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let scaled = Int64(text.filter { $0 != "." })
        else { return nil }
        self = halves.count == 1 ? .int(scaled) : .decimal(scaled, places: halves[1].utf8.count)
    }
}
