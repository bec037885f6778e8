import TestSupport
import Testing
import WaypostCore

@testable import Protocols

@Suite("MQTT client") struct MQTTClientTests {
    private static func connected(
        _ version: MQTTVersion = .v5, connack: String? = nil, _ change: (inout MQTTClient.Settings) -> Void = { _ in }
    ) throws -> MQTTClient {
        var settings = MQTTClient.Settings(clientID: "van")
        settings.version = version
        change(&settings)
        var client = try MQTTClient(settings, at: .zero)
        let (room, first) = (client.room, client.takeOutput().first)
        let events = client.hear(connack ?? (version == .v5 ? "20 03 00 00 00" : "20 02 00 00"))
        guard room == 0, first == 0x10, case .connected? = events.first, events.count == 1 else {
            Issue.record("\(room), \(String(describing: first)), \(events)")
            return client
        }
        return client
    }

    private static let message = MQTTMessage(topic: "a", payload: [7])

    private func ending(_ events: [MQTTClient.Event]) -> MQTTClient.Ending? {
        guard case .ended(let ending, _)? = events.last else { return nil }
        return ending
    }

    /// nil where the last event is none.
    private func defect(_ events: [MQTTClient.Event]) -> MQTTReason? {
        if case .defect(let defect)? = ending(events) { defect.reason } else { nil }
    }

    /// Not even one that comes in the same turn in which it is wanted, as after CONNACK.
    @Test(arguments: [MQTTVersion.v3, .v5]) func nothingIsAnsweredBeforeItWasWritten(version: MQTTVersion) throws {
        var client = try Self.connected(version)
        let id = try client.publish(Self.message, at: .zero)
        let early = client.received(hex("40 02 00 01")[...], at: .zero)
        guard case .ended(.defect(let defect), unsettled: [1])? = early.last, id == 1, early.count == 1 else {
            return _ = Issue.record("\(early)")
        }
        #expect(defect.reason == .protocolError)
    }

    // MQTT 5, 3.2.2.3: what the server says about itself holds.
    @Test func theServerSetsLimits() throws {
        let limits = "21 0003 24 00 25 00 27 00000010 13 000a 12 0002 6a6b"
        var client = try MQTTClient(MQTTClient.Settings(clientID: ""), at: .zero)
        let events = client.hear("20 17 00 00 14" + limits)
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
            let events = client.hear(connack)
            #expect(events == [.ended(.refused(reason, detail: nil), unsettled: [])], "\(connack)")
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

    @Test func whatIsNoConnection() throws {
        for bytes in ["d0 00", "40 02 0001", "20 03 01 00 00", "20 03 00 00 00 20 03 00 00 00", "48 54 54 50 2f"] {
            var client = try MQTTClient(MQTTClient.Settings(clientID: "van"), at: .zero)
            #expect(defect(client.hear(bytes)) != nil, "\(bytes)")
        }
    }

    // 4.3.2 and 4.9: the window, and answers in any order.
    @Test func publishesAreSettledInAnyOrder() throws {
        var client = try Self.connected()
        var ids: [UInt16?] = []
        for _ in 0..<20 { ids.append(try client.publish(Self.message, at: .zero)) }
        #expect(ids == (1...20).map { UInt16($0) } && client.room == 0)
        #expect(throws: MQTTRefusal.windowFull) { _ = try client.publish(Self.message, at: .zero) }
        #expect(client.takeOutput().count == 180)
        let settled: [MQTTClient.Event] = [
            .settled(5, .noMatchingSubscribers, detail: nil), .settled(3, .success, detail: nil),
        ]
        #expect(client.hear("40 04 0005 10 00 40 02 0003") == settled)
        #expect(client.room == 2)
        #expect(client.hear("40 0b 0001 97 07 1f 0004 66756c6c") == [.settled(1, .quotaExceeded, detail: "full")])
        let rest: [UInt16] = [2, 4] + (6...20)
        #expect(client.connectionLost(at: .zero) == [.ended(.lost, unsettled: rest)])
        #expect(client.connectionLost(at: .zero) == [])
        #expect(throws: MQTTRefusal.notConnected) { _ = try client.publish(Self.message, at: .zero) }
    }

    // 2.2.1: an id is not 0 and not in use.
    @Test func packetIDsGoRoundWithoutThoseInUse() throws {
        var client = try Self.connected()
        let first = try #require(try client.publish(Self.message, at: .zero))
        for round in 0..<66_000 {
            let id = try client.publish(Self.message, at: .zero) ?? 0
            _ = client.takeOutput()
            let events = client.received([0x40, 2, UInt8(id >> 8), UInt8(id & 0xFF)], at: .zero)
            guard id != 0, id != first, events.count == 1 else {
                Issue.record("round \(round): \(id), \(events)")
                return
            }
        }
    }

    @Test func anAnswerWithoutAQuestionIsADefect() throws {
        for bytes in ["40 02 0009", "90 03 0001 01", "b0 02 0001", "d0 00", "40 02 0001 40 02 0001"] {
            var client = try Self.connected(.v3)
            _ = try client.publish(Self.message, at: .zero)
            #expect(defect(client.hear(bytes)) == .protocolError, "\(bytes)")
        }
    }

    @Test func aDefectIsToldToTheServerOnlyInVersion5() throws {
        let rows: [(MQTTVersion, String)] = [(.v5, "e0 01 82"), (.v3, "")]
        for (version, said) in rows {
            var client = try Self.connected(version)
            _ = try client.publish(Self.message, at: .zero)
            _ = client.takeOutput()
            let events = client.hear("62 02 0001")
            guard case .ended(.defect, unsettled: [1])? = events.last else {
                Issue.record("\(events)")
                return
            }
            #expect(client.takeOutput() == hex(said))
            #expect(client.hear("40 02 0001") == [])
        }
    }

    @Test func theServerEndsIt() throws {
        var client = try Self.connected()
        _ = try client.publish(Self.message, at: .zero)
        let events = client.hear("e0 01 8e")
        #expect(events == [.ended(.dismissed(.sessionTakenOver, detail: nil), unsettled: [1])])
        #expect(ending(events)?.meaning == .taken)
        var other = try Self.connected()
        let moved = ending(other.hear("e0 09 9d 07 1c 0004 62323a31"))
        #expect(moved == .dismissed(MQTTReason(rawValue: 0x9D), detail: "it names b2:1"))
        var third = try Self.connected()
        #expect(ending(third.hear("e0 00"))?.meaning == .retry)
    }

    @Test func weEndIt() throws {
        let rows: [(MQTTVersion, Bool, String)] = [
            (.v5, false, "e0 00"), (.v5, true, "e0 01 04"), (.v3, false, "e0 00"), (.v3, true, ""),
        ]
        for (version, withWill, said) in rows {
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
        _ = client.hear("40 02 0001", at: 51)
        _ = client.takeOutput()
        #expect(client.nextDeadline == seconds(110))
        #expect(client.deadlineReached(at: seconds(60)) == [] && client.takeOutput().isEmpty)
        #expect(client.deadlineReached(at: seconds(110)) == [] && client.takeOutput() == hex("c0 00"))
        #expect(client.nextDeadline == seconds(170))
        #expect(client.hear("d0 00", at: 111) == [] && client.nextDeadline == seconds(170))
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

    /// It would keep a dead connection for ever.
    @Test func aServerWithoutKeepaliveIsAskedAllTheSame() throws {
        let client = try Self.connected(connack: "20 06 00 00 03 13 0000")
        #expect(client.nextDeadline == seconds(300))
    }

    @Test func everyPublishIsAnsweredInTimeOrTheConnectionIsLost() throws {
        var client = try Self.connected()
        _ = try client.publish(Self.message, at: seconds(1))
        _ = try client.publish(Self.message, at: seconds(2))
        #expect(client.nextDeadline == seconds(61))
        _ = client.hear("40 02 0001", at: 60)
        #expect(client.nextDeadline == seconds(62))
        #expect(client.deadlineReached(at: seconds(62)) == [.ended(.noAnswer(to: .publish), unsettled: [2])])
    }

    // 3.8 to 3.11.
    @Test func subscriptions() throws {
        let rows:
            [(version: MQTTVersion, suback: String, refused: UInt8, unsuback: String, left: [UInt8], short: String)] = [
                (.v3, "90 04 0001 01 80", 0x80, "b0 02 0002", [], "90 04 0003 01 01"),
                (.v5, "90 05 0001 00 01 87", 0x87, "b0 04 0002 00 11", [0x11], "90 05 0003 00 01 01"),
            ]
        for row in rows {
            var client = try Self.connected(row.version)
            #expect(try client.subscribe([MQTTSubscription("a"), MQTTSubscription("b")], at: .zero) == 1)
            let granted = [MQTTReason(rawValue: 1), MQTTReason(rawValue: row.refused)]
            #expect(client.hear(row.suback) == [.subscribed(1, granted)])
            #expect(try client.unsubscribe(["a"], at: .zero) == 2)
            #expect(client.hear(row.unsuback) == [.unsubscribed(2, row.left.map(MQTTReason.init(rawValue:)))])
            for filters in [[], [MQTTSubscription("a#")]] {
                #expect(throws: MQTTRefusal.self) { _ = try client.subscribe(filters, at: .zero) }
            }
            _ = try client.subscribe([MQTTSubscription("a")], at: .zero)
            #expect(defect(client.hear(row.short)) != nil, "two answers to one filter")
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
        let unconfirmed = MQTTMessage(topic: "a", payload: [7], qos: .atMostOnce)
        let events = client.hear("30 05 0001 61 00 07 32 07 0001 61 0009 00 07")
        #expect(events == [.message(unconfirmed), .message(Self.message)])
        #expect(client.takeOutput() == hex("40 02 0009"))
    }

    @Test func aServerThatDoesNotReadIsCutOff() throws {
        var client = try Self.connected()
        var events: [MQTTClient.Event] = []
        for _ in 0..<21 { events += client.hear("32 07 0001 61 0009 00 07") }
        #expect(defect(events) == .receiveMaximumExceeded)
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
        var settings = [MQTTClient.Settings](repeating: MQTTClient.Settings(clientID: "van"), count: 6)
        settings[0].clientID = long
        settings[1].clientID = "a\u{0}"
        settings[2].user = long
        settings[3].password = Array(long.utf8)
        (settings[4].version, settings[4].password) = (.v3, [1])
        settings[5].will = MQTTMessage(topic: "a", payload: Array(long.utf8))
        for (index, settings) in settings.enumerated() {
            #expect(throws: MQTTSetupError.self, "\(index)") { _ = try MQTTClient(settings, at: .zero) }
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

    @Test(arguments: testSeeds(1...16)) func anyPiecesGiveTheSame(seed: UInt64) throws {
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
            client.wasWritten()
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

    @Test(arguments: testSeeds(1...16)) func anyBytesAreSurvived(seed: UInt64) throws {
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
            var ends = 0
            for event in events {
                switch event {
                case .settled(1, _, _), .ended(_, unsettled: [1]): ends += 1
                default: break
                }
            }
            guard ends == 1 || (ends == 0 && client.nextDeadline != nil) else {
                Issue.record("seed \(seed): \(events)")
                return
            }
        }
    }
}
