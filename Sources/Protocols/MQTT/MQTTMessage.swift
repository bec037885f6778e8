import WaypostCore

/// How often a message may arrive.
package enum MQTTQoS: UInt8, Hashable, Sendable {
    /// Once or never; nobody confirms it.
    case atMostOnce = 0
    /// Once or more; the server confirms it.
    case atLeastOnce = 1
}

/// A message to or from a server, or a will. Properties that 3.1.1 does not have are left out there.
package struct MQTTMessage: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qos: MQTTQoS
    /// The server keeps it as the last one of its topic; of one that is received: it is such a last one.
    package var isRetained: Bool
    /// The payload is announced as UTF-8.
    package var isText = false
    /// Seconds after which the server drops it; nil = never.
    package var expiry: UInt32?
    /// A MIME type.
    package var contentType: String?

    package init(topic: String, payload: [UInt8], qos: MQTTQoS = .atLeastOnce, isRetained: Bool = false) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.isRetained = isRetained
    }

    var properties: MQTTProperties {
        var properties = MQTTProperties()
        if isText { properties.set(.payloadFormat, 1) }
        if let expiry { properties.set(.messageExpiry, expiry) }
        if let contentType { properties.set(.contentType, contentType) }
        return properties
    }

    /// What is wrong with it, for people; nil = nothing.
    var problem: String? {
        if let problem = MQTTTopic.problem(of: topic) { return problem }
        return contentType?.isMQTTText == false ? "the content type is too long or has a NUL" : nil
    }
}

/// What to subscribe to.
package struct MQTTSubscription: Hashable, Sendable {
    /// When retained messages are sent; the raw value is that of the option.
    package enum Retained: UInt8, Hashable, Sendable {
        case always = 0
        case ifNew = 1
        case never = 2
    }

    package var filter: String
    package var qos: MQTTQoS
    /// Messages of this client are not sent back to it. Only in MQTT 5, as what follows.
    package var excludesOwn = false
    package var keepsRetainFlag = false
    package var retained = Retained.always

    package init(_ filter: String, qos: MQTTQoS = .atLeastOnce) {
        self.filter = filter
        self.qos = qos
    }

    func options(_ version: MQTTVersion) -> UInt8 {
        guard version == .v5 else { return qos.rawValue }
        return qos.rawValue | (excludesOwn ? 0x04 : 0) | (keepsRetainFlag ? 0x08 : 0) | retained.rawValue << 4
    }
}

extension String {
    /// Whether a field of a packet can have it.
    var isMQTTText: Bool { utf8.count <= 0xFFFF && !hasByte { $0 == 0 } }

    /// As `utf8.contains(where:)`, which asks at each byte how the text is stored.
    func hasByte(_ isWanted: (UInt8) -> Bool) -> Bool {
        utf8.withContiguousStorageIfAvailable { $0.contains(where: isWanted) } ?? utf8.contains(where: isWanted)
    }
}
