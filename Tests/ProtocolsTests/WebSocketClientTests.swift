import TestSupport
import Testing
import WaypostCore

@testable import Protocols

@Suite("WebSocket client") struct WebSocketClientTests {
    private static func open(
        _ change: (inout WebSocketClient.Settings) -> Void = { _ in }
    ) throws -> WebSocketClient {
        var settings = WebSocketClient.Settings(host: "h", target: "/")
        change(&settings)
        var client = try WebSocketClient(settings, nonce: InlineArray(repeating: 0), at: .zero)
        _ = client.nextOutput(mask: 0)
        let accept = WebSocketKey(InlineArray(repeating: 0)).expectedAnswer
        let head = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        let answer = "\(head)Sec-WebSocket-Accept: \(accept)\r\n\r\n"
        #expect(client.hear(Array(answer.utf8)) == [.opened(subprotocol: nil)])
        return client
    }

    /// A frame as a server writes it, with the shortest length, unless another form is asked for.
    static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        var bytes: [UInt8] = [first, UInt8(min(count, 126))]
        if count > 0xFFFF {
            bytes[1] = 127
            bytes += [0, 0, 0, 0, UInt8(count >> 24), UInt8(count >> 16 & 0xFF)]
        }
        if count > 125 { bytes += [UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)] }
        return bytes + payload
    }

    private static func closeFrame(_ code: UInt16, _ reason: String = "") -> [UInt8] {
        frame(0x88, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason.utf8)
    }

    // RFC 6455, 5.7: the examples.
    @Test func theExamplesOfTheStandard() throws {
        var client = try Self.open()
        #expect(client.hear("81 05 48 65 6c 6c 6f") == [.text("Hello")])
        #expect(client.hear("01 03 48 65 6c 80 02 6c 6f") == [.text("Hello")])
        #expect(client.hear("89 05 48 65 6c 6c 6f") == [])
        #expect(client.nextOutput(mask: 0x37fa_213d) == hex("8a 85 37 fa 21 3d 7f 9f 4d 51 58"))
        let long: [(head: String, count: Int)] = [("82 7E 01 00", 256), ("82 7F 00 00 00 00 00 01 00 00", 65_536)]
        for (head, count) in long {
            let bytes = [UInt8](repeating: 7, count: count)
            #expect(client.hear(hex(head) + bytes) == [.binary(bytes)])
        }
        let sent = client.send(text: "Hello")
        #expect(sent && client.nextOutput(mask: 0x37fa_213d) == hex("81 85 37 fa 21 3d 7f 9f 4d 51 58"))
    }

    // 5.2 and 5.5: lengths of our frames.
    @Test func framesHaveTheShortestLength() throws {
        var client = try Self.open()
        let rows: [(count: Int, header: String)] = [
            (0, "82 80"), (125, "82 fd"), (126, "82 fe 00 7e"), (65_535, "82 fe ff ff"),
            (65_536, "82 ff 00 00 00 00 00 01 00 00"),
        ]
        for (count, header) in rows {
            var (payload, masked): ([UInt8], [UInt8]) = ([], [])
            for index in 0..<count {
                let byte = UInt8(index % 251)
                payload.append(byte)
                masked.append(byte ^ UInt8(index & 3 + 1))
            }
            let sent = client.send(binary: payload)
            #expect(sent && client.unsentBytes == count)
            #expect(client.nextOutput(mask: 0x0102_0304) == hex(header) + [1, 2, 3, 4] + masked, "\(count)")
            #expect(client.unsentBytes == 0)
        }
    }

    @Test func whatWaitsIsBounded() throws {
        var client = try Self.open { $0.unsentBytesMax = 10 }
        let sent = [client.send(text: "12345678"), client.send(text: "123"), client.send(text: "12")]
        #expect(sent == [true, false, true])
        _ = client.nextOutput(mask: 0)
        let after = client.send(text: "123")
        #expect(after)
    }

    // 5.4: control frames stand between the fragments of a message.
    @Test func controlFramesWithinAMessage() throws {
        var client = try Self.open()
        #expect(client.hear("01 02 c3 a4 89 01 70 00 00 8a 00 80 02 c3 b6") == [.text("äö")])
        #expect(client.write() == "8a810000000070")
    }

    // 5.5.3: the newest ping is answered, before what else waits.
    @Test func onlyTheNewestPingIsAnswered() throws {
        var client = try Self.open()
        _ = client.send(text: "a")
        for byte in UInt8(0)..<100 { _ = client.hear(Self.frame(0x89, [byte])) }
        let written = [client.write(), client.write(), client.write()]
        #expect(written == ["8a810000000063", "81810000000061", nil])
    }

    /// What the standard forbids, and the code that says so.
    static let violations: [(String, WebSocketCloseCode)] = [
        ("c1 01 61", .protocolError),  // 5.2: a reserved bit
        ("a1 01 61", .protocolError), ("91 01 61", .protocolError),
        ("83 01 61", .protocolError), ("87 00", .protocolError),  // 5.2: reserved opcodes
        ("8b 00", .protocolError), ("8f 00", .protocolError),
        ("81 81 00 00 00 00 61", .protocolError),  // 5.1: masked
        ("82 7e 00 7d", .protocolError),  // 5.2: not the shortest length
        ("82 7f 00 00 00 00 00 00 ff ff", .protocolError),
        ("82 7f 80 00 00 00 00 00 00 00", .protocolError),  // 5.2: the highest bit
        ("09 00", .protocolError), ("89 7e 00 7e", .protocolError),  // 5.5: control frames
        ("80 01 61", .protocolError), ("00 00", .protocolError),  // 5.4: fragments
        ("01 01 61 81 01 62", .protocolError), ("01 00 82 00", .protocolError),
        ("81 02 c3 28", .notText), ("01 01 c3 80 01 28", .notText), ("81 03 ed a0 80", .notText),  // 8.1
        ("88 01 03", .protocolError), ("88 02 03 ec", .protocolError), ("88 02 03 ed", .protocolError),  // 7.4
        ("88 02 03 f7", .protocolError), ("88 02 03 e7", .protocolError), ("88 02 0b b7", .protocolError),
        ("88 02 13 88", .protocolError), ("88 03 03 e8 ff", .notText),
        ("82 7e 03 e9", .tooBig), ("82 7f 00 00 00 01 00 00 00 00", .tooBig),
        ("82 7f 7f ff ff ff ff ff ff ff", .tooBig), ("01 02 61 61 80 7e 03 e7", .tooBig),
    ]

    @Test func whatTheStandardForbids() throws {
        for (bytes, code) in Self.violations {
            var client = try Self.open { $0.messageBytesMax = 1000 }
            _ = client.send(text: "never sent")
            let events = client.hear(bytes)
            guard case .ended(.violation(let violation)) = events.last else {
                Issue.record("\(bytes): \(events)")
                continue
            }
            let written = [client.write(), client.write()]
            let close = "888200000000" + hex([UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)])
            #expect(violation.code == code && written == [close, nil], "\(bytes)")
            #expect(client.nextDeadline == nil && client.hear("81 01 61") == [], "\(bytes)")
        }
    }

    @Test func theLongestMessageIsTaken() throws {
        var client = try Self.open { $0.messageBytesMax = 1000 }
        let whole = [UInt8](repeating: 1, count: 1000)
        #expect(client.hear(Self.frame(0x82, whole)) == [.binary(whole)])
        #expect(client.hear(Self.frame(0x02, Array(whole.dropLast())) + Self.frame(0x80, [1])) == [.binary(whole)])
    }

    /// Where that is wanted a longer one is passed over, in one frame or in several, in whatever pieces it comes.
    @Test func aLongerMessageIsSkippedWhereThatIsWanted() throws {
        let (long, half) = ([UInt8](repeating: 1, count: 1001), [UInt8](repeating: 2, count: 600))
        let fragments = Self.frame(0x02, half) + Self.frame(0x89, [7]) + Self.frame(0x00, half) + Self.frame(0x80, [])
        let bytes = Self.frame(0x82, long) + hex("81 01 61") + fragments + hex("81 01 62")
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<20 {
            var client = try Self.open {
                $0.messageBytesMax = 1000
                $0.skipsOversizedMessages = true
            }
            let events = pieces(bytes, using: &generator).flatMap { client.received($0, at: .zero) }
            #expect(events == [.oversized, .text("a"), .oversized, .text("b")])
            #expect(client.write() == "8a810000000007", "a ping within it is answered")
        }
    }

    // 7.1: the closing handshake, from each side.
    @Test func theServerCloses() throws {
        let rows: [(frame: [UInt8], code: WebSocketCloseCode?, reason: String, answer: String, isCrossing: Bool)] = [
            (Self.closeFrame(1001, "tschüs"), .goingAway, "tschüs", "88820000000003e9", false),
            (hex("88 00"), nil, "", "888000000000", false),
            (Self.closeFrame(1001), .goingAway, "", "88820000000003e9", true),
        ]
        for row in rows {
            var client = try Self.open()
            if row.isCrossing { _ = client.close(at: .zero) } else { _ = client.send(text: "never sent") }
            let end = WebSocketClient.Ending.closed(byServer: true, code: row.code, reason: row.reason)
            #expect(client.hear(row.frame) == [.ended(end)])
            let written = [client.write(), client.write()]
            #expect(written == [row.answer, nil])
            #expect(client.connectionLost(at: .zero) == [])
        }
    }

    @Test func weCloseAfterWhatWaits() throws {
        var client = try Self.open()
        _ = client.send(text: "a")
        #expect(client.close(.goingAway, reason: "bye", at: seconds(1)) == [])
        let late = client.send(text: "b")
        let written = [client.write(), client.write()]
        #expect(!late && written == ["81810000000061", "88850000000003e9627965"])
        #expect(client.hear("81 01 62", at: 2) == [.text("b")])
        let end = WebSocketClient.Ending.closed(byServer: false, code: .goingAway, reason: "")
        #expect(client.hear(Self.closeFrame(1001), at: 2) == [.ended(end)])
        #expect(client.write() == nil)
    }

    @Test func noPongFollowsTheCloseFrame() throws {
        var client = try Self.open()
        _ = client.hear("89 00")
        _ = client.close(at: .zero)
        let written = [client.write(), client.write()]
        #expect(written == ["8a8000000000", "88820000000003e8"])
        _ = client.hear("89 00")
        #expect(client.write() == nil)
    }

    @Test func aServerThatDoesNotCloseIsNotWaitedFor() throws {
        var client = try Self.open()
        _ = client.close(at: seconds(1))
        #expect(client.nextDeadline == seconds(6))
        #expect(client.deadlineReached(at: seconds(6)) == [.ended(.noAnswer(to: .close))])
    }

    @Test func closingBeforeOpeningEndsAtOnce() throws {
        var client = try WebSocketClient(
            WebSocketClient.Settings(host: "h", target: "/"), nonce: InlineArray(repeating: 0), at: .zero)
        #expect(client.close(at: .zero) == [.ended(.closed(byServer: false, code: nil, reason: ""))])
        #expect(client.nextOutput(mask: 0) == nil)
    }

    @Test func aLongReasonIsCutBetweenCharacters() throws {
        var client = try Self.open()
        _ = client.close(reason: String(repeating: "ä", count: 100), at: .zero)
        let output = client.nextOutput(mask: 0)
        let frame = try #require(output)
        #expect(frame.count <= 2 + 4 + 125 && String(validating: frame[8...], as: UTF8.self) != nil)
    }

    @Test func aLossIsReportedOnce() throws {
        var client = try Self.open()
        #expect(client.connectionLost(at: .zero) == [.ended(.lost)])
        #expect(client.connectionLost(at: .zero) == [])
        let sent = client.send(text: "a")
        #expect(!sent)
    }

    @Test func aSilentServerIsAskedAndGivenUp() throws {
        var client = try Self.open { $0.pingAfter = .seconds(60) }
        #expect(client.nextDeadline == seconds(60))
        _ = client.hear("81 01 61", at: 30)
        #expect(client.nextDeadline == seconds(90))
        #expect(client.deadlineReached(at: seconds(60)) == [] && client.write() == nil)
        #expect(client.deadlineReached(at: seconds(90)) == [] && client.write() == "898000000000")
        #expect(client.nextDeadline == seconds(120))
        #expect(client.hear("", at: 95) == [] && client.nextDeadline == seconds(120))
        _ = client.hear("8a 00", at: 100)
        #expect(client.nextDeadline == seconds(160))
        _ = client.deadlineReached(at: seconds(160))
        #expect(client.deadlineReached(at: seconds(190)) == [.ended(.noAnswer(to: .ping))])
    }

    @Test(arguments: testSeeds(1...16)) func anyPiecesGiveTheSame(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        for _ in 0..<60 { bytes += Self.randomFrames(using: &generator) }
        if seed % 4 == 0 { bytes += hex(Self.violations.randomElement(using: &generator)!.0) + [1, 2, 3] }
        var whole = try Self.open { $0.messageBytesMax = 1000 }
        let expected = whole.received(bytes[...], at: .zero)
        var cut = try Self.open { $0.messageBytesMax = 1000 }
        var events: [WebSocketClient.Event] = []
        for piece in pieces(bytes, using: &generator) { events += cut.received(piece, at: .zero) }
        #expect(events == expected, "seed \(seed)")
        #expect(cut.nextOutput(mask: 1) == whole.nextOutput(mask: 1), "seed \(seed)")
        #expect(expected.count >= 10)
    }

    private static func randomFrames(using generator: inout SeededGenerator) -> [UInt8] {
        let payload = (0..<Int.random(in: 0..<300, using: &generator)).map { _ in
            UInt8.random(in: 0x20...0x7E, using: &generator)
        }
        let cut = Int.random(in: 0...payload.count, using: &generator)
        switch Int.random(in: 0..<5, using: &generator) {
        case 0: return frame(0x89, Array(payload.prefix(125)))
        case 1: return frame(0x8A, Array(payload.prefix(125)))
        case 2: return frame(0x01, Array(payload[..<cut])) + frame(0x89, []) + frame(0x80, Array(payload[cut...]))
        case 3: return frame(0x81, payload)
        default: return frame(0x82, payload)
        }
    }

    @Test func smallPiecesOfALongMessageCostLinearTime() throws {
        var client = try Self.open { $0.messageBytesMax = 500_000 }
        let bytes = Self.frame(0x82, [UInt8](repeating: 3, count: 500_000))
        var events: [WebSocketClient.Event] = []
        // Quadratic work would be 10¹⁰ bytes moved, which nobody waits for.
        for start in stride(from: 0, to: bytes.count, by: 10) {
            events += client.received(bytes[start..<min(start + 10, bytes.count)], at: .zero)
        }
        #expect(events.count == 1)
    }
}
