import Testing
import WaypostCore

@testable import Protocols

@Suite("Opening handshake of a WebSocket") struct WebSocketHandshakeTests {
    /// The nonce of the example in RFC 6455, 1.3.
    private static let sample: InlineArray<16, UInt8> = [
        0x74, 0x68, 0x65, 0x20, 0x73, 0x61, 0x6D, 0x70, 0x6C, 0x65, 0x20, 0x6E, 0x6F, 0x6E, 0x63, 0x65,
    ]

    private static let agreement =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

    private static func client(_ subprotocols: [String] = []) throws -> WebSocketClient {
        var settings = WebSocketClient.Settings(host: "server.example.com", target: "/chat?v=5")
        settings.subprotocols = subprotocols
        settings.headers = [.init("Authorization", "Bearer abc")]
        return try WebSocketClient(settings, nonce: sample, at: .zero)
    }

    private static func answer(_ text: String, to subprotocols: [String] = []) throws -> [WebSocketClient.Event] {
        var client = try client(subprotocols)
        _ = client.nextOutput(mask: 0)
        return client.received(Array(text.utf8)[...], at: seconds(1))
    }

    @Test func sha1OfKnownTexts() {
        let rows: [(text: String, hash: String)] = [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (String(repeating: "a", count: 1000), "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
            (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (String(repeating: "a", count: 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
        ]
        for (text, hash) in rows { #expect(hex(WebSocketKey.sha1(Array(text.utf8))) == hash) }
    }

    @Test func theRequestIsOneOfHTTP() throws {
        var client = try Self.client(["one", "two"])
        let output = client.nextOutput(mask: 0)
        let request = try #require(output)
        #expect(
            String(decoding: request, as: UTF8.self)
                == "GET /chat?v=5 HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Protocol: one, two\r\nAuthorization: Bearer abc\r\n\r\n")
        #expect(client.nextOutput(mask: 0) == nil)
    }

    @Test func settingsCannotAddLines() {
        let rows: [(target: String, host: String, name: String, value: String)] = [
            ("/a b", "x", "name", "v"), ("/a\r\nb: c", "x", "name", "v"), ("a", "x", "name", "v"),
            ("/", "x\r\ny: z", "name", "v"), ("/", "x", "na me", "v"), ("/", "x", "", "v"),
            ("/", "x", "name", "v\r\nother: w"), ("/", "x", "name", "v\u{0}"),
        ]
        for row in rows {
            var settings = WebSocketClient.Settings(host: row.host, target: row.target)
            settings.headers = [.init(row.name, row.value)]
            #expect(throws: WebSocketSetupError.self, "\(row)") {
                _ = try WebSocketClient(settings, nonce: Self.sample, at: .zero)
            }
        }
    }

    @Test func anAgreementOpens() throws {
        #expect(try Self.answer(Self.agreement + "\r\n") == [.opened(subprotocol: nil)])
        let other = Self.agreement.replacing("Upgrade: websocket", with: "upgrade:WebSocket ")
            .replacing("Connection: Upgrade", with: "CONNECTION: keep-alive, Upgrade")
        #expect(try Self.answer(other + "\r\n") == [.opened(subprotocol: nil)])
        let chosen = Self.agreement + "Sec-WebSocket-Protocol: two\r\n\r\n"
        #expect(try Self.answer(chosen, to: ["one", "two"]) == [.opened(subprotocol: "two")])
    }

    @Test func whatFollowsTheHeadAreFrames() throws {
        #expect(
            try Self.answer(Self.agreement + "\r\n\u{1}\u{1}a\u{0}\u{1}b") == [.opened(subprotocol: nil)])
        var client = try Self.client()
        _ = client.nextOutput(mask: 0)
        let bytes = Array((Self.agreement + "\r\n").utf8) + hex("81 02 68 69")
        var events: [WebSocketClient.Event] = []
        for byte in bytes { events += client.received([byte], at: .zero) }
        #expect(events == [.opened(subprotocol: nil), .text("hi")])
    }

    static let disagreements: [(part: String, instead: String)] = [
        ("Upgrade: websocket", "Upgrade: h2c"), ("Upgrade: websocket\r\n", ""),
        ("Connection: Upgrade", "Connection: close"),
        ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), ("Sec-WebSocket-Accept", "X"),
        ("Connection: ", "Sec-WebSocket-Extensions: permessage-deflate\r\nConnection: "),
        ("Connection: ", "Sec-WebSocket-Protocol: three\r\nConnection: "),
        ("Connection: ", "Sec-WebSocket-Protocol: one\r\nSec-WebSocket-Protocol: two\r\nConnection: "),
        ("Connection: ", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nConnection: "),
        ("HTTP/1.1 101", "HTTP/1.0 101"), ("HTTP/1.1 101", "HTTP/1.1 x01"), ("HTTP/1.1 101", "RFB 003.008"),
        ("Connection: ", "Connection : "), ("Connection: ", " folded\r\nConnection: "),
        ("Connection: ", ": \r\nConnection: "),
        ("websocket\r\n", "websocket\n"), ("websocket\r\n", "websocket\r\r\n"),
    ]

    @Test func anotherAnswerDoesNot() throws {
        for (part, instead) in Self.disagreements {
            let answer = Self.agreement.replacing(part, with: instead, maxReplacements: 1) + "\r\n"
            let events = try Self.answer(answer, to: ["one", "two"])
            guard case .ended(.violation(let violation))? = events.first, events.count == 1 else {
                Issue.record("\(instead): \(events)")
                continue
            }
            #expect(violation.code == .protocolError, "\(instead)")
        }
    }

    @Test func aRefusalNamesStatusAndWait() throws {
        let rows: [(answer: String, refusal: WebSocketRefusal)] = [
            (
                "HTTP/1.1 503 Later\r\nRetry-After: 120\r\nContent-Length: 4\r\n\r\nbusy",
                .init(status: 503, retryAfter: "120", body: Array("busy".utf8))
            ), ("HTTP/1.1 401\r\n\r\n", .init(status: 401, retryAfter: nil)),
        ]
        for (answer, refusal) in rows { #expect(try Self.answer(answer) == [.ended(.refused(refusal))]) }
    }

    @Test func anAnswerWithoutEndIsGivenUp() throws {
        var client = try Self.client()
        let piece = Array("X-Filler: 0123456789012345678901234567890123456789\r\n".utf8)
        var events = client.received(Array("HTTP/1.1 101 x\r\n".utf8)[...], at: .zero)
        var count = 0
        while events.isEmpty, count < 1000 {
            events = client.received(piece[...], at: .zero)
            count += 1
        }
        #expect(count < 330)
        let violation = WebSocketViolation(.protocolError, "the answer to the handshake has no end")
        #expect(events == [.ended(.violation(violation))])
        #expect(client.nextOutput(mask: 0) == nil, "no close frame where no WebSocket is open")
    }

    @Test func anAnswerHasToComeInTime() throws {
        var client = try Self.client()
        #expect(client.nextDeadline == seconds(10))
        #expect(client.deadlineReached(at: seconds(9.9)) == [])
        #expect(client.deadlineReached(at: seconds(10)) == [.ended(.noAnswer(to: .handshake))])
        #expect(client.nextDeadline == nil)
        #expect(client.received(Array("HTTP/1.1 101 x\r\n\r\n".utf8)[...], at: seconds(11)) == [])
    }
}
