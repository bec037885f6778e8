import CTOML
import Profiles
import WaypostCore

/// A value of a TOML file and its position.
struct TOMLNode {
    var value: TOMLValue
    var position: SourcePosition
}

enum TOMLValue {
    case string(String)
    case integer(Int64)
    case float(Double)
    case boolean(Bool)
    /// Dates and times; no key of waypost takes one.
    case datetime
    case array([TOMLNode])
    case table(TOMLTable)
}

/// A table in the order in which it is written.
struct TOMLTable {
    var entries: [TOMLEntry] = []

    subscript(key: String) -> TOMLEntry? { entries.first { $0.key == key } }
}

struct TOMLEntry {
    var key: String
    var keyPosition: SourcePosition
    var node: TOMLNode
}

extension TOMLTable {
    /// Throws the one syntax error at which toml++ stops.
    static func parse(_ bytes: [UInt8], file: String) throws(ConfigurationProblems) -> TOMLTable {
        let document = bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { ctoml_parse($0.baseAddress, $0.count) }
        }
        guard let document else {
            throw ConfigurationProblems([
                ConfigurationProblem(
                    "no memory to read the file", at: SourcePosition(file: file, line: 1, column: 1))
            ])
        }
        defer { ctoml_free(document) }
        if let error = ctoml_error(document) {
            let number = max(1, Int(ctoml_error_line(document)))
            // At the end of the text toml++ counts a line feed as a column of the line that it ends.
            let columns = line(number, of: bytes).unicodeScalars.count + 1
            let position = SourcePosition(
                file: file, line: number, column: min(max(1, Int(ctoml_error_column(document))), columns))
            throw ConfigurationProblems([
                ConfigurationProblem(
                    syntaxMessage(String(cString: error), line: line(position.line, of: bytes)), at: position)
            ])
        }
        let nodes = UnsafeBufferPointer(start: ctoml_nodes(document), count: ctoml_count(document))
        var children = [[Int]](repeating: [], count: nodes.count)
        for index in nodes.indices.dropFirst() { children[Int(nodes[index].parent)].append(index) }
        guard case .table(let root) = build(0, nodes: nodes, children: children, file: file).value else {
            return TOMLTable()
        }
        return root
    }

    private static func build(
        _ index: Int, nodes: UnsafeBufferPointer<ctoml_node>, children: [[Int]], file: String
    ) -> TOMLNode {
        let node = nodes[index]
        let value: TOMLValue
        switch Int(node.kind) {
        case CTOML_STRING: value = .string(string(node.text, node.text_length))
        case CTOML_INTEGER: value = .integer(node.integer)
        case CTOML_FLOAT: value = .float(node.number)
        case CTOML_BOOLEAN: value = .boolean(node.boolean)
        case CTOML_ARRAY:
            value = .array(children[index].map { build($0, nodes: nodes, children: children, file: file) })
        case CTOML_TABLE:
            value = .table(
                TOMLTable(
                    entries: children[index].map { child in
                        TOMLEntry(
                            key: string(nodes[child].key, nodes[child].key_length),
                            keyPosition: SourcePosition(
                                file: file, line: Int(nodes[child].key_line), column: Int(nodes[child].key_column)),
                            node: build(child, nodes: nodes, children: children, file: file))
                    }))
        default: value = .datetime
        }
        return TOMLNode(
            value: value, position: SourcePosition(file: file, line: Int(node.line), column: Int(node.column)))
    }

    private static func string(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
        guard let start, length > 0 else { return "" }
        return start.withMemoryRebound(to: UInt8.self, capacity: length) {
            String(decoding: UnsafeBufferPointer(start: $0, count: length), as: UTF8.self)
        }
    }

    private static func line(_ number: Int, of bytes: [UInt8]) -> String {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: number, omittingEmptySubsequences: false)
        return number <= lines.count ? String(decoding: lines[number - 1], as: UTF8.self) : ""
    }

    /// toml++ reports what its parser was doing ("Error while parsing key-value pair: …"); the user wants the rest.
    private static func syntaxMessage(_ text: String, line: String) -> String {
        var reason = Substring(text)
        if reason.hasPrefix("Error while parsing "), let colon = reason.firstIndex(of: ":") {
            reason = reason[reason.index(after: colon)...].drop { $0 == " " }
        }
        var message = "not valid TOML: \(reason)"
        if let quote = line.first(where: { "“”„‟‘’‚«»″".contains($0) }) {
            message += " (found the typographic quotation mark \(quote): TOML knows only \" and ')"
        } else if let bare = unquotedValue(in: line) {
            message += " (a value with letters needs quotes: \"\(bare)\")"
        }
        return message
    }

    /// `5m` of the line `stop_timeout = 5m`, the mistake that TOML words worst.
    private static func unquotedValue(in line: String) -> String? {
        guard let equals = line.firstIndex(of: "=") else { return nil }
        let value = line[line.index(after: equals)...].prefix { $0 != "#" && $0 != "\r" }.trimmingSpaces
        let plain = value.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._:-%".contains($0)) }
        let words = ["true", "false", "inf", "nan", ""]
        guard plain, value.contains(where: \.isLetter), !words.contains(value), value.count <= 60 else { return nil }
        return value
    }
}

extension TOMLTable {
    /// Lays `other` over this table: tables are joined key by key, arrays of tables are appended, all else is replaced.
    mutating func merge(_ other: TOMLTable) {
        // No key comes twice in one of them.
        let places = Dictionary(zip(entries.lazy.map(\.key), entries.indices)) { first, _ in first }
        for entry in other.entries {
            guard let index = places[entry.key] else {
                entries.append(entry)
                continue
            }
            switch (entries[index].node.value, entry.node.value) {
            case (.table(var mine), .table(let theirs)):
                mine.merge(theirs)
                entries[index].node.value = .table(mine)
            case (.array(let mine), .array(let theirs)) where mine.areTables && theirs.areTables:
                entries[index].node.value = .array(mine + theirs)
            default:
                entries[index] = entry
            }
        }
    }
}

extension [TOMLNode] {
    fileprivate var areTables: Bool {
        !isEmpty && allSatisfy { if case .table = $0.value { true } else { false } }
    }
}
