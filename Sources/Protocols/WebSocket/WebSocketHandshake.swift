import WaypostCore

/// The opening handshake (RFC 6455, 4.1): a request in HTTP/1.1, and the check of the answer.
struct WebSocketHandshake: Sendable {
    /// The answer is no agreement.
    enum Failure: Error, Hashable, Sendable {
        case refused(WebSocketRefusal)
        case violation(WebSocketViolation)
    }

    /// Longest head of an answer.
    static let headBytesMax = 16_384

    private let key: WebSocketKey
    private let subprotocols: [String]
    let request: [UInt8]

    init(_ settings: WebSocketClient.Settings, nonce: InlineArray<16, UInt8>) throws(WebSocketSetupError) {
        key = WebSocketKey(nonce)
        subprotocols = settings.subprotocols
        var lines = [
            "GET \(settings.target) HTTP/1.1", "Host: \(settings.host)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: \(key.text)", "Sec-WebSocket-Version: 13",
        ]
        if !subprotocols.isEmpty {
            lines.append("Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))")
        }
        lines += settings.headers.map { "\($0.name): \($0.value)" }
        // The target of a request ends at its first blank.
        guard settings.target.hasPrefix("/"), !settings.target.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw WebSocketSetupError(description: "the path of the URL does not begin with / or has blanks")
        }
        for line in lines where line.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
            let name = String(line.prefix { $0 != ":" && $0 != " " }).visible(bytesMax: 40)
            throw WebSocketSetupError(description: "the line \(name) of the handshake has a control character in it")
        }
        for header in settings.headers where header.name.isEmpty || !header.name.utf8.allSatisfy(\.isTokenCharacter) {
            throw WebSocketSetupError(description: "a header of the handshake has no plain name")
        }
        request = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }

    /// - Parameter head: the head of the answer with its empty line.
    /// - Returns: the subprotocol that the server chose; nil = none.
    func answered(_ head: ArraySlice<UInt8>) throws(Failure) -> String? {
        guard let answer = HTTPHead(head) else {
            throw .violation(WebSocketViolation(.protocolError, "the answer to the handshake is not HTTP/1.1"))
        }
        guard answer.status == 101 else {
            throw .refused(
                WebSocketRefusal(status: answer.status, retryAfter: answer.values("retry-after").first))
        }
        do throws(WebSocketViolation) {
            try check(answer)
            return try subprotocol(of: answer)
        } catch {
            throw .violation(error)
        }
    }

    private func check(_ answer: HTTPHead) throws(WebSocketViolation) {
        func demand(_ holds: Bool, _ words: String) throws(WebSocketViolation) {
            guard holds else { throw WebSocketViolation(.protocolError, "the answer to the handshake " + words) }
        }
        try demand(answer.elements("upgrade") == ["websocket"], "does not upgrade to a WebSocket")
        try demand(answer.elements("connection").contains("upgrade"), "does not upgrade the connection")
        try demand(
            answer.values("sec-websocket-accept") == [key.expectedAnswer],
            "does not fit our key: is a cache in between?")
        try demand(answer.elements("sec-websocket-extensions").isEmpty, "has an extension that was not offered")
    }

    private func subprotocol(of answer: HTTPHead) throws(WebSocketViolation) -> String? {
        let chosen = answer.values("sec-websocket-protocol")
        guard let first = chosen.first else { return nil }
        guard chosen.count == 1, subprotocols.contains(first) else {
            throw WebSocketViolation(
                .protocolError, "the answer to the handshake has a subprotocol that was not offered")
        }
        return first
    }
}

/// Status line and fields of an answer.
private struct HTTPHead {
    let status: Int
    /// Names in lower case.
    private var fields: [(name: String, value: String)] = []

    /// - Returns: nil when it is not the head of an HTTP/1.1 answer.
    init?(_ head: ArraySlice<UInt8>) {
        var lines: [ArraySlice<UInt8>] = []
        for line in head.split(separator: 0x0A) {
            guard line.last == 0x0D, !line.dropLast().contains(where: { $0 == 0x0D || $0 == 0 }) else { return nil }
            lines.append(line.dropLast())
        }
        guard let first = lines.first else { return nil }
        let words = first.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[0].elementsEqual("HTTP/1.1".utf8), words[1].count == 3,
            let status = Int(String(decoding: words[1], as: UTF8.self)), status >= 100
        else { return nil }
        self.status = status
        for line in lines.dropFirst() where !line.isEmpty {
            // A blank in the name would be the continuation of the line above, or a name that others read differently.
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(\.isTokenCharacter)
            else { return nil }
            let value = line[(colon + 1)...].trimming { $0 == 0x20 || $0 == 0x09 }
            fields.append(
                (String(decoding: line[..<colon], as: UTF8.self).lowercased(), String(decoding: value, as: UTF8.self)))
        }
    }

    func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The comma-separated elements of all fields of a name, in lower case.
    func elements(_ name: String) -> [String] {
        values(name).flatMap { $0.split(separator: ",") }
            .map { String($0.trimming { $0 == " " || $0 == "\t" }).lowercased() }.filter { !$0.isEmpty }
    }
}

extension UInt8 {
    /// RFC 9110, 5.6.2.
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
