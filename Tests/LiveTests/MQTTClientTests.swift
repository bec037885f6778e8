import Positioning
import TestSupport
import Testing

@testable import Live

@Suite("MQTT client") struct MQTTClientTests {
    private static func connected(
        _ version: MQTTVersion = .v5, connack: String? = nil, _ change: (inout MQTTClient.Settings) -> Void = { _ in }
    ) throws -> MQTTClient {
        var settings = MQTTClient.Settings(clientID: "van")
        settings.version = version
        change(&settings)
        var client = try MQTTClient(settings, at: .zero)
        #expect(client.room == 0)
        #expect(client.takeOutput().first == 0x10)
        let events = client.received(
            hex(connack ?? (version == .v5 ? "20 03 00 00 00" : "20 02 00 00"))[...], at: .zero)
        guard case .connected? = events.first, events.count == 1 else {
            Issue.record("\(events)")
            return client
        }
        return client
    }

    private static let message = MQTTMessage(topic: "a", payload: [7])

    private func ending(_ events: [MQTTClient.Event]) -> MQTTClient.Ending? {
        guard case .ended(let ending, _)? = events.last else { return nil }
        return ending
    }

    // MQTT 5, 3.2.2.3: what the server says about itself holds.
    @Test func theServerSetsLimits() throws {
        let limits = "21 0003 24 00 25 00 27 00000010 13 000a 12 0002 6a6b"
        var client = try MQTTClient(MQTTClient.Settings(clientID: ""), at: .zero)
        let events = client.received(hex("20 17 00 00 14" + limits)[...], at: .zero)
        guard case .connected(let welcome)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(welcome.window == 3 && welcome.keepAlive == 10 && welcome.clientID == "jk")
        #expect(client.room == 3)
        #expect(throws: MQTTRefusal.qosUnsupported) { _ = try client.publish(Self.message, at: .zero) }
        var message = MQTTMessage(topic: "a", payload: [7], qos: .atMostOnce, isRetained: true)
        #expect(throws: MQTTRefusal.retainUnsupported) { _ = try client.publish(message, at: .zero) }
        message.isRetained = false
        #expect(try client.publish(message, at: .zero) == nil)
        message.payload = [UInt8](repeating: 0, count: 11)
        #expect(throws: MQTTRefusal.tooLarge(bytes: 17, bytesMax: 16)) { _ = try client.publish(message, at: .zero) }
        #expect(client.nextDeadline == seconds(10))
    }

    @Test func aRefusalHasItsMeaning() throws {
        let rows: [(MQTTVersion, String, MQTTReason, MQTTMeaning)] = [
            (.v5, "20 03 00 84 00", .unsupportedVersion, .version), (.v5, "20 02 00 01", .unsupportedVersion, .version),
            (.v5, "20 03 00 87 00", .notAuthorised, .auth), (.v5, "20 03 00 86 00", .badCredential, .auth),
            (.v5, "20 03 00 97 00", .quotaExceeded, .slowDown), (.v5, "20 03 00 85 00", .badClientID, .misconfigured),
            (.v3, "20 02 00 01", .unsupportedVersion, .version), (.v3, "20 02 00 02", .badClientID, .misconfigured),
            (.v3, "20 02 00 03", .serverUnavailable, .retry), (.v3, "20 02 00 04", .badCredential, .auth),
            (.v3, "20 02 00 05", .notAuthorised, .auth),
        ]
        for (version, connack, reason, meaning) in rows {
            var settings = MQTTClient.Settings(clientID: "van")
            settings.version = version
            var client = try MQTTClient(settings, at: .zero)
            _ = client.takeOutput()
            let events = client.received(hex(connack)[...], at: .zero)
            #expect(events == [.ended(.refused(reason, detail: nil), unsettled: [])])
            #expect(ending(events)?.meaning == meaning, "\(connack)")
            #expect(client.takeOutput().isEmpty && client.nextDeadline == nil)
        }
    }

    @Test func connectHasToBeAnsweredInTime() throws {
        var client = try MQTTClient(MQTTClient.Settings(clientID: "van"), at: seconds(1))
        #expect(client.nextDeadline == seconds(11))
        #expect(client.deadlineReached(at: seconds(10)) == [])
        #expect(ending(client.deadlineReached(at: seconds(11))) == .noAnswer(to: .connect))
    }

    @Test(arguments: [
        "d0 00", "40 02 0001", "20 03 01 00 00", "20 03 00 00 00 20 03 00 00 00", "48 54 54 50 2f",
    ]) func whatIsNoConnection(bytes: String) throws {
        var client = try MQTTClient(MQTTClient.Settings(clientID: "van"), at: .zero)
        guard case .defect? = ending(client.received(hex(bytes)[...], at: .zero)) else {
            Issue.record("taken")
            return
        }
    }

    // 4.3.2 and 4.9: the window, and answers in any order.
    @Test func publishesAreSettledInAnyOrder() throws {
        var client = try Self.connected()
        var ids: [UInt16] = []
        for _ in 0..<20 { ids.append(try #require(try client.publish(Self.message, at: .zero))) }
        #expect(Set(ids).count == 20 && client.room == 0)
        #expect(throws: MQTTRefusal.windowFull) { _ = try client.publish(Self.message, at: .zero) }
        #expect(client.takeOutput().count == 20 * 9)
        #expect(
            client.received((hex("40 04 0005 10 00 40 02 0003")[...]), at: .zero)
                == [.settled(5, .noMatchingSubscribers, detail: nil), .settled(3, .success, detail: nil)])
        #expect(client.room == 2)
        let said = hex("40 0b 0001 97 07 1f 0004 66756c6c")
        #expect(client.received(said[...], at: .zero) == [.settled(1, .quotaExceeded, detail: "full")])
        let rest = ids.filter { ![1, 3, 5].contains($0) }
        #expect(client.connectionLost(at: .zero) == [.ended(.lost, unsettled: rest)])
        #expect(client.connectionLost(at: .zero) == [])
        #expect(throws: MQTTRefusal.notConnected) { _ = try client.publish(Self.message, at: .zero) }
    }

    // 2.2.1: an id is not 0 and not in use.
    @Test func packetIDsGoRoundWithoutThoseInUse() throws {
        var client = try Self.connected()
        let first = try #require(try client.publish(Self.message, at: .zero))
        for _ in 0..<70_000 {
            let id = try #require(try client.publish(Self.message, at: .zero))
            #expect(id != 0 && id != first)
            #expect(client.received([0x40, 2, UInt8(id >> 8), UInt8(id & 0xFF)], at: .zero).count == 1)
            _ = client.takeOutput()
        }
    }

    @Test(arguments: ["40 02 0009", "90 03 0001 01", "b0 02 0001", "d0 00", "40 02 0001 40 02 0001"])
    func anAnswerWithoutAQuestionIsADefect(bytes: String) throws {
        var client = try Self.connected(.v3)
        _ = try client.publish(Self.message, at: .zero)
        guard case .defect(let defect)? = ending(client.received(hex(bytes)[...], at: .zero)) else {
            Issue.record("taken")
            return
        }
        #expect(defect.reason == .protocolError)
    }

    @Test func aDefectIsToldToTheServerOnlyInVersion5() throws {
        for (version, said) in [(MQTTVersion.v5, "e0 01 82"), (.v3, "")] {
            var client = try Self.connected(version)
            _ = try client.publish(Self.message, at: .zero)
            _ = client.takeOutput()
            let events = client.received(hex("62 02 0001")[...], at: .zero)
            guard case .ended(.defect, unsettled: [1])? = events.last else {
                Issue.record("\(events)")
                return
            }
            #expect(client.takeOutput() == hex(said))
            #expect(client.received(hex("40 02 0001")[...], at: .zero) == [])
        }
    }

    @Test func theServerEndsIt() throws {
        var client = try Self.connected()
        _ = try client.publish(Self.message, at: .zero)
        let events = client.received(hex("e0 01 8e")[...], at: .zero)
        #expect(events == [.ended(.dismissed(.sessionTakenOver, detail: nil), unsettled: [1])])
        #expect(ending(events)?.meaning == .taken)
        var other = try Self.connected()
        let moved = other.received(hex("e0 09 9d 07 1c 0004 62323a31")[...], at: .zero)
        #expect(ending(moved) == .dismissed(MQTTReason(rawValue: 0x9D), detail: "it names b2:1"))
        var third = try Self.connected()
        #expect(ending(third.received(hex("e0 00")[...], at: .zero))?.meaning == .retry)
    }

    @Test func weEndIt() throws {
        for (version, withWill, said) in [
            (MQTTVersion.v5, false, "e0 00"), (.v5, true, "e0 01 04"), (.v3, false, "e0 00"), (.v3, true, ""),
        ] {
            var client = try Self.connected(version)
            #expect(client.disconnect(withWill: withWill) == [.ended(.disconnected, unsettled: [])])
            #expect(client.takeOutput() == hex(said))
            #expect(client.disconnect() == [])
        }
    }

    // 3.1.2.10: a PINGREQ only where nothing was sent.
    @Test func keepaliveAsksOnlyInSilence() throws {
        var client = try Self.connected { $0.keepAlive = 60 }
        #expect(client.nextDeadline == seconds(60))
        _ = try client.publish(Self.message, at: seconds(50))
        _ = client.received(hex("40 02 0001")[...], at: seconds(51))
        _ = client.takeOutput()
        #expect(client.nextDeadline == seconds(110))
        #expect(client.deadlineReached(at: seconds(60)) == [] && client.takeOutput().isEmpty)
        #expect(client.deadlineReached(at: seconds(110)) == [])
        #expect(client.takeOutput() == hex("c0 00"))
        #expect(client.nextDeadline == seconds(170))
        #expect(client.received(hex("d0 00")[...], at: seconds(111)) == [])
        #expect(client.nextDeadline == seconds(170))
        _ = client.deadlineReached(at: seconds(170))
        #expect(ending(client.deadlineReached(at: seconds(230))) == .noAnswer(to: .ping))
        #expect(client.takeOutput() == hex("c0 00 e0 01 80"))
    }

    @Test func messagesWithoutConfirmationDoNotGoIntoADeadConnectionForEver() throws {
        var client = try Self.connected { $0.keepAlive = 60 }
        let message = MQTTMessage(topic: "a", payload: [], qos: .atMostOnce)
        for second in stride(from: 10.0, through: 60, by: 10) { _ = try client.publish(message, at: seconds(second)) }
        _ = client.deadlineReached(at: seconds(60))
        #expect(client.takeOutput().suffix(2) == [0xC0, 0])
        #expect(ending(client.deadlineReached(at: seconds(120))) == .noAnswer(to: .ping))
    }

    @Test func noKeepaliveNoDeadline() throws {
        let client = try Self.connected(connack: "20 06 00 00 03 13 0000")
        #expect(client.nextDeadline == nil)
    }

    @Test func everyPublishIsAnsweredInTimeOrTheConnectionIsLost() throws {
        var client = try Self.connected()
        _ = try client.publish(Self.message, at: seconds(1))
        _ = try client.publish(Self.message, at: seconds(2))
        #expect(client.nextDeadline == seconds(61))
        _ = client.received(hex("40 02 0001")[...], at: seconds(60))
        #expect(client.nextDeadline == seconds(62))
        #expect(client.deadlineReached(at: seconds(62)) == [.ended(.noAnswer(to: .publish), unsettled: [2])])
    }

    // 3.8 to 3.11.
    @Test func subscriptions() throws {
        for version in [MQTTVersion.v3, .v5] {
            var client = try Self.connected(version)
            let id = try client.subscribe([MQTTSubscription("a"), MQTTSubscription("b")], at: .zero)
            #expect(id == 1)
            let answer = version == .v5 ? "90 05 0001 00 01 87" : "90 04 0001 01 80"
            let refused = MQTTReason(rawValue: version == .v5 ? 0x87 : 0x80)
            #expect(
                client.received(hex(answer)[...], at: .zero)
                    == [.subscribed(1, [MQTTReason(rawValue: 1), refused])])
            #expect(try client.unsubscribe(["a"], at: .zero) == 2)
            #expect(
                client.received(hex(version == .v5 ? "b0 04 0002 00 11" : "b0 02 0002")[...], at: .zero)
                    == [.unsubscribed(2, version == .v5 ? [MQTTReason(rawValue: 0x11)] : [])])
            #expect(throws: MQTTRefusal.self) { _ = try client.subscribe([], at: .zero) }
            #expect(throws: MQTTRefusal.self) { _ = try client.subscribe([MQTTSubscription("a#")], at: .zero) }
            _ = try client.subscribe([MQTTSubscription("a")], at: .zero)
            let wrong = client.received(
                hex(version == .v5 ? "90 05 0003 00 01 01" : "90 04 0003 01 01")[...], at: .zero)
            guard case .defect? = ending(wrong) else {
                Issue.record("taken")
                return
            }
        }
    }

    @Test func subscriptionsAreBounded() throws {
        var client = try Self.connected()
        for _ in 0..<8 { _ = try client.subscribe([MQTTSubscription("a")], at: .zero) }
        #expect(throws: MQTTRefusal.windowFull) { _ = try client.unsubscribe(["a"], at: .zero) }
        #expect(client.room == 20, "the window is that of publishes")
    }

    // 4.3: what comes in is confirmed at once.
    @Test func messagesOfTheServer() throws {
        var client = try Self.connected()
        _ = client.takeOutput()
        #expect(
            client.received(hex("30 05 0001 61 00 07 32 07 0001 61 0009 00 07")[...], at: .zero)
                == [.message(MQTTMessage(topic: "a", payload: [7], qos: .atMostOnce)), .message(Self.message)])
        #expect(client.takeOutput() == hex("40 02 0009"))
    }

    @Test func aServerThatDoesNotReadIsCutOff() throws {
        var client = try Self.connected()
        var events: [MQTTClient.Event] = []
        for _ in 0..<21 { events += client.received(hex("32 07 0001 61 0009 00 07")[...], at: .zero) }
        guard case .defect(let defect)? = ending(events) else {
            Issue.record("kept")
            return
        }
        #expect(defect.reason == .receiveMaximumExceeded)
    }

    @Test(arguments: ["", "a/#", "a\u{0}"]) func impossibleTopics(topic: String) throws {
        var client = try Self.connected()
        #expect(throws: MQTTRefusal.self) { _ = try client.publish(MQTTMessage(topic: topic, payload: []), at: .zero) }
        #expect(client.takeOutput().isEmpty && client.room == 20)
        var settings = MQTTClient.Settings(clientID: "van")
        settings.will = MQTTMessage(topic: topic, payload: [])
        #expect(throws: MQTTSetupError.self) { _ = try MQTTClient(settings, at: .zero) }
    }

    @Test func impossibleSettings() {
        let long = String(repeating: "x", count: 65_536)
        let changes: [(inout MQTTClient.Settings) -> Void] = [
            { $0.clientID = long }, { $0.clientID = "a\u{0}" }, { $0.user = long },
            { $0.password = Array(long.utf8) },
            {
                $0.version = .v3; $0.password = [1]
            },
            { $0.will = MQTTMessage(topic: "a", payload: Array(long.utf8)) },
        ]
        for change in changes {
            var settings = MQTTClient.Settings(clientID: "van")
            change(&settings)
            #expect(throws: MQTTSetupError.self) { _ = try MQTTClient(settings, at: .zero) }
        }
    }

    @Test func aLongWordOfTheServerIsCut() throws {
        var client = try Self.connected()
        let words = [UInt8](repeating: 0x61, count: 10_000)
        let body = hex("8e 93 4e 1f 27 10") + words
        let events = client.received((hex("e0 96 4e") + body)[...], at: .zero)
        guard case .ended(.dismissed(_, let detail?), _)? = events.last else {
            Issue.record("\(events)")
            return
        }
        #expect(detail.utf8.count <= 256)
    }

    @Test(arguments: testSeeds(1...40)) func anyPiecesGiveTheSame(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let version: MQTTVersion = seed % 2 == 0 ? .v5 : .v3
        var bytes: [UInt8] = []
        for id in UInt8(1)...20 {
            bytes += [0x40, 2, 0, id]
            let count = Int.random(in: 0..<400, using: &generator)
            let payload = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            var message = MQTTMessage(topic: "a/b", payload: payload)
            message.isRetained = Bool.random(using: &generator)
            bytes += MQTTClientPacket.publish(message, id: UInt16(id)).bytes(version)
        }
        if seed % 4 < 2 {
            bytes += [[0xD0, 0], [0x62, 2, 0, 1], [0xE0, 0], [0xFF]].randomElement(using: &generator)!
        }
        let start = try Self.connected(version)
        func run(_ pieces: [ArraySlice<UInt8>]) throws -> ([MQTTClient.Event], [UInt8]) {
            var client = start
            for _ in 0..<20 { _ = try client.publish(Self.message, at: .zero) }
            var events: [MQTTClient.Event] = []
            for piece in pieces { events += client.received(piece, at: .zero) }
            return (events, client.takeOutput())
        }
        let whole = try run([bytes[...]])
        let cut = try run(pieces(bytes, using: &generator))
        #expect(cut.0 == whole.0, "seed \(seed)")
        #expect(cut.1 == whole.1, "seed \(seed)")
        #expect(whole.0.count >= 40)
    }

    @Test(arguments: testSeeds(1...40)) func anyBytesAreSurvived(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            var client = try Self.connected(seed % 2 == 0 ? .v5 : .v3)
            _ = try client.publish(Self.message, at: .zero)
            var bytes: [UInt8] = []
            for _ in 0..<6 {
                let body = (0..<Int.random(in: 0..<20, using: &generator)).map { _ in
                    UInt8.random(in: 0...(Bool.random(using: &generator) ? 3 : 255), using: &generator)
                }
                let first = [0x20, 0x30, 0x32, 0x40, 0x90, 0xB0, 0xD0, 0xE0].randomElement(using: &generator)!
                bytes += [UInt8(first), UInt8(body.count)] + body
            }
            let events = client.received(bytes[...], at: .zero)
            let settled = events.count { if case .settled(1, _, _) = $0 { true } else { false } }
            let unsettled = events.count { if case .ended(_, unsettled: [1]) = $0 { true } else { false } }
            #expect(settled + unsettled <= 1, "seed \(seed)")
            if client.nextDeadline == nil { #expect(settled + unsettled == 1, "seed \(seed)") }
        }
    }
}
