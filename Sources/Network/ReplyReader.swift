import Protocols
import WaypostCore

/// Collects one reply from the head lines and body bytes that libcurl passes on, within fixed bounds.
struct ReplyReader {
    struct Limits {
        var body: Int
        var head: Int
        var headers: Int
    }

    enum Breach: String {
        case head = "the head of the answer is too long"
        case headers = "the answer has too many headers"
        case body = "the answer is too long"
        case bytes = "the answer comes with far more bytes than its head and body may have"
        case length = "the answer has two lengths, or one that is no number"
    }

    /// Of the last head, interim ones (1xx) included; nil before the first status line.
    private(set) var status: Int?
    private(set) var headers: [UplinkRequest.Header] = []
    private(set) var body: [UInt8] = []
    /// The head has come to its empty line.
    private(set) var headEnded = false
    /// Why reading stopped.
    private(set) var breach: Breach?

    private let limits: Limits
    private var headBytes = 0
    private var headLines = 0

    init(limits: Limits) { self.limits = limits }

    private var statusIsFinal: Bool { (status ?? 0) >= 200 }

    /// One line of a head or a trailer with its line end; false = stop reading.
    mutating func lineArrived(_ line: UnsafeRawBufferPointer) -> Bool {
        // Trailers and interim heads count as well: an endless series of them must not get around the bound.
        headBytes += line.count
        headLines += 1
        if headBytes > limits.head { return stop(.head) }
        if headEnded && statusIsFinal { return headLines <= limits.headers || stop(.headers) }
        let text = line.trimming(while: \.isBlank)
        if let status = Self.statusCode(in: text), self.status == nil || headEnded {
            self.status = status
            headers = []
            headEnded = false
            headLines = 0
        } else if line.isLineEnd {
            guard !statusIsFinal || hasCleanLength else { return stop(.length) }
            headEnded = true
        } else if headLines > limits.headers {
            return stop(.headers)
        } else if line.startsWithBlank {
            // A folded header: obsolete, but servers may still send it (RFC 9112, 5.2).
            guard let last = headers.indices.last else { return true }
            headers[last].value += " " + String(decoding: text, as: UTF8.self)
        } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            headers.append(
                .init(
                    String(decoding: text[..<colon].map(\.lowercasedASCII), as: UTF8.self),
                    String(decoding: text[(colon + 1)...].trimming(while: \.isBlank), as: UTF8.self)))
        }
        return true
    }

    /// A piece of the body; false = stop reading.
    mutating func bodyArrived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let left = limits.body - body.count
        body.append(contentsOf: bytes.prefix(left))
        return bytes.count <= left || stop(.body)
    }

    /// How the answer ended.
    enum End {
        /// The transport says that nothing is missing.
        case complete
        /// With the connection.
        case broken
        /// It had not come to its end in time.
        case late
    }

    /// What has come, if that is an answer: an interim status is none, and neither is a success of which something is missing.
    func reply(_ end: End) -> UplinkReply? {
        guard let status, status >= 200, !(200...299).contains(status) || headEnded && !isCut(end) else { return nil }
        return UplinkReply(
            status: status, headers: headers, body: body,
            bodyIncomplete: !(end == .complete && headEnded && breach == nil))
    }

    /// More was to come than has. Without a length the end of the connection may be the end of the body, however it comes.
    private func isCut(_ end: End) -> Bool {
        switch (breach, end) {
        case (.body?, _), (nil, .complete): false
        case (nil, .broken): headers.contains { $0.name == "content-length" || $0.name == "transfer-encoding" }
        case (.head?, _), (.headers?, _), (.bytes?, _), (.length?, _), (nil, .late): true
        }
    }

    /// Not of two minds about the length of the body, of which libcurl would believe the first.
    private var hasCleanLength: Bool {
        let values = headers.filter { $0.name == "content-length" }
            .flatMap { $0.value.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) }
        if values.isEmpty || headers.contains(where: { $0.name == "transfer-encoding" }) { return true }
        let numbers = values.map { value in
            let digits = value.trimming(while: \.isBlank)
            let isNumber = digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            return isNumber ? Int(String(decoding: digits, as: UTF8.self)) : nil
        }
        return numbers.allSatisfy { $0 != nil && $0 == numbers[0] }
    }

    /// More has come over the connection than an answer needs.
    mutating func hasTooManyBytes() { _ = stop(.bytes) }

    private mutating func stop(_ reason: Breach) -> Bool {
        breach = reason
        return false
    }

    /// The three digits of `HTTP/1.1 200 OK`.
    private static func statusCode(in line: Slice<UnsafeRawBufferPointer>) -> Int? {
        guard line.starts(with: "HTTP/".utf8), let blank = line.firstIndex(of: UInt8(ascii: " ")) else { return nil }
        let digits = line[(blank + 1)...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits.count == 3 else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var isLineEnd: Bool { allSatisfy { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") } }

    fileprivate var startsWithBlank: Bool { first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") }
}

extension UInt8 {
    /// A line end counts as one.
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0D || self == 0x0A }

    fileprivate var lowercasedASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
