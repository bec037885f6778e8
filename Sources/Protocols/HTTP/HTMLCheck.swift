import WaypostCore

/// Whether the body of a reply is a page of HTML: what a captive portal, a login or a wrong path gives instead of an answer.
///
/// Only the first bytes decide, never the type: servers label `OK` as `text/html`, and portals label pages as JSON.
package enum HTMLCheck: Hashable, Sendable {
    /// - Parameter title: as it can be shown to people; nil where no title was read.
    case page(title: String?)
    case noPage
    /// The bytes that would tell are missing, or are encoded.
    case unknown(UnclearBody)

    /// What is in a page alone: a script may well answer `<p>OK</p>`.
    private static let openings = [
        "<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<script", "<style", "<link ", "<base ",
        "<center", "<form ", "<frameset", "<iframe", "<noscript",
    ].map { Array($0.utf8) }
    /// Of UTF-8 and the two orders of UTF-16.
    private static let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFF, 0xFE], [0xFE, 0xFF]]
    private static let comment = Array("<!--".utf8)
    private static let declaration = Array("<?xml".utf8)
    private static let titleBytesMax = 80

    package init(_ reply: UplinkReply) {
        let coding = reply.header("content-encoding") ?? "identity"
        if !reply.body.isEmpty, coding.lowercased() != "identity" || reply.body.starts(with: [0x1F, 0x8B]) {
            self = .unknown(.encoded)
            return
        }
        let text = Self.withoutMark(reply.body)
        switch Self.isPage(text) {
        case true?: self = .page(title: Self.title(of: text))
        case false?: self = .noPage
        case nil: self = reply.bodyIncomplete ? .unknown(.cut) : .noPage
        }
    }

    /// For people: causes, and where to look.
    ///
    /// - Parameter key: of the configuration, with the address of the server.
    package static func words(title: String?, key: String) -> String {
        let name = title.map { " (\"\($0)\")" } ?? ""
        return "a web page\(name) instead of an answer: a captive portal or a login page is in the way, "
            + "or the path in \(key) is wrong"
    }

    /// The body after its byte order marks; of UTF-16 only the bytes that are not zero, which are all of its markup.
    private static func withoutMark(_ body: [UInt8]) -> ArraySlice<UInt8> {
        var text = body[...]
        while text.starts(with: marks[0]) { text = text.dropFirst(marks[0].count) }
        let isMarked = marks.dropFirst().contains { text.starts(with: $0) }
        // A zero beside the first character is UTF-16 without a mark; no text in UTF-8 has one.
        guard isMarked || text.prefix(2).contains(0) else { return text }
        return text.dropFirst(isMarked ? 2 : 0).filter { $0 != 0 }[...]
    }

    /// nil = more bytes might make it a page.
    private static func isPage(_ text: ArraySlice<UInt8>) -> Bool? {
        var rest = text
        while true {
            rest = rest.drop(while: \.isBlank)
            // A blank that does not break.
            while rest.starts(with: [0xC2, 0xA0]) { rest = rest.dropFirst(2).drop(while: \.isBlank) }
            let end: [UInt8]
            if rest.begins(with: comment) {
                end = Array("-->".utf8)
                // The dashes of the beginning may be those of the end.
                rest = rest.dropFirst(2)
            } else if rest.begins(with: declaration) {
                end = Array("?>".utf8)
            } else {
                break
            }
            guard let found = rest.firstRange(of: end) else { return nil }
            rest = rest[found.upperBound...]
        }
        // Any blanks may stand between the two words.
        let doctype = Array("<!doctype".utf8)
        if rest.begins(with: doctype) {
            let name = rest.dropFirst(doctype.count).drop(while: \.isBlank)
            rest = (doctype + [0x20] + name.prefix(8))[...]
        }
        if openings.contains(where: { rest.begins(with: $0) }) { return true }
        let small = rest.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        let mayBecomeOne = (openings + [comment, declaration] + marks).contains { $0.starts(with: small) }
        return mayBecomeOne ? nil : false
    }

    private static func title(of text: ArraySlice<UInt8>) -> String? {
        let tag = Array("<title".utf8)
        guard let start = text.indices.first(where: { text[$0] == tag[0] && text[$0...].begins(with: tag) }),
            let open = text[start...].firstIndex(of: UInt8(ascii: ">"))
        else { return nil }
        let content = text[(open + 1)...].prefix { $0 != UInt8(ascii: "<") }
        let words = Array(content.split(whereSeparator: \.isBlank).joined(separator: [0x20]))
        return words.isEmpty ? nil : String(decoding: words, as: UTF8.self).visible(bytesMax: titleBytesMax)
    }
}

extension UInt8 {
    fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}

extension ArraySlice<UInt8> {
    /// Letters of ASCII in either case.
    ///
    /// - Parameter word: without capitals.
    fileprivate func begins(with word: [UInt8]) -> Bool {
        count >= word.count && zip(self, word).allSatisfy { (0x41...0x5A).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
    }
}
