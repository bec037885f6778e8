/// A packet that a server sends.
enum MQTTServerPacket: Hashable, Sendable {
    case connack(isSessionPresent: Bool, MQTTReason, MQTTProperties)
    /// - Parameter id: nil with QoS 0.
    case publish(MQTTMessage, id: UInt16?, isDuplicate: Bool, MQTTProperties)
    case puback(id: UInt16, MQTTReason, MQTTProperties)
    case suback(id: UInt16, [MQTTReason], MQTTProperties)
    case unsuback(id: UInt16, [MQTTReason], MQTTProperties)
    case pingresp
    case disconnect(MQTTReason, MQTTProperties)

    init(
        _ type: MQTTPacketType, flags: UInt8, _ body: ArraySlice<UInt8>, _ version: MQTTVersion
    ) throws(MQTTDefect) {
        var fields = MQTTFieldReader(body)
        switch type {
        case .connack: self = try .connack(&fields, version)
        case .publish: self = try .publish(&fields, flags, version)
        case .puback:
            let id = try fields.packetID()
            let (reason, properties) = try Self.reason(&fields, of: .puback, version)
            self = .puback(id: id, reason, properties)
        case .suback: self = try .suback(&fields, version)
        case .unsuback: self = try .unsuback(&fields, version)
        case .pingresp: self = .pingresp
        case .disconnect where version == .v5:
            let (reason, properties) = try Self.reason(&fields, of: .disconnect, version)
            self = .disconnect(reason, properties)
        case .pubrec, .pubrel, .pubcomp:
            throw MQTTDefect(.protocolError, "a packet of QoS 2, which was never asked for")
        case .auth where version == .v5:
            throw MQTTDefect(.protocolError, "an AUTH, although we named no method of authentication")
        case .connect, .subscribe, .unsubscribe, .pingreq, .disconnect, .auth:
            throw MQTTDefect(.protocolError, "a packet that no server sends")
        }
        try fields.end()
    }

    private static func connack(
        _ fields: inout MQTTFieldReader, _ version: MQTTVersion
    ) throws(MQTTDefect) -> MQTTServerPacket {
        let flags = try fields.byte()
        let code = try fields.byte()
        guard flags <= 1 else { throw MQTTDefect(.malformedPacket, "a CONNACK with unknown flags") }
        // A server of 3.1.1 refuses version 5 in its own language.
        if version == .v3 || (fields.isAtEnd && code != 0) {
            let reason = MQTTReason.ofReturnCode(code) ?? (version == .v5 ? MQTTReason(rawValue: code) : nil)
            guard let reason else { throw MQTTDefect(.malformedPacket, "a CONNACK with the unknown code \(code)") }
            return .connack(isSessionPresent: flags == 1, reason, MQTTProperties())
        }
        let reason = MQTTReason(rawValue: code)
        guard reason == .success || reason.isError else {
            throw MQTTDefect(.malformedPacket, "a CONNACK with the unknown code \(code)")
        }
        return .connack(isSessionPresent: flags == 1, reason, try MQTTProperties(&fields, of: .connack))
    }

    private static func publish(
        _ fields: inout MQTTFieldReader, _ flags: UInt8, _ version: MQTTVersion
    ) throws(MQTTDefect) -> MQTTServerPacket {
        let level = flags >> 1 & 0x03
        guard let qos = MQTTQoS(rawValue: level) else {
            throw level == 2
                ? MQTTDefect(.protocolError, "a message of QoS 2, which was never asked for")
                : MQTTDefect(.malformedPacket, "a message of QoS 3")
        }
        let isDuplicate = flags & 0x08 != 0
        guard qos != .atMostOnce || !isDuplicate else {
            throw MQTTDefect(.malformedPacket, "a message of QoS 0 that is called a repetition")
        }
        let topic = try fields.text()
        let id = qos == .atMostOnce ? nil : try fields.packetID()
        let properties = version == .v5 ? try MQTTProperties(&fields, of: .publish) : MQTTProperties()
        if properties.has(.topicAlias) {
            throw MQTTDefect(.badTopicAlias, "a topic alias, which we do not take")
        }
        if let problem = MQTTTopic.problem(of: topic) { throw MQTTDefect(.badTopic, "a message: \(problem)") }
        let payload = Array(try fields.bytes(fields.rest.count))
        var message = MQTTMessage(topic: topic, payload: payload, qos: qos, isRetained: flags & 0x01 != 0)
        message.isText = properties.number(.payloadFormat) == 1
        message.expiry = properties.number(.messageExpiry)
        message.contentType = properties.text(.contentType)
        return .publish(message, id: id, isDuplicate: isDuplicate, properties)
    }

    /// Reason and properties, which MQTT 5 leaves out from the end when they say nothing.
    private static func reason(
        _ fields: inout MQTTFieldReader, of type: MQTTPacketType, _ version: MQTTVersion
    ) throws(MQTTDefect) -> (MQTTReason, MQTTProperties) {
        guard version == .v5, !fields.isAtEnd else { return (.success, MQTTProperties()) }
        let reason = MQTTReason(rawValue: try fields.byte())
        return (reason, fields.isAtEnd ? MQTTProperties() : try MQTTProperties(&fields, of: type))
    }

    private static func suback(
        _ fields: inout MQTTFieldReader, _ version: MQTTVersion
    ) throws(MQTTDefect) -> MQTTServerPacket {
        let id = try fields.packetID()
        let properties = version == .v5 ? try MQTTProperties(&fields, of: .suback) : MQTTProperties()
        return .suback(id: id, try Self.reasons(&fields), properties)
    }

    private static func unsuback(
        _ fields: inout MQTTFieldReader, _ version: MQTTVersion
    ) throws(MQTTDefect) -> MQTTServerPacket {
        let id = try fields.packetID()
        guard version == .v5 else { return .unsuback(id: id, [], MQTTProperties()) }
        let properties = try MQTTProperties(&fields, of: .unsuback)
        return .unsuback(id: id, try Self.reasons(&fields), properties)
    }

    /// One for each topic filter.
    private static func reasons(_ fields: inout MQTTFieldReader) throws(MQTTDefect) -> [MQTTReason] {
        var reasons: [MQTTReason] = []
        while !fields.isAtEnd { reasons.append(MQTTReason(rawValue: try fields.byte())) }
        return reasons
    }
}
