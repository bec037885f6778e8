import WaypostControl
import WaypostCore

/// What the head of a request on the metrics port asks for, and the answer to it.
enum MetricsRequest: Equatable {
    case metrics(Exposition)
    /// Status with its words, and what to do instead.
    case refused(String, String)

    /// - Parameters:
    ///   - head: request line and fields, without the empty line.
    ///   - hostName: of this host; nil where it has none.
    init(head: [UInt8], hostName: String?) {
        let lines = head.split(separator: 0x0A).map {
            // Not split as text, in which CR and LF are one character.
            String(decoding: $0, as: UTF8.self).trimming { $0 == "\r" }
        }
        let words = lines.first?.split(separator: " ", omittingEmptySubsequences: false) ?? []
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else {
            self = .refused("400 Bad Request", "not an HTTP request")
            return
        }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimming { $0 == " " || $0 == "\t" }
            fields[line[..<colon].lowercased()] = String(value)
        }
        // A page of another site that had its name point here would be same-origin with us.
        guard let host = fields["host"], Self.isOurs(host, hostName) else {
            self = .refused("421 Misdirected Request", "not the name of this host: use its address")
            return
        }
        guard words[0] == "GET" else {
            self = .refused("405 Method Not Allowed", "only GET is known here")
            return
        }
        guard words[1].prefix(while: { $0 != "?" }) == "/metrics" else {
            self = .refused("404 Not Found", "there is only /metrics")
            return
        }
        let wantsOpenMetrics = fields["accept"].map(Self.wantsOpenMetrics) ?? false
        self = .metrics(wantsOpenMetrics ? .openMetrics : .prometheus)
    }

    /// - Parameter status: asked only for an answer that needs it.
    func reply(_ status: () -> Status) -> [UInt8] {
        let (line, type, body): (String, String, String) =
            switch self {
            case .metrics(let exposition): ("200 OK", exposition.contentType, exposition.text(status()))
            case .refused(let line, let words): (line, "text/plain; charset=utf-8", words + "\n")
            }
        let allow = line.hasPrefix("405") ? "Allow: GET\r\n" : ""
        let head =
            "HTTP/1.1 \(line)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\(allow)"
            + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        return Array(head.utf8) + Array(body.utf8)
    }

    private static func wantsOpenMetrics(_ accept: String) -> Bool {
        accept.lowercased().split(separator: ",").contains { entry in
            let parts = entry.split(separator: ";").map { $0.filter { $0 != " " } }
            return parts.first == "application/openmetrics-text" && !parts.contains { ["q=0", "q=0.0"].contains($0) }
        }
    }

    /// An address in digits, `localhost`, or the name of this host; with or without a port.
    private static func isOurs(_ host: String, _ hostName: String?) -> Bool {
        var name = Substring(host.lowercased())
        if name.hasPrefix("[") {
            guard let end = name.firstIndex(of: "]") else { return false }
            return isPort(name[name.index(after: end)...]) && name.allSatisfy { $0.isHexDigit || "[]:.%".contains($0) }
        }
        if let colon = name.firstIndex(of: ":") {
            guard isPort(name[colon...]) else { return false }
            name = name[..<colon]
        }
        let isAddress =
            name.split(separator: ".", omittingEmptySubsequences: false).count == 4
            && name.allSatisfy { $0 == "." || $0.isNumber }
        return isAddress || name == "localhost" || (!name.isEmpty && String(name) == hostName?.lowercased())
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.isEmpty || (text.first == ":" && UInt16(text.dropFirst()) != nil)
    }
}
