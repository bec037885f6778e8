/// What a frame is (RFC 6455, 5.2).
enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The first bytes of a frame from a server, checked.
struct WebSocketFrameHeader: Hashable, Sendable {
    var isFinal: Bool
    var opcode: WebSocketOpcode
    /// Bytes of the header itself, 2…10.
    var length: Int
    var payloadLength: UInt64

    /// The longest payload of a control frame.
    static let controlBytesMax = 125

    /// - Returns: nil while more bytes are needed.
    init?(_ bytes: ReceivedBytes) throws(WebSocketViolation) {
        guard bytes.count >= 2 else { return nil }
        guard bytes[0] & 0x70 == 0 else {
            throw WebSocketViolation(.protocolError, "a frame with reserved bits, though no extension was agreed")
        }
        guard let opcode = WebSocketOpcode(rawValue: bytes[0] & 0x0F) else {
            throw WebSocketViolation(.protocolError, "a frame of the unknown kind \(bytes[0] & 0x0F)")
        }
        guard bytes[1] & 0x80 == 0 else { throw WebSocketViolation(.protocolError, "a masked frame from the server") }
        self.opcode = opcode
        isFinal = bytes[0] & 0x80 != 0
        let short = bytes[1] & 0x7F
        if opcode.isControl, !isFinal || short > Self.controlBytesMax {
            throw WebSocketViolation(.protocolError, "a control frame that is fragmented or has more than 125 bytes")
        }
        length = short == 127 ? 10 : short == 126 ? 4 : 2
        guard bytes.count >= length else { return nil }
        payloadLength = length == 2 ? UInt64(short) : (2..<length).reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
        let isMinimal = length == 2 || payloadLength > (length == 4 ? 125 : 0xFFFF)
        guard isMinimal, payloadLength >> 63 == 0 else {
            throw WebSocketViolation(.protocolError, "a frame whose length is not written as the standard asks")
        }
    }
}

enum WebSocketFrame {
    /// One whole frame of a client.
    ///
    /// - Parameter mask: fresh random bits.
    static func bytes(_ opcode: WebSocketOpcode, _ payload: [UInt8], mask: UInt32) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(payload.count + 14)
        bytes.append(0x80 | opcode.rawValue)
        switch payload.count {
        case ...125: bytes.append(0x80 | UInt8(payload.count))
        case ...0xFFFF:
            bytes.append(0x80 | 126)
            append(UInt64(payload.count), bytes: 2, to: &bytes)
        default:
            bytes.append(0x80 | 127)
            append(UInt64(payload.count), bytes: 8, to: &bytes)
        }
        append(UInt64(mask), bytes: 4, to: &bytes)
        for (index, byte) in payload.enumerated() {
            bytes.append(byte ^ UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * (index & 3))))
        }
        return bytes
    }

    private static func append(_ value: UInt64, bytes count: Int, to bytes: inout [UInt8]) {
        for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index))) }
    }
}
