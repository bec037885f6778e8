/// Reads XML 1.0 in UTF-8 as it comes in, in pieces of any size and within bounds. Elements and attributes are read strictly;
/// another document may follow.
///
/// It knows elements, attributes, text, CDATA and the five entities that XML itself has; what else begins with `&` is text. A
/// document cannot define others, so that none can grow; comments and processing instructions are passed over.
struct XMLReader {
    enum Event: Hashable {
        case begin(name: String, attributes: [String: String])
        /// In pieces; of an element's own text only the first 4 KiB.
        case text(String)
        case end(name: String)
    }

    /// A document that cannot be read.
    struct Problem: Error, Hashable {
        var line: Int
        var words: String
    }

    static let depthMax = 64
    static let attributesMax = 64
    /// Bytes of a tag with its attributes, and of the text of an element that is passed on.
    static let tagMax = 16_384
    static let textMax = 4096

    private enum State {
        case text
        /// After `<`; the bytes since are in `buffer`.
        case markup
        /// Within the quotes of an attribute.
        case quoted(UInt8)
        /// Up to the words that end it.
        case skipped(until: StaticString)
        /// Of CDATA, up to `]]>`.
        case data
    }

    private var state = State.text
    private var buffer: [UInt8] = []
    /// Open elements with the line on which each begins.
    private var open: [(name: String, line: Int)] = []
    private var hasRoot = false
    private var textCount = 0
    /// The line of the byte that is read, from 1.
    private(set) var line = 1
    /// Where the text or tag in `buffer` begins.
    private var began = 1

    /// The elements around the place that has been reached.
    var depth: Int { open.count }

    /// - Parameter take: gets each event with the line on which it begins.
    /// - Throws: at the first mistake; nothing can be read after it.
    mutating func read(_ bytes: Span<UInt8>, _ take: (Event, Int) -> Void) throws(Problem) {
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == 0x0A { line += 1 }
            switch state {
            case .text: try readText(byte, take)
            case .markup: try readMarkup(byte, take)
            case .quoted(let quote):
                try keep(byte)
                if byte == quote { state = .markup }
            case .skipped(let end): try skip(byte, until: end)
            case .data: try readData(byte, take)
            }
        }
    }

    /// The input is over.
    /// - Throws: where the document is not.
    mutating func end() throws(Problem) {
        if let last = open.last {
            throw problem("the file ends within <\(last.name)>, which begins on line \(last.line)")
        }
        guard case .text = state else { throw problem("the file ends within a tag") }
        guard hasRoot else { throw problem("there is no element") }
    }

    private func problem(_ words: String, line: Int? = nil) -> Problem {
        Problem(line: line ?? self.line, words: words)
    }

    // MARK: Text

    private mutating func readText(_ byte: UInt8, _ take: (Event, Int) -> Void) throws(Problem) {
        if byte == UInt8(ascii: "<") {
            flushText(take)
            state = .markup
            began = line
            return
        }
        if buffer.isEmpty { began = line }
        guard !open.isEmpty else {
            // A byte order mark may precede a document, and NULs end a file whose end was not written.
            guard Self.isSpace(byte) || byte == 0 || [0xEF, 0xBB, 0xBF].contains(byte) else {
                throw problem(hasRoot ? "text after the end of the document" : "text before the first element")
            }
            return
        }
        if textCount < Self.textMax {
            buffer.append(byte)
            textCount += 1
        }
    }

    private mutating func flushText(_ take: (Event, Int) -> Void) {
        defer { buffer.removeAll(keepingCapacity: true) }
        guard buffer.contains(where: { !Self.isSpace($0) }) else { return }
        take(.text(Self.decoded(buffer[...])), began)
    }

    private mutating func readData(_ byte: UInt8, _ take: (Event, Int) -> Void) throws(Problem) {
        buffer.append(byte)
        if buffer.suffix(3).elementsEqual([0x5D, 0x5D, 0x3E]) {
            guard !open.isEmpty else { throw problem("CDATA outside of all elements") }
            let text = String(decoding: buffer.dropLast(3).prefix(Self.textMax), as: UTF8.self)
            buffer.removeAll(keepingCapacity: true)
            state = .text
            take(.text(text), began)
        } else if buffer.count > Self.textMax + 3 {
            // What is beyond the limit is not passed on; the end has to be found.
            buffer.remove(at: Self.textMax)
        }
    }

    // MARK: Tags

    private mutating func keep(_ byte: UInt8) throws(Problem) {
        guard buffer.count < Self.tagMax else {
            throw problem("a tag of more than \(Self.tagMax) bytes", line: began)
        }
        buffer.append(byte)
    }

    private mutating func readMarkup(_ byte: UInt8, _ take: (Event, Int) -> Void) throws(Problem) {
        if byte == UInt8(ascii: ">") {
            defer { buffer.removeAll(keepingCapacity: true) }
            state = .text
            return try tag(take)
        }
        if byte == UInt8(ascii: "<") { throw problem("\"<\" within a tag") }
        try keep(byte)
        switch buffer.first {
        case UInt8(ascii: "?"): begin(.skipped(until: "?>"))
        case UInt8(ascii: "!"): try readDeclaration()
        default: if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { state = .quoted(byte) }
        }
    }

    /// A comment, CDATA or the document type.
    private mutating func readDeclaration() throws(Problem) {
        if Self.text(buffer) == "!--" { return begin(.skipped(until: "-->")) }
        if Self.text(buffer) == "![CDATA[" { return begin(.data) }
        let isDeclared = ["!--", "![CDATA[", "!DOCTYPE"].contains { $0.utf8.starts(with: buffer) }
        if buffer.last == UInt8(ascii: "["), buffer.starts(with: "!DOCTYPE".utf8) {
            throw problem("a document that defines entities of its own is not read")
        }
        guard isDeclared || buffer.starts(with: "!DOCTYPE".utf8) else { throw problem("an unknown declaration") }
    }

    private mutating func begin(_ next: State) {
        buffer.removeAll(keepingCapacity: true)
        state = next
    }

    private mutating func skip(_ byte: UInt8, until end: StaticString) throws(Problem) {
        buffer.append(byte)
        let length = end.utf8CodeUnitCount
        if buffer.count > length { buffer.removeFirst() }
        guard buffer.count == length, end.withUTF8Buffer({ $0.elementsEqual(buffer) }) else { return }
        begin(.text)
    }

    private mutating func tag(_ take: (Event, Int) -> Void) throws(Problem) {
        if buffer.first == UInt8(ascii: "!") { return }
        textCount = 0
        if buffer.first == UInt8(ascii: "/") { return try endTag(buffer[1...], take) }
        let isEmpty = buffer.last == UInt8(ascii: "/")
        var rest = isEmpty ? buffer.dropLast() : buffer[...]
        let name = try name(&rest)
        hasRoot = true
        take(.begin(name: name, attributes: try attributes(&rest)), began)
        if isEmpty { return take(.end(name: name), began) }
        guard open.count < Self.depthMax else { throw problem("more than \(Self.depthMax) elements in each other") }
        open.append((name, began))
    }

    private mutating func endTag(_ bytes: ArraySlice<UInt8>, _ take: (Event, Int) -> Void) throws(Problem) {
        var rest = bytes
        let name = try name(&rest)
        guard rest.allSatisfy(Self.isSpace) else { throw problem("</\(name)> with more than its name", line: began) }
        guard let last = open.popLast() else { throw problem("</\(name)> ends nothing", line: began) }
        guard last.name == name else {
            throw problem("</\(name)> where </\(last.name)> is missing, which begins on line \(last.line)", line: began)
        }
        take(.end(name: name), began)
    }

    private func attributes(_ rest: inout ArraySlice<UInt8>) throws(Problem) -> [String: String] {
        var attributes: [String: String] = [:]
        while true {
            let before = rest.count
            rest = rest.drop(while: Self.isSpace)
            guard !rest.isEmpty else { return attributes }
            guard rest.count < before else { throw problem("no space before an attribute", line: began) }
            let name = try name(&rest)
            rest = rest.drop(while: Self.isSpace)
            guard rest.popFirst() == UInt8(ascii: "=") else { throw problem("no value of \(name)", line: began) }
            rest = rest.drop(while: Self.isSpace)
            guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                let end = rest.firstIndex(of: quote)
            else { throw problem("no quotes around the value of \(name)", line: began) }
            let value = Self.decoded(rest[..<end])
            rest = rest[(end + 1)...]
            guard attributes.updateValue(value, forKey: name) == nil else {
                throw problem("\(name) twice", line: began)
            }
            guard attributes.count <= Self.attributesMax else {
                throw problem("more than \(Self.attributesMax) attributes", line: began)
            }
        }
    }

    private func name(_ rest: inout ArraySlice<UInt8>) throws(Problem) -> String {
        let name = rest.prefix { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "-"),
                UInt8(ascii: "."), 0x80...:
                true
            default: false
            }
        }
        guard let first = name.first, first >= 0x41 || first == UInt8(ascii: ":") else {
            throw problem("no name after \"<\", or none of an attribute", line: began)
        }
        rest = rest[name.endIndex...]
        return Self.text(name)
    }

    // MARK: Characters

    /// With entities replaced.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        guard bytes.contains(UInt8(ascii: "&")) else { return text(bytes) }
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "&"), let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")),
                let scalar = scalar(text(rest[..<end]))
            else {
                result.append(byte)
                continue
            }
            result.append(contentsOf: Array(String(Character(scalar)).utf8))
            rest = rest[(end + 1)...]
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func scalar(_ entity: String) -> Unicode.Scalar? {
        switch entity {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default: break
        }
        guard entity.hasPrefix("#") else { return nil }
        let digits = entity.dropFirst()
        let code = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return code.flatMap { $0 == 0 ? nil : Unicode.Scalar($0) }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
    private static func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }
}
