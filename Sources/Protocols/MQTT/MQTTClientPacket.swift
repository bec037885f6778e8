/// A packet that a client sends.
enum MQTTClientPacket: Hashable, Sendable {
    case connect(MQTTClient.Settings)
    /// - Parameter id: nil with QoS 0.
    case publish(MQTTMessage, id: UInt16?)
    case puback(id: UInt16)
    case subscribe(id: UInt16, [MQTTSubscription])
    case unsubscribe(id: UInt16, [String])
    case pingreq
    case disconnect(MQTTReason)

    func bytes(_ version: MQTTVersion) -> [UInt8] {
        switch self {
        case .connect(let settings): return Self.connect(settings)
        case .publish(let message, let id):
            let flags = message.qos.rawValue << 1 | (message.isRetained ? 1 : 0)
            let length = message.topic.utf8.count + message.payload.count + 64
            return MQTTPacketType.publish.packet(flags: flags, reserving: length) { body in
                body.text(message.topic)
                if let id { body.short(id) }
                if version == .v5 { message.properties.write(to: &body) }
                body.append(message.payload)
            }
        case .puback(let id): return MQTTPacketType.puback.packet { $0.short(id) }
        case .subscribe(let id, let subscriptions):
            return MQTTPacketType.subscribe.packet { body in
                body.short(id)
                if version == .v5 { body.variable(0) }
                for subscription in subscriptions {
                    body.text(subscription.filter)
                    body.byte(subscription.options(version))
                }
            }
        case .unsubscribe(let id, let filters):
            return MQTTPacketType.unsubscribe.packet { body in
                body.short(id)
                if version == .v5 { body.variable(0) }
                for filter in filters { body.text(filter) }
            }
        case .pingreq: return MQTTPacketType.pingreq.packet()
        case .disconnect(let reason):
            return MQTTPacketType.disconnect.packet { body in
                if version == .v5, reason != .success { body.byte(reason.rawValue) }
            }
        }
    }

    private static func connect(_ settings: MQTTClient.Settings) -> [UInt8] {
        MQTTPacketType.connect.packet { body in
            body.text("MQTT")
            body.byte(settings.version.rawValue)
            body.byte(connectFlags(settings))
            body.short(settings.keepAlive)
            if settings.version == .v5 {
                var properties = MQTTProperties()
                properties.set(.receiveMaximum, UInt32(MQTTClient.incomingMax))
                properties.set(.maximumPacketSize, UInt32(clamping: settings.packetBytesMax))
                properties.write(to: &body)
            }
            body.text(settings.clientID)
            if let will = settings.will {
                if settings.version == .v5 {
                    var properties = MQTTProperties()
                    if settings.willDelay > 0 { properties.set(.willDelay, settings.willDelay) }
                    properties.append(will.properties)
                    properties.write(to: &body)
                }
                body.text(will.topic)
                body.data(will.payload)
            }
            if let user = settings.user { body.text(user) }
            if let password = settings.password { body.data(password) }
        }
    }

    /// The session is always a clean one: what is in flight is known to the queue alone.
    private static func connectFlags(_ settings: MQTTClient.Settings) -> UInt8 {
        var flags: UInt8 = 0x02
        if let will = settings.will {
            flags |= 0x04 | will.qos.rawValue << 3 | (will.isRetained ? 0x20 : 0)
        }
        if settings.password != nil { flags |= 0x40 }
        if settings.user != nil { flags |= 0x80 }
        return flags
    }
}
