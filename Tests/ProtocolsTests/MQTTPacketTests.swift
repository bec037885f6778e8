import TestSupport
import Testing

@testable import Protocols

@Suite("MQTT packets") struct MQTTPacketTests {
    private func read(_ bytes: String, _ version: MQTTVersion = .v5) throws(MQTTDefect) -> MQTTServerPacket? {
        var reader = MQTTPacketReader(version, packetBytesMax: 1000)
        reader.append(hex(bytes)[...])
        return try reader.next()
    }

    // MQTT 5, 1.5.5: the table of variable byte integers.
    @Test func variableByteIntegers() throws {
        let rows: [(Int, String)] = [
            (0, "00"), (127, "7f"), (128, "80 01"), (16_383, "ff 7f"), (16_384, "80 80 01"), (2_097_151, "ff ff 7f"),
            (2_097_152, "80 80 80 01"), (268_435_455, "ff ff ff 7f"),
        ]
        for (value, bytes) in rows {
            var writer = MQTTFieldWriter()
            writer.variable(value)
            #expect(writer.bytes == hex(bytes), "\(value)")
            var reader = MQTTFieldReader(hex(bytes)[...])
            #expect(try reader.variable() == value && reader.isAtEnd)
        }
        for bytes in ["80 00", "ff ff ff ff 7f", "80 80 80 80", "80", ""] {
            var reader = MQTTFieldReader(hex(bytes)[...])
            #expect(throws: MQTTDefect.self, "\(bytes)") { _ = try reader.variable() }
        }
    }

    // 3.1: the example of the payload in 3.1.1, figure 3.6, and CONNECT of both versions.
    @Test func connect() {
        var settings = MQTTClient.Settings(clientID: "van")
        settings.keepAlive = 10
        let shortest = "10 18 0004 4d515454 05 02 000a 08 21 0014 27 00010000 0003 76616e"
        #expect(MQTTClientPacket.connect(settings).bytes(.v5) == hex(shortest))
        settings.version = .v3
        settings.user = "u"
        settings.password = [1, 0, 255]
        settings.will = MQTTMessage(topic: "t", payload: [9], isRetained: true)
        let v3 = "10 1d 0004 4d515454 04 ee 000a 0003 76616e 0001 74 0001 09 0001 75 0003 0100ff"
        #expect(MQTTClientPacket.connect(settings).bytes(.v3) == hex(v3))
        settings.version = .v5
        settings.willDelay = 60
        settings.will?.isText = true
        let head = "10 2e 0004 4d515454 05 ee 000a 08 21 0014 27 00010000 0003 76616e"
        let will = "07 18 0000003c 01 01 0001 74 0001 09 0001 75 0003 0100ff"
        #expect(MQTTClientPacket.connect(settings).bytes(.v5) == hex(head) + hex(will))
    }

    // 3.3: PUBLISH, with what only version 5 has.
    @Test func publish() {
        var message = MQTTMessage(topic: "a/b", payload: [1, 2], isRetained: true)
        #expect(MQTTClientPacket.publish(message, id: 10).bytes(.v3) == hex("33 09 0003 612f62 000a 0102"))
        message.isText = true
        message.expiry = 3600
        message.contentType = "x"
        let v5 = "33 15 0003 612f62 000a 0b 01 01 02 00000e10 03 0001 78 0102"
        #expect(MQTTClientPacket.publish(message, id: 10).bytes(.v5) == hex(v5))
        message.qos = .atMostOnce
        message.isRetained = false
        #expect(MQTTClientPacket.publish(message, id: nil).bytes(.v3) == hex("30 07 0003 612f62 0102"))
    }

    // 3.4, 3.8, 3.10, 3.12, 3.14.
    @Test func theOtherPacketsOfAClient() {
        var subscription = MQTTSubscription("a/#")
        subscription.excludesOwn = true
        subscription.keepsRetainFlag = true
        subscription.retained = .never
        let other = MQTTSubscription("b", qos: .atMostOnce)
        let rows: [(MQTTClientPacket, String, String)] = [
            (.puback(id: 258), "40 02 0102", "40 02 0102"),
            (
                .subscribe(id: 10, [subscription, other]), "82 0c 000a 0003 612f23 01 0001 62 00",
                "82 0d 000a 00 0003 612f23 2d 0001 62 00"
            ),
            (.unsubscribe(id: 10, ["a", "b"]), "a2 08 000a 0001 61 0001 62", "a2 09 000a 00 0001 61 0001 62"),
            (.pingreq, "c0 00", "c0 00"), (.disconnect(.success), "e0 00", "e0 00"),
            (.disconnect(.protocolError), "e0 00", "e0 01 82"),
        ]
        for (packet, v3, v5) in rows {
            #expect(packet.bytes(.v3) == hex(v3), "\(packet)")
            #expect(packet.bytes(.v5) == hex(v5), "\(packet)")
        }
    }

    @Test func thePacketsOfAServer() throws {
        let empty = MQTTProperties()
        var reason = MQTTProperties()
        reason.set(.reasonString, "no")
        func reasons(_ codes: UInt8...) -> [MQTTReason] { codes.map(MQTTReason.init(rawValue:)) }
        let message = MQTTMessage(topic: "a", payload: [0x78, 0x79], isRetained: true)
        let rows: [(MQTTVersion, String, MQTTServerPacket)] = [
            (.v3, "20 02 01 00", .connack(isSessionPresent: true, .success, empty)),
            (.v3, "20 02 00 05", .connack(isSessionPresent: false, .notAuthorised, empty)),
            (.v5, "20 03 00 87 00", .connack(isSessionPresent: false, .notAuthorised, empty)),
            (.v5, "20 02 00 01", .connack(isSessionPresent: false, .unsupportedVersion, empty)),
            (.v5, "20 02 00 84", .connack(isSessionPresent: false, .unsupportedVersion, empty)),
            (.v3, "40 02 00 07", .puback(id: 7, .success, empty)),
            (.v5, "40 02 00 07", .puback(id: 7, .success, empty)),
            (.v5, "40 03 00 07 10", .puback(id: 7, .noMatchingSubscribers, empty)),
            (.v5, "40 09 00 07 97 05 1f 0002 6e6f", .puback(id: 7, .quotaExceeded, reason)),
            (.v3, "90 04 00 07 01 80", .suback(id: 7, reasons(1, 0x80), empty)),
            (.v5, "90 04 00 07 00 01", .suback(id: 7, reasons(1), empty)),
            (.v3, "b0 02 00 07", .unsuback(id: 7, [], empty)),
            (.v5, "b0 04 00 07 00 11", .unsuback(id: 7, reasons(0x11), empty)), (.v5, "d0 00", .pingresp),
            (.v5, "e0 00", .disconnect(.success, empty)), (.v5, "e0 01 8e", .disconnect(.sessionTakenOver, empty)),
            (.v3, "3b 07 0001 61 0009 78 79", .publish(message, id: 9, isDuplicate: true, empty)),
        ]
        for (version, bytes, packet) in rows { #expect(try read(bytes, version) == packet, "\(version) \(bytes)") }
    }

    static let forbidden: [(String, UInt8)] = [
        ("00 00", 0x81), ("f1 00", 0x81), ("41 02 0001", 0x81), ("80 00", 0x81),  // 2.1.3: flags
        ("48 54 54 50", 0x81), ("15 03 01", 0x81),  // the beginnings of HTTP and of a TLS alert
        ("40 80 80 80 80", 0x81), ("30 ff ff ff 7f", 0x95), ("30 e6 07", 0x95),  // lengths; 999 bytes are one too many
        ("40 00", 0x81), ("40 01 00", 0x81), ("40 02 00 00", 0x81), ("40 04 0001 00 01", 0x81),  // 3.4
        ("40 05 0001 00 00 00", 0x81), ("40 06 0001 00 02 11 00", 0x81),
        ("40 0b 0001 00 07 1f 0001 61 1f 0000", 0x82), ("20 02 00 00", 0x81), ("20 03 02 00 00", 0x81),  // 3.2
        ("20 03 00 10 00", 0x81), ("20 06 00 00 03 21 00 00", 0x82), ("20 05 00 00 02 24 02", 0x82),
        ("20 08 00 00 05 27 00000000", 0x82), ("20 05 00 00 02 01 00", 0x81),
        ("31 03 0001 61", 0x81), ("38 04 0001 61 00", 0x81), ("36 06 0001 61 0001 00", 0x81),  // 3.3
        ("34 06 0001 61 0001 00", 0x82), ("32 06 0001 61 0000 00", 0x81), ("30 04 0001 23 00", 0x90),
        ("30 03 0000 00", 0x90), ("30 07 0001 61 03 23 00 01", 0x94), ("30 04 0001 00 00", 0x81),
        ("30 05 0002 c328 00", 0x81), ("30 06 0003 eda080 00", 0x81), ("30 06 0001 61 02 01 02", 0x82),
        ("50 02 0001", 0x82), ("62 02 0001", 0x82), ("70 02 0001", 0x82),  // QoS 2
        ("10 00", 0x82), ("82 02 0001", 0x82), ("a2 02 0001", 0x82), ("c0 00", 0x82), ("f0 00", 0x82),  // a client's
        ("d0 01 00", 0x81), ("e0 02 00 01", 0x81), ("90 02 0000", 0x81),
    ]

    @Test func whatTheStandardForbids() {
        for (bytes, reason) in Self.forbidden {
            let defect = #expect(throws: MQTTDefect.self, "\(bytes)") { _ = try read(bytes) }
            #expect(defect?.reason.rawValue == reason, "\(bytes): \(defect?.words ?? "")")
        }
        for bytes in ["20 02 00 06", "20 03 00 00 00", "40 03 0001 00", "e0 00", "f0 00", "b0 03 0001 00"] {
            #expect(throws: MQTTDefect.self, "\(bytes)") { _ = try read(bytes, .v3) }
        }
    }

    @Test func aPacketIsAwaitedToItsEnd() throws {
        let bytes = "32 0a 0003 612f62 0009 00 78 79"
        let count = hex(bytes).count
        for length in 0..<count {
            var reader = MQTTPacketReader(.v5, packetBytesMax: 12)
            reader.append(hex(bytes)[..<length])
            #expect(try reader.next() == nil)
            reader.append(hex(bytes)[length...])
            #expect(try reader.next() != nil && reader.next() == nil)
        }
    }

    // Every text of the table is for people, and no code counts as a success that the standard does not know.
    @Test func reasons() {
        let known: [(UInt8, MQTTMeaning)] = [
            (0x00, .accepted), (0x10, .notConfirmed), (0x87, .auth), (0x90, .misconfigured), (0x97, .slowDown),
            (0x99, .bisect), (0x8E, .taken), (0x84, .version), (0x80, .retry),
        ]
        for (code, meaning) in known { #expect(MQTTReason(rawValue: code).meaning == meaning) }
        for code in UInt8.min...UInt8.max where MQTTReason(rawValue: code).words == "an unknown reason" {
            #expect(MQTTReason(rawValue: code).meaning == (code < 0x80 ? .notConfirmed : .retry))
        }
        let inTheStandard: [UInt8] = [0x00, 0x01, 0x02, 0x04, 0x10, 0x11] + Array(0x80...0xA2)
        for code in inTheStandard where code != 0x8C {
            #expect(MQTTReason(rawValue: code).words != "an unknown reason")
        }
    }
}
