import WaypostCore

/// The last good reply of a server as it is kept for a start without a network: a title with a checksum, a line of JSON, then
/// the reply.
package struct StoredList: Hashable, Sendable {
    private static let title = "waypost list, format 1, checksum "
    /// Of title and line.
    private static let headMax = 8192

    /// The sum of what was asked for: the list of another address is another list.
    package var address: String
    package var version: ListVersion
    /// Unix milliseconds, when the server gave it; nil = the time was not known.
    package var receivedMs: Int64?
    package var reply: [UInt8]

    package init(address: String, version: ListVersion, receivedMs: Int64?, reply: [UInt8]) {
        self.address = address
        self.version = version
        self.receivedMs = receivedMs
        self.reply = reply
    }

    /// Bytes of the longest file.
    package static func fileBytesMax(reply: Int) -> Int { reply + headMax }

    package var bytes: [UInt8] {
        let head: [JSONValue.Member] = [
            .init("address", .string(address)), .init("etag", version.tag.map { .string($0) } ?? .null),
            .init("last_modified", version.modified.map { .string($0) } ?? .null),
            .init("received_ms", receivedMs.map { .int($0) } ?? .null),
        ]
        // The reply may be long: it is copied once.
        let line = JSONValue.object(head).bytes + [UInt8(ascii: "\n")]
        var bytes = Array("\(Self.title)\(Self.sum([line, reply].joined()))\n".utf8)
        bytes.reserveCapacity(bytes.count + line.count + reply.count)
        bytes += line
        bytes += reply
        return bytes
    }

    /// nil when the bytes are damaged, or of another format.
    package init?(_ bytes: [UInt8]) {
        let lineEnd = UInt8(ascii: "\n")
        guard let end = bytes.prefix(100).firstIndex(of: lineEnd) else { return nil }
        let body = bytes[(end + 1)...]
        guard bytes[..<end].elementsEqual("\(Self.title)\(Self.sum(body))".utf8),
            let headEnd = body.prefix(Self.headMax).firstIndex(of: lineEnd),
            let head = JSONReader.read(Array(body[..<headEnd])), let address = head["address"]?.string
        else { return nil }
        self.init(
            address: address, version: ListVersion(tag: head["etag"]?.string, modified: head["last_modified"]?.string),
            receivedMs: head["received_ms"]?.integer, reply: Array(body[(headEnd + 1)...]))
    }

    /// Distinguishes one text from another; no proof against who means to deceive.
    package static func sum(_ bytes: some Sequence<UInt8>) -> String {
        var hash = FNV1a()
        for byte in bytes { hash.add(byte) }
        return String(hash.value, radix: 16)
    }
}
