/// Packets of a server, in whatever pieces they come. It keeps one packet at most.
struct MQTTPacketReader: Sendable {
    private var received = ReceivedBytes()
    private let version: MQTTVersion
    /// Of a whole packet.
    private let packetBytesMax: Int

    init(_ version: MQTTVersion, packetBytesMax: Int) {
        self.version = version
        self.packetBytesMax = packetBytesMax
    }

    mutating func append(_ bytes: ArraySlice<UInt8>) { received.append(bytes) }

    /// - Returns: nil while more bytes are needed.
    mutating func next() throws(MQTTDefect) -> MQTTServerPacket? {
        guard received.count > 0 else { return nil }
        let flags = received[0] & 0x0F
        guard let type = MQTTPacketType(rawValue: received[0] >> 4), type.flags ?? flags == flags else {
            throw MQTTDefect(.malformedPacket, "the byte \(received[0]), with which no packet begins")
        }
        guard let header = try headerLengths() else { return nil }
        guard header.length + header.body <= packetBytesMax else {
            throw MQTTDefect(.packetTooLarge, "a packet of \(header.body) bytes; the limit is \(packetBytesMax)")
        }
        guard received.count >= header.length + header.body else { return nil }
        _ = received.take(header.length)
        return try MQTTServerPacket(type, flags: flags, received.take(header.body), version)
    }

    /// Bytes of the header itself and of the body; nil while more of the header is needed.
    private func headerLengths() throws(MQTTDefect) -> (length: Int, body: Int)? {
        var body = 0
        for index in 1...4 {
            guard index < received.count else { return nil }
            body |= Int(received[index] & 0x7F) << (7 * (index - 1))
            if received[index] & 0x80 == 0 { return (index + 1, body) }
        }
        throw MQTTDefect(.malformedPacket, "a length of more than four bytes")
    }
}
