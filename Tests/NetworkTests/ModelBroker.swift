import Protocols

/// The other side of a connection, as far as a publisher needs it: takes packets apart and makes answers in the form of MQTT 5,
/// or of 3.1.1.
struct ModelBroker {
    struct Publish: Hashable {
        var id: UInt16?
        var topic: String
        var payload: [UInt8]
        var isRetained: Bool
    }

    struct Subscription: Hashable {
        var id: UInt16
        var filters: [String]
    }

    private(set) var version = MQTTVersion.v5
    /// Over the present connection.
    private(set) var subscriptions: [Subscription] = []
    private(set) var publishes: [Publish] = []
    private(set) var connects = 0
    private(set) var isDisconnected = false
    private var unread: [UInt8] = []

    mutating func take(_ bytes: [UInt8]) {
        unread += bytes
        while let packet = nextPacket() { take(packet.type, packet.body) }
    }

    /// A new connection.
    mutating func reset() {
        unread = []
        isDisconnected = false
        subscriptions = []
    }

    func connack(_ reason: UInt8 = 0, window: UInt8? = nil) -> [UInt8] {
        guard version == .v5 else { return [0x20, 2, 0, reason] }
        guard let window else { return [0x20, 3, 0, reason, 0] }
        return [0x20, 6, 0, reason, 3, 0x21, 0, window]
    }

    func puback(_ id: UInt16, _ reason: UInt8 = 0) -> [UInt8] {
        let head = [UInt8(id >> 8), UInt8(id & 0xFF)]
        return version == .v5 ? [0x40, 3] + head + [reason] : [0x40, 2] + head
    }

    /// To the last subscription.
    func suback(_ reasons: [UInt8]) -> [UInt8] {
        let id = subscriptions.last?.id ?? 0
        let properties: [UInt8] = version == .v5 ? [0] : []
        let body = [UInt8(id >> 8), UInt8(id & 0xFF)] + properties + reasons
        return [0x90, UInt8(body.count)] + body
    }

    /// A message of QoS 0.
    func publish(_ topic: String, _ payload: [UInt8], isRetained: Bool) -> [UInt8] {
        let body = [0, UInt8(topic.utf8.count)] + Array(topic.utf8) + (version == .v5 ? [0] : []) + payload
        return [isRetained ? 0x31 : 0x30, UInt8(body.count)] + body
    }

    static func disconnect(_ reason: UInt8) -> [UInt8] { [0xE0, 1, reason] }

    private mutating func nextPacket() -> (type: UInt8, body: [UInt8])? {
        var length = 0
        for index in 1..<5 {
            guard index < unread.count else { return nil }
            length |= Int(unread[index] & 0x7F) << (7 * (index - 1))
            guard unread[index] & 0x80 == 0 else { continue }
            guard unread.count >= index + 1 + length else { return nil }
            defer { unread.removeFirst(index + 1 + length) }
            return (unread[0], Array(unread[(index + 1)..<(index + 1 + length)]))
        }
        return nil
    }

    private mutating func take(_ type: UInt8, _ body: [UInt8]) {
        switch type >> 4 {
        case 1:
            connects += 1
            version = body[6] == 5 ? .v5 : .v3
        case 3:
            let length = Int(body[0]) << 8 | Int(body[1])
            var rest = body[(2 + length)...]
            var id: UInt16?
            if type & 0x06 != 0 {
                id = UInt16(rest[rest.startIndex]) << 8 | UInt16(rest[rest.startIndex + 1])
                rest = rest.dropFirst(2)
            }
            // All properties that we send fit one byte of length.
            if version == .v5 { rest = rest.dropFirst(1 + Int(rest[rest.startIndex])) }
            publishes.append(
                Publish(
                    id: id, topic: String(decoding: body[2..<(2 + length)], as: UTF8.self), payload: Array(rest),
                    isRetained: type & 1 != 0))
        case 8:
            var rest = body.dropFirst(version == .v5 ? 3 : 2)
            var filters: [String] = []
            while rest.count > 2 {
                let length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
                filters.append(String(decoding: rest.dropFirst(2).prefix(length), as: UTF8.self))
                rest = rest.dropFirst(2 + length + 1)
            }
            subscriptions.append(Subscription(id: UInt16(body[0]) << 8 | UInt16(body[1]), filters: filters))
        case 14: isDisconnected = true
        default: break
        }
    }
}
