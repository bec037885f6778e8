/// Reads the fields of a packet from left to right.
struct MQTTFieldReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() throws(MQTTDefect) -> UInt8 {
        guard let byte = rest.popFirst() else { throw MQTTDefect(.malformedPacket, "a packet that ends too early") }
        return byte
    }

    mutating func short() throws(MQTTDefect) -> UInt16 { UInt16(try byte()) << 8 | UInt16(try byte()) }

    mutating func long() throws(MQTTDefect) -> UInt32 { UInt32(try short()) << 16 | UInt32(try short()) }

    /// A variable byte integer, at most 268,435,455.
    mutating func variable() throws(MQTTDefect) -> Int {
        var value = 0
        for shift in stride(from: 0, to: 28, by: 7) {
            let byte = try byte()
            value |= Int(byte & 0x7F) << shift
            guard byte & 0x80 == 0 else { continue }
            if byte == 0, shift > 0 { break }
            return value
        }
        throw MQTTDefect(.malformedPacket, "a length that is not written as the standard asks")
    }

    mutating func data() throws(MQTTDefect) -> ArraySlice<UInt8> { try bytes(Int(try short())) }

    mutating func bytes(_ count: Int) throws(MQTTDefect) -> ArraySlice<UInt8> {
        guard rest.count >= count else { throw MQTTDefect(.malformedPacket, "a packet that ends too early") }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// UTF-8 without U+0000.
    mutating func text() throws(MQTTDefect) -> String {
        let bytes = try data()
        guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw MQTTDefect(.malformedPacket, "a text that is not UTF-8")
        }
        return text
    }

    /// A packet id, which is never 0.
    mutating func packetID() throws(MQTTDefect) -> UInt16 {
        let id = try short()
        guard id != 0 else { throw MQTTDefect(.malformedPacket, "the packet id 0") }
        return id
    }

    func end() throws(MQTTDefect) {
        guard rest.isEmpty else { throw MQTTDefect(.malformedPacket, "a packet that is longer than its fields") }
    }
}

/// Writes the fields of a packet.
struct MQTTFieldWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    mutating func byte(_ value: UInt8) { bytes.append(value) }

    mutating func short(_ value: UInt16) {
        byte(UInt8(value >> 8))
        byte(UInt8(value & 0xFF))
    }

    mutating func long(_ value: UInt32) {
        short(UInt16(value >> 16))
        short(UInt16(value & 0xFFFF))
    }

    /// - Parameter value: at most 268,435,455.
    mutating func variable(_ value: Int) {
        precondition((0...MQTTPacketType.lengthMax).contains(value), "a length that has no form")
        var rest = value
        while rest > 0x7F {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// What `write` appends, after its length.
    mutating func counted(_ write: (inout MQTTFieldWriter) -> Void) {
        var place = bytes.count
        byte(0)
        write(&self)
        var rest = bytes.count - place - 1
        precondition(rest <= MQTTPacketType.lengthMax, "a length that has no form")
        while rest > 0x7F {
            bytes[place] = UInt8(rest & 0x7F) | 0x80
            rest >>= 7
            place += 1
            bytes.insert(0, at: place)
        }
        bytes[place] = UInt8(rest)
    }

    /// - Parameter value: at most 65,535 bytes.
    mutating func data(_ value: some Collection<UInt8>) {
        precondition(value.count <= 0xFFFF, "a field that is too long")
        short(UInt16(value.count))
        bytes += value
    }

    mutating func text(_ value: String) {
        var value = value
        value.withUTF8 { data($0) }
    }

    mutating func append(_ more: some Collection<UInt8>) { bytes += more }
}
