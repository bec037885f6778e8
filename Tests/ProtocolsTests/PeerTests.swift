import Foundation
import TestSupport
import Testing
import WaypostCore

@testable import Protocols

/// Against independent implementations: `scripts/live/conformance` has the libraries make one file and read the other.
/// Without it these are the files of `fixtures/live`, which went through the same.
@Suite("What other implementations make and read") struct PeerTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static func lines(of name: String) throws -> [JSONValue] {
        let path =
            environment["WAYPOST_LIVE_FOLDER"].map { "\($0)/\(name)" }
            ?? URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/../../fixtures/live/\(name)"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        return try bytes.split(separator: 0x0A).map { try #require(JSONReader.read(Array($0), bytesMax: 1_000_000)) }
    }

    @Test func whatTheyMakeIsRead() throws {
        let lines = try Self.lines(of: "made.jsonl")
        #expect(lines.count >= 30)
        for line in lines {
            let bytes = hex(try #require(line["bytes"]?.string))
            if let version = line["version"]?.integer {
                var reader = MQTTPacketReader(version == 5 ? .v5 : .v3, packetBytesMax: 100_000)
                reader.append(bytes[...])
                let packet = try reader.next()
                #expect(packet?.json == line["packet"], "\(line)")
                #expect(try reader.next() == nil, "\(line)")
            } else {
                try readConversation(line, bytes)
            }
        }
    }

    private func readConversation(_ line: JSONValue, _ bytes: [UInt8]) throws {
        var settings = WebSocketClient.Settings(host: "h", target: "/x")
        settings.subprotocols = line["offered"]?.items?.compactMap(\.string) ?? []
        let nonce = hex(try #require(line["nonce"]?.string))
        let handshake = try WebSocketHandshake(settings, nonce: InlineArray { nonce[$0] })
        #expect(try handshake.answered(hex(try #require(line["response"]?.string))[...]) == line["chosen"]?.string)
        var reader = WebSocketReader(messageBytesMax: 100_000)
        reader.append(bytes[...])
        var events: [JSONValue] = []
        while let item = try reader.next() { events.append(item.json) }
        #expect(.array(events) == line["events"], "\(line)")
    }

    /// What they have read as it was meant stays as it is.
    @Test func whatWeWriteIsWhatTheyRead() throws {
        guard let folder = Self.environment["WAYPOST_LIVE_FOLDER"] else {
            #expect(try Self.lines(of: "written.jsonl") == Self.written(seed: 1, count: 30))
            return
        }
        let count = try #require(Int(Self.environment["WAYPOST_LIVE_COUNT"] ?? "30"))
        let seed = try #require(UInt64(Self.environment["WAYPOST_LIVE_SEED"] ?? "1"))
        var text: [UInt8] = []
        for line in Self.written(seed: seed, count: count) { text += line.written + [0x0A] }
        try Data(text).write(to: URL(fileURLWithPath: "\(folder)/written.jsonl"))
    }

    private static func written(seed: UInt64, count: Int) -> [JSONValue] {
        var random = RandomPackets(generator: SeededGenerator(seed: seed), longest: count > 100 ? 70_000 : 300)
        return (0..<count).flatMap { index in
            var lines: [JSONValue] = []
            for version in [MQTTVersion.v5, .v3] {
                let packet = random.packet(index % 7, version)
                lines.append(
                    .object([
                        .init("version", .int(Int64(version.rawValue))),
                        .init("bytes", .string(hex(packet.bytes(version)))), .init("packet", packet.json(version)),
                    ]))
            }
            if index % 4 == 0 { lines.append(random.conversation()) }
            return lines
        }
    }
}

private struct RandomPackets {
    var generator: SeededGenerator
    /// Bytes of a message now and then.
    let longest: Int

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    mutating func flip() -> Bool { Bool.random(using: &generator) }

    mutating func text(_ longest: Int = 20) -> String {
        let letters = Array("abcxyz019 -_:üß€😀\"\\")
        return String((0..<number(0...longest)).map { _ in letters.randomElement(using: &generator)! })
    }

    mutating func data() -> [UInt8] {
        let count = [0, 1, 5, 100, 119, 200, 500].randomElement(using: &generator)!
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    mutating func topic() -> String {
        (0..<number(2...4)).map { _ in ["fleet", "van-7", "location", "ü", ""].randomElement(using: &generator)! }
            .joined(separator: "/")
    }

    mutating func message(_ version: MQTTVersion) -> MQTTMessage {
        var message = MQTTMessage(
            topic: topic(), payload: data(), qos: flip() ? .atLeastOnce : .atMostOnce, isRetained: flip())
        guard version == .v5 else { return message }
        message.isText = flip()
        if message.isText { message.payload = Array(text().utf8) }
        message.expiry = flip() ? UInt32.random(in: 0...UInt32.max, using: &generator) : nil
        message.contentType = flip() ? text() : nil
        return message
    }

    mutating func packet(_ kind: Int, _ version: MQTTVersion) -> MQTTClientPacket {
        let id = UInt16(number(1...65_535))
        switch kind {
        case 0: return .connect(settings(version))
        case 1:
            let message = message(version)
            return .publish(message, id: message.qos == .atLeastOnce ? id : nil)
        case 2: return .puback(id: id)
        case 3: return .subscribe(id: id, (0..<number(1...4)).map { _ in subscription(version) })
        case 4: return .unsubscribe(id: id, (0..<number(1...4)).map { _ in topic() })
        case 5: return .pingreq
        default:
            let reasons: [MQTTReason] = [.success, .disconnectWithWill, .unspecified, .protocolError, .packetTooLarge]
            return .disconnect(version == .v5 ? reasons.randomElement(using: &generator)! : .success)
        }
    }

    mutating func settings(_ version: MQTTVersion) -> MQTTClient.Settings {
        var settings = MQTTClient.Settings(clientID: flip() ? text() + "x" : "")
        settings.version = version
        settings.keepAlive = UInt16(number(0...65_535))
        if flip() {
            settings.user = text()
            // The other side of 3.1.1 takes it for text.
            if flip() { settings.password = version == .v5 ? data() : Array(text().utf8) }
        }
        if flip() {
            settings.will = message(version)
            settings.willDelay = version == .v5 ? UInt32(number(0...100)) : 0
        }
        settings.packetBytesMax = number(1000...1_000_000)
        return settings
    }

    mutating func subscription(_ version: MQTTVersion) -> MQTTSubscription {
        var subscription = MQTTSubscription(topic() + (flip() ? "/#" : ""), qos: flip() ? .atLeastOnce : .atMostOnce)
        guard version == .v5 else { return subscription }
        subscription.excludesOwn = flip()
        subscription.keepsRetainFlag = flip()
        subscription.retained = [.always, .ifNew, .never].randomElement(using: &generator)!
        return subscription
    }

    /// Handshake and frames of a client.
    mutating func conversation() -> JSONValue {
        var settings = WebSocketClient.Settings(host: "server.example:8080", target: "/?v=5")
        settings.subprotocols = ["mqtt"]
        let nonce = InlineArray<16, UInt8> { _ in UInt8.random(in: 0...255, using: &generator) }
        guard var client = try? WebSocketClient(settings, nonce: nonce, at: .zero) else { return .null }
        let request = client.nextOutput(mask: 0) ?? []
        let answer =
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            + WebSocketKey(nonce).expectedAnswer + "\r\n\r\n"
        _ = client.received(Array(answer.utf8)[...], at: .zero)
        var bytes: [UInt8] = []
        var events: [JSONValue] = []
        for _ in 0..<number(1...10) { events.append(say(&client, &bytes)) }
        if flip() {
            let reason = text()
            _ = client.close(.goingAway, reason: reason, at: .zero)
            events.append(.array([.string("close"), .int(1001), .string(reason)]))
        }
        while let next = client.nextOutput(mask: UInt32.random(in: 0...UInt32.max, using: &generator)) { bytes += next }
        return .object([
            .init("request", .string(hex(request))), .init("bytes", .string(hex(bytes))),
            .init("events", .array(events)),
        ])
    }

    /// One frame.
    private mutating func say(_ client: inout WebSocketClient, _ bytes: inout [UInt8]) -> JSONValue {
        defer { bytes += client.nextOutput(mask: UInt32.random(in: 0...UInt32.max, using: &generator)) ?? [] }
        switch number(0...2) {
        case 0:
            let text = text(100)
            _ = client.send(text: text)
            return .array([.string("text"), .string(text)])
        case 1:
            let data = number(0...30) == 0 ? [UInt8](repeating: 1, count: longest) : data()
            _ = client.send(binary: data)
            return .array([.string("binary"), .string(hex(data))])
        default:
            let data = Array(data().prefix(125))
            _ = client.received(WebSocketClientTests.frame(0x89, data)[...], at: .zero)
            return .array([.string("pong"), .string(hex(data))])
        }
    }
}

// The form in which both sides say what bytes mean.

extension JSONValue {
    fileprivate init(_ texts: [String]) { self = .array(texts.map(JSONValue.string)) }

    fileprivate init(_ number: (some BinaryInteger)?) { self = number.map { .int(Int64($0)) } ?? .null }

    fileprivate init(_ text: String?) { self = text.map(JSONValue.string) ?? .null }

    fileprivate var written: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }
}

extension MQTTMessage {
    fileprivate var members: [JSONValue.Member] {
        [
            .init("topic", .string(topic)), .init("payload", .string(hex(payload))),
            .init("qos", JSONValue(qos.rawValue)), .init("retain", .bool(isRetained)),
        ]
    }

    fileprivate var allMembers: [JSONValue.Member] {
        let more: [JSONValue.Member] = [
            .init("text", .bool(isText)), .init("expiry", JSONValue(expiry)),
            .init("content_type", JSONValue(contentType)),
        ]
        return members + more
    }
}

extension MQTTProperties {
    /// In the order of their numbers.
    fileprivate var json: JSONValue {
        let sorted = entries.enumerated().sorted {
            ($0.element.name.rawValue, $0.offset) < ($1.element.name.rawValue, $1.offset)
        }
        return .array(
            sorted.map { _, entry in
                let values: [JSONValue] =
                    switch entry.value {
                    case .number(let number): [JSONValue(number)]
                    case .text(let text): [.string(text)]
                    case .data(let data): [.string(hex(data))]
                    case .pair(let name, let value): [.string(name), .string(value)]
                    }
                return .array([JSONValue(entry.name.rawValue)] + values)
            })
    }
}

extension JSONValue {
    fileprivate static func packet(
        _ type: String, _ message: [Member] = [], _ members: KeyValuePairs<String, JSONValue> = [:]
    ) -> JSONValue {
        .object([Member("type", .string(type))] + message + members.map { Member($0.key, $0.value) })
    }
}

extension MQTTServerPacket {
    fileprivate var json: JSONValue {
        func answer(_ type: String, _ id: UInt16, _ reasons: [MQTTReason], _ properties: MQTTProperties) -> JSONValue {
            let reasons = JSONValue.array(reasons.map { JSONValue($0.rawValue) })
            return .packet(type, [], ["id": JSONValue(id), "reasons": reasons, "properties": properties.json])
        }
        switch self {
        case .connack(let isSessionPresent, let reason, let properties):
            let reason = JSONValue(reason.rawValue)
            return .packet(
                "connack", [],
                ["session": .bool(isSessionPresent), "reason": reason, "properties": properties.json])
        case .publish(let message, let id, let isDuplicate, let properties):
            return .packet(
                "publish", message.members,
                ["duplicate": .bool(isDuplicate), "id": JSONValue(id), "properties": properties.json])
        case .puback(let id, let reason, let properties):
            let reason = JSONValue(reason.rawValue)
            return .packet("puback", [], ["id": JSONValue(id), "reason": reason, "properties": properties.json])
        case .suback(let id, let reasons, let properties): return answer("suback", id, reasons, properties)
        case .unsuback(let id, let reasons, let properties): return answer("unsuback", id, reasons, properties)
        case .pingresp: return .packet("pingresp")
        case .disconnect(let reason, let properties):
            return .packet("disconnect", [], ["reason": JSONValue(reason.rawValue), "properties": properties.json])
        }
    }
}

extension MQTTClientPacket {
    fileprivate func json(_ version: MQTTVersion) -> JSONValue {
        switch self {
        case .connect(let settings): return settings.json
        case .publish(let message, let id):
            return .packet("publish", [.init("id", JSONValue(id))] + message.allMembers)
        case .puback(let id): return .packet("puback", [], ["id": JSONValue(id)])
        case .subscribe(let id, let subscriptions):
            let filters = subscriptions.map { each in
                JSONValue.array([
                    .string(each.filter), JSONValue(each.qos.rawValue), .bool(each.excludesOwn),
                    .bool(each.keepsRetainFlag), JSONValue(each.retained.rawValue),
                ])
            }
            return .packet("subscribe", [], ["id": JSONValue(id), "filters": .array(filters)])
        case .unsubscribe(let id, let filters):
            return .packet("unsubscribe", [], ["id": JSONValue(id), "filters": JSONValue(filters)])
        case .pingreq: return .packet("pingreq")
        case .disconnect(let reason): return .packet("disconnect", [], ["reason": JSONValue(reason.rawValue)])
        }
    }
}

extension MQTTClient.Settings {
    fileprivate var json: JSONValue {
        let isV5 = version == .v5
        let members: KeyValuePairs<String, JSONValue> = [
            "client_id": .string(clientID), "clean": .bool(true), "keep_alive": JSONValue(keepAlive),
            "user": JSONValue(user), "password": JSONValue(password.map { hex($0) }),
            "will": will.map { .object($0.allMembers) } ?? .null, "will_delay": JSONValue(willDelay),
            "receive_max": isV5 ? .int(Int64(MQTTClient.incomingMax)) : .null,
            "packet_max": isV5 ? JSONValue(packetBytesMax) : .null,
        ]
        return .packet("connect", [], members)
    }
}

extension WebSocketReader.Item {
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): JSONValue(["text", text])
        case .binary(let bytes): JSONValue(["binary", hex(bytes)])
        case .ping(let payload): JSONValue(["ping", hex(payload)])
        case .pong: JSONValue(["pong"])
        case .oversized: JSONValue(["oversized"])
        case .close(let code, let reason):
            .array([.string("close"), code.map { JSONValue($0.rawValue) } ?? .null, .string(reason)])
        }
    }
}
