import Delivery
import Positioning

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

    /// What has come, if that is an answer: an interim status is none, and a success needs its whole head.
    ///
    /// - Parameter complete: the transport says that nothing is missing.
    func reply(complete: Bool) -> UplinkReply? {
        guard let status, status >= 200, headEnded || !(200...299).contains(status) else { return nil }
        return UplinkReply(
            status: status, headers: headers, body: body,
            bodyIncomplete: !(complete && headEnded && breach == nil))
    }

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
