import Protocols

/// By which the server knows what it sent: the next request asks for the list only if there is another.
package struct ListVersion: Hashable, Sendable {
    private static let bytesMax = 1024

    /// As the server wrote it, quotes included.
    package var tag: String?
    /// A date of HTTP, as the server wrote it.
    package var modified: String?

    package init(tag: String? = nil, modified: String? = nil) {
        self.tag = Self.usable(tag)
        self.modified = Self.usable(modified)
    }

    package init(of reply: UplinkReply) {
        self.init(tag: reply.header("etag"), modified: reply.header("last-modified"))
    }

    /// For the next request; empty where the server gave nothing to ask by.
    package var conditions: [UplinkRequest.Header] {
        [tag.map { .init("If-None-Match", $0) }, modified.map { .init("If-Modified-Since", $0) }].compactMap { $0 }
    }

    /// It goes out again as a header, and into a line of the file.
    private static func usable(_ text: String?) -> String? {
        guard let text, !text.isEmpty, text.utf8.count <= bytesMax,
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return text
    }
}
