/// A reason code (MQTT 5, 2.4). Those of 3.1.1 are read as the ones of 5 that mean the same.
package struct MQTTReason: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let success = MQTTReason(rawValue: 0x00)
    package static let disconnectWithWill = MQTTReason(rawValue: 0x04)
    package static let noMatchingSubscribers = MQTTReason(rawValue: 0x10)
    package static let unspecified = MQTTReason(rawValue: 0x80)
    package static let malformedPacket = MQTTReason(rawValue: 0x81)
    package static let protocolError = MQTTReason(rawValue: 0x82)
    package static let unsupportedVersion = MQTTReason(rawValue: 0x84)
    package static let badClientID = MQTTReason(rawValue: 0x85)
    package static let badCredential = MQTTReason(rawValue: 0x86)
    package static let notAuthorised = MQTTReason(rawValue: 0x87)
    package static let serverUnavailable = MQTTReason(rawValue: 0x88)
    package static let sessionTakenOver = MQTTReason(rawValue: 0x8E)
    package static let badTopic = MQTTReason(rawValue: 0x90)
    package static let receiveMaximumExceeded = MQTTReason(rawValue: 0x93)
    package static let badTopicAlias = MQTTReason(rawValue: 0x94)
    package static let packetTooLarge = MQTTReason(rawValue: 0x95)
    package static let quotaExceeded = MQTTReason(rawValue: 0x97)
    package static let badPayload = MQTTReason(rawValue: 0x99)

    package var isError: Bool { rawValue >= 0x80 }

    /// For people: "the topic is not allowed".
    package var words: String { Self.table[rawValue]?.words ?? "an unknown reason" }

    /// What it means for the rows in flight, and for the connection. A code that the standard does not know is never
    /// taken for a success.
    package var meaning: MQTTMeaning { Self.table[rawValue]?.meaning ?? (isError ? .retry : .notConfirmed) }

    /// What it means as the answer to PUBLISH. Nothing but `success` says that the message was taken (MQTT 5, 3.4.2.1): the other
    /// codes of success belong to other packets.
    package var publishMeaning: MQTTMeaning { meaning == .accepted && self != .success ? .notConfirmed : meaning }

    /// All that mean this, in ascending order.
    package static func all(meaning: MQTTMeaning) -> [MQTTReason] {
        table.filter { $0.value.meaning == meaning }.keys.sorted().map(MQTTReason.init)
    }

    /// `0x87`
    package var code: String {
        let digits = String(rawValue, radix: 16, uppercase: true)
        return "0x\(digits.utf8.count < 2 ? "0" : "")\(digits)"
    }

    /// The reason that a return code of CONNACK in 3.1.1 stands for; nil for codes that it does not have.
    static func ofReturnCode(_ code: UInt8) -> MQTTReason? {
        switch code {
        case 0: .success
        case 1: .unsupportedVersion
        case 2: .badClientID
        case 3: .serverUnavailable
        case 4: .badCredential
        case 5: .notAuthorised
        default: nil
        }
    }

    private static let table: [UInt8: (words: String, meaning: MQTTMeaning)] = [
        0x00: ("success", .accepted),
        0x01: ("granted with QoS 1", .accepted),
        0x02: ("granted with QoS 2", .accepted),
        0x04: ("disconnected, with the will", .retry),
        0x10: ("the topic has no subscriber", .notConfirmed),
        0x11: ("there was no such subscription", .accepted),
        0x80: ("no reason given", .retry),
        0x81: ("it calls a packet of ours malformed", .bisect),
        0x82: ("it calls a packet of ours a protocol error", .bisect),
        0x83: ("a reason of this server's own", .retry),
        0x84: ("the version of MQTT is not supported", .version),
        0x85: ("the client id is not valid", .misconfigured),
        0x86: ("user name or password is wrong", .auth),
        0x87: ("not authorised", .auth),
        0x88: ("the server is not available", .retry),
        0x89: ("the server is busy", .slowDown),
        0x8A: ("this client is banned", .auth),
        0x8B: ("the server shuts down", .retry),
        0x8C: ("the authentication method is wrong", .auth),
        0x8D: ("it heard nothing within the keepalive", .retry),
        0x8E: ("another client took over the client id", .taken),
        0x8F: ("the topic filter is not allowed", .misconfigured),
        0x90: ("the topic is not allowed", .misconfigured),
        0x91: ("the packet id is in use", .retry),
        0x92: ("the packet id is unknown", .retry),
        0x93: ("more publishes in flight than it takes", .retry),
        0x94: ("the topic alias is not valid", .misconfigured),
        0x95: ("a packet is too large", .bisect),
        0x96: ("messages come too fast", .slowDown),
        0x97: ("a quota is exceeded", .slowDown),
        0x98: ("an administrator ended it", .retry),
        0x99: ("the payload is not of the announced format", .bisect),
        0x9A: ("retained messages are not supported", .misconfigured),
        0x9B: ("the QoS is not supported", .misconfigured),
        0x9C: ("another server is to be used for now", .misconfigured),
        0x9D: ("the server has moved", .misconfigured),
        0x9E: ("shared subscriptions are not supported", .misconfigured),
        0x9F: ("connections come too fast", .slowDown),
        0xA0: ("the connection lasted as long as it may", .retry),
        0xA1: ("subscription ids are not supported", .misconfigured),
        0xA2: ("wildcards are not supported", .misconfigured),
    ]
}

/// What a reason means for rows and endpoint; the raw value is the word for people.
package enum MQTTMeaning: String, Hashable, Sendable, CaseIterable {
    case accepted
    /// Nobody subscribes, so nobody stored it: enough for what only the newest matters of, not for history.
    case notConfirmed = "not confirmed"
    /// The same again later.
    case retry
    /// Later, and less of it.
    case slowDown = "slow down"
    /// The credential, not the rows.
    case auth
    /// The endpoint's settings, not the rows.
    case misconfigured
    /// Some row is refused.
    case bisect
    /// Another client has our client id.
    case taken
    /// Again with the older version.
    case version
}

/// What the server did that the standard forbids, or that we do not take.
package struct MQTTDefect: Error, Hashable, Sendable {
    /// What it is told.
    package let reason: MQTTReason
    /// For people: "a PUBACK for nothing in flight".
    package let words: String

    init(_ reason: MQTTReason = .malformedPacket, _ words: String) {
        self.reason = reason
        self.words = words
    }
}
