import Hash

/// The id of a record: the same for the same row of the same queue, however often and by whichever endpoint it is sent.
package enum RecordID {
    /// A UUID of version 8 (RFC 9562 §5.8) from the first half of SHA-256(queue uuid ‖ seq, big-endian).
    ///
    /// - Parameters:
    ///   - outbox: uuid of the queue that numbered the record, 16 bytes.
    ///   - seq: its sequence number there.
    package static func make(outbox: [UInt8], seq: Int64) -> String {
        var bytes = SHA256.hash(withUnsafeBytes(of: seq.bigEndian) { outbox + $0 })
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        // In place, because each location that is sent has one.
        return String(unsafeUninitializedCapacity: 36) { text in
            var end = 0
            for (index, byte) in bytes.prefix(16).enumerated() {
                if [4, 6, 8, 10].contains(index) {
                    text[end] = UInt8(ascii: "-")
                    end += 1
                }
                text[end] = hexDigit(byte >> 4)
                text[end + 1] = hexDigit(byte & 0x0F)
                end += 2
            }
            return end
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
