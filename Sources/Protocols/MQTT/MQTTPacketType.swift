/// The upper half of the first byte of a packet.
enum MQTTPacketType: UInt8, Sendable {
    case connect = 1
    case connack, publish, puback, pubrec, pubrel, pubcomp, subscribe, suback, unsubscribe, unsuback, pingreq, pingresp
    case disconnect, auth

    /// The longest body of a packet that its length can state.
    static let lengthMax = 268_435_455

    /// The lower half of the first byte of all packets of a type; nil = it says more.
    var flags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0x02
        default: 0
        }
    }

    /// The packet with the body that `write` appends.
    ///
    /// - Parameters:
    ///   - flags: of PUBLISH.
    ///   - bytes: of the body, about; more than that takes another place in memory.
    func packet(
        flags: UInt8 = 0, reserving bytes: Int = 0, _ write: (inout MQTTFieldWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var packet = MQTTFieldWriter(reserving: bytes)
        packet.byte(rawValue << 4 | (self.flags ?? flags))
        packet.counted(write)
        return packet.bytes
    }
}
