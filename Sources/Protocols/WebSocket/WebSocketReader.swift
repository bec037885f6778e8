/// Frames of a server, joined to messages, in whatever pieces they come. It keeps one message at most, and one frame.
struct WebSocketReader: Sendable {
    enum Item: Hashable, Sendable {
        case text(String)
        case binary([UInt8])
        /// A message that was longer than what is kept; only where such are skipped.
        case oversized
        case ping([UInt8])
        case pong
        /// - Parameter code: nil where the frame has none.
        case close(code: WebSocketCloseCode?, reason: String)
    }

    private var received = ReceivedBytes()
    /// The frames of a message that is not complete.
    private var fragments: [UInt8] = []
    /// Of the message that is not complete; nil = there is none.
    private var kind: WebSocketOpcode?
    /// The message that is not complete is too long: its frames are passed over.
    private var isSkipping = false
    /// Payload of a frame that is still to be passed over.
    private var skipped = 0
    private let messageBytesMax: Int
    private let skipsOversized: Bool

    init(messageBytesMax: Int, skipsOversized: Bool = false) {
        self.messageBytesMax = messageBytesMax
        self.skipsOversized = skipsOversized
    }

    mutating func append(_ bytes: ArraySlice<UInt8>) { received.append(bytes) }

    /// - Returns: nil while more bytes are needed.
    mutating func next() throws(WebSocketViolation) -> Item? {
        while true {
            if skipped > 0 {
                skipped -= received.take(min(skipped, received.count)).count
                guard skipped == 0 else { return nil }
            }
            if isSkipping, kind == nil {
                isSkipping = false
                return .oversized
            }
            guard let header = try WebSocketFrameHeader(received) else { return nil }
            try check(header)
            if isTooLong(header) {
                skip(header)
                continue
            }
            let length = Int(header.payloadLength)
            guard received.count >= header.length + length else { return nil }
            _ = received.take(header.length)
            let payload = received.take(length)
            if let item = try header.opcode.isControl ? control(header.opcode, payload) : data(header, payload) {
                return item
            }
        }
    }

    /// Before the payload has come, so that what is too long is never collected.
    private func check(_ header: WebSocketFrameHeader) throws(WebSocketViolation) {
        if header.opcode.isControl { return }
        if (header.opcode == .continuation) != (kind != nil) {
            throw WebSocketViolation(
                .protocolError,
                kind == nil ? "a continuation of no message" : "a message that begins within another")
        }
        if !skipsOversized, isTooLong(header) {
            throw WebSocketViolation(.tooBig, "a message of more than \(messageBytesMax) bytes")
        }
    }

    /// The message that the frame belongs to.
    private func isTooLong(_ header: WebSocketFrameHeader) -> Bool {
        !header.opcode.isControl && (isSkipping || header.payloadLength > UInt64(messageBytesMax - fragments.count))
    }

    private mutating func skip(_ header: WebSocketFrameHeader) {
        _ = received.take(header.length)
        skipped = Int(header.payloadLength)
        fragments = []
        isSkipping = true
        kind = header.isFinal ? nil : kind ?? header.opcode
    }

    private mutating func data(
        _ header: WebSocketFrameHeader, _ payload: ArraySlice<UInt8>
    ) throws(WebSocketViolation) -> Item? {
        let kind = self.kind ?? header.opcode
        guard header.isFinal else {
            self.kind = kind
            fragments += payload
            return nil
        }
        let message = fragments.isEmpty ? Array(payload) : fragments + payload
        fragments = []
        self.kind = nil
        guard kind == .text else { return .binary(message) }
        return .text(try text(message))
    }

    private func control(_ opcode: WebSocketOpcode, _ payload: ArraySlice<UInt8>) throws(WebSocketViolation) -> Item {
        switch opcode {
        case .ping: return .ping(Array(payload))
        case .pong: return .pong
        default: break
        }
        if payload.isEmpty { return .close(code: nil, reason: "") }
        guard payload.count >= 2 else { throw WebSocketViolation(.protocolError, "a close frame with half a code") }
        let code = WebSocketCloseCode(
            rawValue: UInt16(payload[payload.startIndex]) << 8 | UInt16(payload[payload.startIndex + 1]))
        guard code.mayBeSent else {
            throw WebSocketViolation(.protocolError, "a close frame with the impossible code \(code.rawValue)")
        }
        return .close(code: code, reason: try text(Array(payload.dropFirst(2))))
    }

    private func text(_ bytes: [UInt8]) throws(WebSocketViolation) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw WebSocketViolation(.notText, "a text that is not UTF-8")
        }
        return text
    }
}
