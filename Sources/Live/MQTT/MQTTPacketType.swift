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

    /// The packet of a body.
    ///
    /// - Parameter flags: of PUBLISH.
    func packet(_ body: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        var writer = MQTTFieldWriter()
        writer.byte(rawValue << 4 | (self.flags ?? flags))
        writer.variable(body.count)
        writer.append(body)
        return writer.bytes
    }
}
