/// The properties of a packet of MQTT 5 (2.2.2), in their order.
struct MQTTProperties: Hashable, Sendable {
    enum Name: UInt8, Hashable, Sendable {
        case payloadFormat = 0x01
        case messageExpiry = 0x02
        case contentType = 0x03
        case responseTopic = 0x08
        case correlationData = 0x09
        case subscriptionID = 0x0B
        case sessionExpiry = 0x11
        case assignedClientID = 0x12
        case serverKeepAlive = 0x13
        case authenticationMethod = 0x15
        case authenticationData = 0x16
        case requestProblemInformation = 0x17
        case willDelay = 0x18
        case requestResponseInformation = 0x19
        case responseInformation = 0x1A
        case serverReference = 0x1C
        case reasonString = 0x1F
        case receiveMaximum = 0x21
        case topicAliasMaximum = 0x22
        case topicAlias = 0x23
        case maximumQoS = 0x24
        case retainAvailable = 0x25
        case userProperty = 0x26
        case maximumPacketSize = 0x27
        case wildcardAvailable = 0x28
        case subscriptionIDAvailable = 0x29
        case sharedAvailable = 0x2A
    }

    enum Value: Hashable, Sendable {
        case number(UInt32)
        case text(String)
        case data([UInt8])
        case pair(String, String)
    }

    struct Entry: Hashable, Sendable {
        var name: Name
        var value: Value
    }

    private(set) var entries: [Entry] = []

    init() {}

    mutating func set(_ name: Name, _ number: UInt32) { entries.append(Entry(name: name, value: .number(number))) }

    mutating func append(_ others: MQTTProperties) { entries += others.entries }

    mutating func set(_ name: Name, _ text: String) { entries.append(Entry(name: name, value: .text(text))) }

    func number(_ name: Name) -> UInt32? {
        guard case .number(let number)? = first(name) else { return nil }
        return number
    }

    func text(_ name: Name) -> String? {
        guard case .text(let text)? = first(name) else { return nil }
        return text
    }

    func has(_ name: Name) -> Bool { first(name) != nil }

    private func first(_ name: Name) -> Value? { entries.first { $0.name == name }?.value }
}

extension MQTTProperties.Name {
    fileprivate enum Kind {
        /// 0 or 1.
        case flag
        case short
        case long
        case variable
        case text
        case data
        case pair
    }

    fileprivate var kind: Kind {
        switch self {
        case .payloadFormat, .requestProblemInformation, .requestResponseInformation, .maximumQoS, .retainAvailable,
            .wildcardAvailable, .subscriptionIDAvailable, .sharedAvailable:
            .flag
        case .serverKeepAlive, .receiveMaximum, .topicAliasMaximum, .topicAlias: .short
        case .messageExpiry, .sessionExpiry, .willDelay, .maximumPacketSize: .long
        case .subscriptionID: .variable
        case .contentType, .responseTopic, .assignedClientID, .authenticationMethod, .responseInformation,
            .serverReference, .reasonString:
            .text
        case .correlationData, .authenticationData: .data
        case .userProperty: .pair
        }
    }

    /// Where the value 0 is a protocol error.
    fileprivate var isNeverZero: Bool {
        switch self {
        case .receiveMaximum, .maximumPacketSize, .topicAlias, .subscriptionID: true
        default: false
        }
    }

    /// Whether a packet of a server may have it.
    fileprivate func isAllowed(in packet: MQTTPacketType) -> Bool {
        switch self {
        case .payloadFormat, .messageExpiry, .contentType, .responseTopic, .correlationData, .subscriptionID,
            .topicAlias:
            packet == .publish
        case .assignedClientID, .serverKeepAlive, .responseInformation, .receiveMaximum, .topicAliasMaximum,
            .maximumQoS,
            .retainAvailable, .maximumPacketSize, .wildcardAvailable, .subscriptionIDAvailable, .sharedAvailable,
            .authenticationMethod, .authenticationData, .sessionExpiry:
            packet == .connack
        case .serverReference: packet == .connack || packet == .disconnect
        case .reasonString: packet != .publish
        case .userProperty: true
        case .willDelay, .requestProblemInformation, .requestResponseInformation: false
        }
    }

    /// Only these may stand more than once.
    fileprivate func mayRepeat(in packet: MQTTPacketType) -> Bool {
        self == .userProperty || (self == .subscriptionID && packet == .publish)
    }
}

// On the wire.
extension MQTTProperties {
    /// - Parameter packet: of a server.
    init(_ reader: inout MQTTFieldReader, of packet: MQTTPacketType) throws(MQTTDefect) {
        var fields = MQTTFieldReader(try reader.bytes(try reader.variable()))
        var seen: Set<Name> = []
        while !fields.isAtEnd {
            let number = try fields.byte()
            guard let name = Name(rawValue: number), name.isAllowed(in: packet) else {
                throw MQTTDefect(.malformedPacket, "the property \(number), which such a packet does not have")
            }
            guard seen.insert(name).inserted || name.mayRepeat(in: packet) else {
                throw MQTTDefect(.protocolError, "the property \(number) twice")
            }
            let value = try Self.value(name, &fields)
            if name.isNeverZero, value == .number(0) {
                throw MQTTDefect(.protocolError, "the property \(number) with the value 0")
            }
            entries.append(Entry(name: name, value: value))
        }
    }

    private static func value(_ name: Name, _ fields: inout MQTTFieldReader) throws(MQTTDefect) -> Value {
        switch name.kind {
        case .flag:
            let value = try fields.byte()
            guard value <= 1 else {
                throw MQTTDefect(.protocolError, "the property \(name.rawValue) with the value \(value)")
            }
            return .number(UInt32(value))
        case .short: return .number(UInt32(try fields.short()))
        case .long: return .number(try fields.long())
        case .variable: return .number(UInt32(try fields.variable()))
        case .text: return .text(try fields.text())
        case .data: return .data(Array(try fields.data()))
        case .pair: return .pair(try fields.text(), try fields.text())
        }
    }

    func write(to writer: inout MQTTFieldWriter) {
        writer.counted { fields in
            for entry in entries {
                fields.byte(entry.name.rawValue)
                switch (entry.value, entry.name.kind) {
                case (.number(let number), .flag): fields.byte(UInt8(truncatingIfNeeded: number))
                case (.number(let number), .short): fields.short(UInt16(truncatingIfNeeded: number))
                case (.number(let number), .variable): fields.variable(Int(number))
                case (.number(let number), _): fields.long(number)
                case (.text(let text), _): fields.text(text)
                case (.data(let data), _): fields.data(data)
                case (.pair(let name, let value), _):
                    fields.text(name)
                    fields.text(value)
                }
            }
        }
    }
}
