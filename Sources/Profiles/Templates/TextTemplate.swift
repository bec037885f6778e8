import Protocols
import WaypostCore

/// Text with references: a URL, a header, a line, a cell, a field of a form, a string of JSON.
struct TextTemplate: Hashable, Sendable {
    enum Part: Hashable, Sendable {
        case literal(String)
        case reference(TemplateExpression)
        /// Left out entirely when a reference in it is nil.
        case optional([Part])
    }

    /// How values are written between the literals.
    enum Escape {
        /// Unchanged.
        case none
        /// Control characters become spaces: a line feed would begin another header or another line.
        case oneLine
        /// RFC 3986: all but the unreserved characters. Literals and the base URL are unchanged, but `?` or `&` at the begin of
        /// an optional part, which is `?` where the URL has none yet, else `&`.
        case percent
        /// The same with literals and base URL.
        case percentAll
        /// A level of a topic.
        case topic
    }

    var parts: [Part]

    /// Appends the text; false when a reference outside of `[? ]` is nil, and then nothing is appended.
    func write(
        _ row: QueuedLocation, in context: BatchContext, escaping escape: Escape, to bytes: inout [UInt8]
    ) -> Bool {
        let start = bytes.count
        let isWritten = Self.write(parts, row, context, escape, &bytes)
        if !isWritten { bytes.removeLast(bytes.count - start) }
        return isWritten
    }

    private static func write(
        _ parts: [Part], _ row: QueuedLocation, _ context: BatchContext, _ escape: Escape, _ bytes: inout [UInt8]
    ) -> Bool {
        for part in parts {
            switch part {
            case .literal(let text): append(text, escape == .percentAll ? .percentAll : .none, &bytes)
            case .reference(let expression):
                guard let value = expression.value(of: row, in: context), value != .null else { return false }
                let isVerbatim =
                    value == .masked || (escape == .percent && expression.source == .endpoint(.baseURL))
                append(value.plain, isVerbatim ? .none : escape, &bytes)
            case .optional(let inner):
                let start = bytes.count
                if !write(inner, row, context, escape, &bytes) { bytes.removeLast(bytes.count - start) }
                if escape == .percent { joinQuery(at: start, &bytes) }
            }
        }
        return true
    }

    private static func joinQuery(at start: Int, _ bytes: inout [UInt8]) {
        let (question, ampersand) = (UInt8(ascii: "?"), UInt8(ascii: "&"))
        guard start < bytes.count, bytes[start] == question || bytes[start] == ampersand else { return }
        bytes[start] = bytes[..<start].contains(question) ? ampersand : question
    }

    static func append(_ text: String, _ escape: Escape, _ bytes: inout [UInt8]) {
        switch escape {
        case .none: bytes.append(contentsOf: text.utf8)
        case .oneLine: for byte in text.utf8 { bytes.append(byte < 0x20 || byte == 0x7F ? 0x20 : byte) }
        case .percent, .percentAll: bytes.append(percentEncoding: text.utf8)
        case .topic: bytes.append(contentsOf: MQTTTopic.level(text).utf8)
        }
    }

    /// As a JSON string; false = nil, nothing is written.
    func write(_ row: QueuedLocation, in context: BatchContext, to writer: inout JSONWriter) -> Bool {
        let mark = writer.mark
        writer.beginText()
        for part in parts {
            switch part {
            case .literal(let text): writer.append(text: text)
            case .reference(let expression):
                guard let value = expression.value(of: row, in: context), value != .null else {
                    writer.goBack(to: mark)
                    return false
                }
                writer.append(text: value.plain)
            case .optional: break
            }
        }
        writer.endText()
        return true
    }
}
