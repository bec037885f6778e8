import Foundation
import Sensors
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon
@testable import WaypostControl

/// The port for Prometheus.
@Suite struct MetricsServerTests {
    private func answer(_ head: String) -> MetricsRequest { MetricsRequest(head: Array(head.utf8), hostName: "Van-17") }

    private func status(_ head: String) -> String {
        switch answer(head) {
        case .metrics(let exposition): exposition == .prometheus ? "0.0.4" : "OpenMetrics"
        case .refused(let status, _): String(status.prefix(3))
        }
    }

    static let questions: [(head: String, expected: String)] = [
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9477\r\n", "0.0.4"),
        ("GET /metrics?x=1 HTTP/1.1\r\nhost: localhost\r\n", "0.0.4"),
        ("GET /metrics HTTP/1.1\nHost: [::1]:9477\n", "0.0.4"),
        ("GET /metrics HTTP/1.0\r\nHost: van-17:9477\r\n", "0.0.4"),
        ("GET /metrics HTTP/1.1\r\nHost: 10.0.0.7\r\nAccept: text/plain;version=0.0.4, */*;q=0.1\r\n", "0.0.4"),
        (
            "GET /metrics HTTP/1.1\r\nHost: 10.0.0.7\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3\r\n",
            "OpenMetrics"
        ),
        ("GET /metrics HTTP/1.1\r\nHost: 10.0.0.7\r\nAccept: application/openmetrics-text; q=0\r\n", "0.0.4"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n", "421"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n", "421"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:x\r\n", "421"), ("GET /metrics HTTP/1.1\r\nHost: \r\n", "421"),
        ("GET /metrics HTTP/1.1\r\n", "421"), ("POST /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", "405"),
        ("HEAD /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", "405"), ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", "404"),
        ("GET /metricsx HTTP/1.1\r\nHost: 127.0.0.1\r\n", "404"), ("GET /metrics\r\n", "400"), ("", "400"),
        ("\u{0}\u{1}\u{2}", "400"), ("GET  /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n", "400"),
    ]

    @Test func answersOneQuestionUnderItsOwnName() {
        for (head, expected) in Self.questions { #expect(status(head) == expected, "\(head)") }
    }

    /// A client of the port; it reads to the end of the answer.
    private final class Client {
        let descriptor: Int32
        private(set) var text = ""
        private(set) var isClosed = false

        init(port: UInt16) throws {
            let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: port))
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            #expect(address.withPointer { connect(descriptor, $0, $1) } == 0)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        }

        func send(_ text: String) { _ = Glibc.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

        func receive() {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count > 0 { text += String(decoding: chunk[..<count], as: UTF8.self) }
            if count == 0 || (count < 0 && errno != EAGAIN) { isClosed = true }
        }

        /// Reads to the end.
        func finish(on loop: EventLoop) throws {
            try loop.run { [self] in
                receive()
                return isClosed
            }
        }

        deinit { close(descriptor) }
    }

    private func serve(
        on loop: EventLoop? = nil, _ body: (EventLoop, MetricsServer) throws -> Void
    ) throws {
        let loop = try loop ?? EventLoop()
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 0))
        let server = try MetricsServer(address, hostName: nil, loop: loop) {
            var status = Status()
            status.health = "ok"
            return status
        }
        defer { server.close() }
        try body(loop, server)
    }

    private static let question = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    @Test func restsWhereThereAreNoResourcesForAClient() {
        #expect([EMFILE, ENFILE, ENOMEM, ENOBUFS].allSatisfy(Listener.isShortage))
        #expect(![EAGAIN, EINTR, ECONNABORTED, EPROTO].contains(where: Listener.isShortage))
    }

    @Test func servesWhatComesInPiecesAndCloses() throws {
        try serve { loop, server in
            let client = try Client(port: server.port)
            for byte in Self.question { client.send(String(byte)) }
            try client.finish(on: loop)
            #expect(client.text.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"))
            #expect(client.text.contains("\nwaypost_healthy 1\n"))
            let body = client.text.split(separator: "\r\n\r\n", maxSplits: 1).last ?? ""
            #expect(client.text.contains("Content-Length: \(body.utf8.count)\r\n"))
        }
    }

    @Test func aHeadWithoutEndIsRefused() throws {
        try serve { loop, server in
            let client = try Client(port: server.port)
            client.send("GET /metrics HTTP/1.1\r\nX: " + String(repeating: "x", count: 5000))
            try client.finish(on: loop)
            #expect(client.text.hasPrefix("HTTP/1.1 431 "))
        }
    }

    @Test func whoHangsKeepsNoOneOut() throws {
        try serve { loop, server in
            let idle = try (0..<6).map { _ in try Client(port: server.port) }
            let client = try Client(port: server.port)
            client.send(Self.question)
            try client.finish(on: loop)
            #expect(client.text.hasPrefix("HTTP/1.1 200 OK"))
            for client in idle { client.receive() }
            #expect(idle.count { $0.isClosed } >= 3)
        }
    }

    @Test(arguments: ["", "GET /metrics HT"])
    func whoNeverAsksIsClosed(sent: String) throws {
        try serve(on: EventLoop(on: LeapingHost())) { loop, server in
            let client = try Client(port: server.port)
            if !sent.isEmpty { client.send(sent) }
            let start = loop.now
            try client.finish(on: loop)
            #expect(client.isClosed && client.text.isEmpty)
            #expect((5.0...5.01).contains(loop.now.seconds(since: start)))
        }
    }

    @Test func whoDoesNotTakeItsAnswerIsClosed() throws {
        try serve(on: EventLoop(on: LeapingHost())) { loop, server in
            let client = try Client(port: server.port)
            client.send(Self.question)
            let start = loop.now
            try loop.run { loop.now.seconds(since: start) > 5 }
            client.receive()
            client.receive()
            #expect(client.text.hasPrefix("HTTP/1.1 200 OK") && client.isClosed)
        }
    }
}
