/// The id of a record: the same for the same row of the same queue, however often and by whichever endpoint it is sent.
public enum RecordID {
    /// A UUID of version 8 (RFC 9562 §5.8) from the first half of SHA-256(queue uuid ‖ seq, big-endian).
    ///
    /// - Parameters:
    ///   - outbox: uuid of the queue that numbered the record, 16 bytes.
    ///   - seq: its sequence number there.
    public static func make(outbox: [UInt8], seq: Int64) -> String {
        let name = outbox + (0..<8).map { UInt8(truncatingIfNeeded: seq >> Int64(56 - 8 * $0)) }
        var bytes = Array(SHA256.hash(name).prefix(16))
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        let digits = String(hexOf: bytes)
        var text = ""
        var rest = Substring(digits)
        for length in [8, 4, 4, 4, 12] {
            text += (text.isEmpty ? "" : "-") + rest.prefix(length)
            rest = rest.dropFirst(length)
        }
        return text
    }
}
