import TestSupport
import Testing
import WaypostCore

@testable import Network
@testable import Protocols

@Suite struct WebSocketConnectionTests {
    /// One limit for all that is unsent, wherever it waits: what does not fit ends the connection, from the loop.
    @Test func aServerThatDoesNotReadEndsTheConnection() throws {
        let server = try LocalServer()
        let loop = try WebSocketLoop(server)
        loop.open()
        let text = String(repeating: "x", count: 10_000)
        var (most, sent) = (0, 0)
        while loop.events.count == 1, sent < 100_000_000 {
            loop.connection.send(text: text)
            sent += text.utf8.count
            most = max(most, loop.connection.unsentBytes)
            loop.turn(atMost: .zero)
        }
        #expect(most > 200_000 && most <= 262_144 + 14, "\(most)")
        let failure = TransportFailure.timeout("the server does not read what is sent over WebSocket")
        #expect(loop.events.last == .ended(failure, byServer: true))
        #expect(loop.connection.unsentBytes == 0 && loop.watched.isEmpty)
    }

    @Test func whatWaitsGoesOutInOrderOnceTheServerReads() throws {
        let server = try LocalServer()
        let loop = try WebSocketLoop(server)
        loop.open()
        var expected = 0
        while loop.connection.unsentBytes < 100_000 {
            loop.connection.send(text: String(repeating: "x", count: 9_999))
            // Four bytes of header, four of the mask.
            expected += 9_999 + 8
        }
        var received: [UInt8] = []
        while received.count < expected {
            let more = server.read(min(65_536, expected - received.count))
            guard !more.isEmpty else { break }
            received += more
            loop.turn(atMost: .zero)
        }
        let heads = stride(from: 0, to: received.count, by: 10_007).map { Array(received[$0..<($0 + 4)]) }
        #expect(received.count == expected && Set(heads) == [[0x81, 0xFE, 0x27, 0x0F]])
        #expect(loop.connection.unsentBytes == 0)
    }
}

private final class WebSocketLoop: TurningLoop {
    private(set) var connection: WebSocketConnection!
    private let server: LocalServer
    private(set) var events: [WebSocketConnection.Event] = []
    let interests = Interests()
    var turns = 0
    var now = EventTime(nanoseconds: 1_000_000_000_000)

    init(_ server: LocalServer) throws {
        self.server = server
        let interests = interests
        connection = try WebSocketConnection(
            "http://127.0.0.1:\(server.port)", WebSocketClient.Settings(host: "127.0.0.1", target: "/"), tls: nil,
            transport: .init(version: "1.2.3"), isClockTrusted: { true }, random: { 7 },
            watch: { interests.byDescriptor[$0] = $1 }, report: { [unowned self] event, _ in events.append(event) })
    }

    deinit { connection?.close() }

    var nextDeadline: EventTime? { connection.nextDeadline }

    func ready(_ descriptor: Int32, readable: Bool, writable: Bool) {
        connection.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
    }

    func deadlineReached() { connection.deadlineReached(at: now) }

    func open() {
        connection.open()
        turn()
        try? server.accept()
        run { !watched.isEmpty && connection.counters.bytesSent > 0 }
        _ = server.receive()
        let answer = WebSocketKey(InlineArray(repeating: 7)).expectedAnswer
        server.send(
            Array(
                "HTTP/1.1 101 s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: \(answer)\r\n\r\n"
                    .utf8))
        run { events == [.opened(subprotocol: nil)] }
    }
}
