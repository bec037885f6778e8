import Foundation
import Protocols
import TestSupport
import Testing

@testable import Network

@Suite("A connection that stays open") struct LiveConnectionTests {
    private static func opened(_ server: LocalServer) throws -> ConnectionLoop {
        let loop = try ConnectionLoop("http://127.0.0.1:\(server.port)")
        loop.open()
        #expect(loop.events == [.opened(peerAddress: "127.0.0.1")])
        loop.events = []
        try server.accept()
        return loop
    }

    @Test func bytesGoBothWays() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        #expect(loop.connection.nextDeadline == nil, "nothing wakes an open connection that is quiet")
        loop.connection.send(Array("hello\r\n\r\n".utf8))
        #expect(loop.connection.unsentBytes == 0)
        #expect(server.receive() == Array("hello\r\n\r\n".utf8))
        server.send([1, 2, 3])
        loop.run { loop.received == [1, 2, 3] }
        #expect(loop.watched.values.map(\.writable) == [false])
    }

    @Test func theServerEndsIt() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        server.send([1])
        server.hangUp()
        loop.run { loop.failure != nil }
        #expect(loop.received == [1])
        #expect(loop.failure?.message == "127.0.0.1:\(server.port) closed the connection")
        #expect(loop.watched.isEmpty && loop.connection.nextDeadline == nil && !loop.connection.isOpen)
        loop.connection.send([1])
        #expect(loop.connection.unsentBytes == 0)
        // It opens again.
        loop.events = []
        loop.open()
        #expect(loop.events == [.opened(peerAddress: "127.0.0.1")])
    }

    @Test func weEndIt() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        loop.connection.send([5])
        loop.connection.close()
        #expect(loop.watched.isEmpty && loop.connection.nextDeadline == nil && loop.events.isEmpty)
        #expect(server.read(2) == [5], "what was written, then the end")
    }

    @Test func whatTheServerDoesNotReadWaits() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        let sent = [UInt8](repeating: 7, count: 8_000_000)
        loop.connection.send(sent)
        let waiting = loop.connection.unsentBytes
        #expect(waiting > 0 && loop.watched.values.map(\.writable) == [true])
        let before = loop.turns
        for _ in 0..<3 { loop.turn(atMost: .zero) }
        #expect(loop.connection.nextDeadline == nil && loop.turns == before + 3)
        let taken = Thread.inBackground(server) { $0.read(sent.count).count }
        loop.run { loop.events.contains(.written) }
        #expect(loop.connection.unsentBytes == 0)
        #expect(taken() == sent.count)
    }

    @Test func whatTheServerSaysLastIsReadAlthoughWritingFails() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        // Bytes that nobody has read turn the end of a connection into a reset.
        loop.connection.send([1, 2, 3])
        server.send([9])
        server.hangUp()
        loop.run { loop.failure != nil }
        #expect(loop.received == [9] || loop.received == [])
        #expect(loop.failure?.word == "reset")
    }

    @Test func aFloodLeavesTimeForOthers() throws {
        let server = try LocalServer()
        let loop = try Self.opened(server)
        let sent = Thread.inBackground(server) { $0.send([UInt8](repeating: 1, count: 1_000_000)) }
        var most = 0
        loop.run {
            let count = loop.received.count
            loop.turn(atMost: .milliseconds(10))
            most = max(most, loop.received.count - count)
            return loop.received.count == 1_000_000
        }
        #expect(sent() == 1_000_000)
        // A turn may end with a deadline at once, which is a second one.
        #expect(most <= 2 * 65_536)
    }

    @Test func whoDoesNotListenIsNamed() throws {
        let server = try LocalServer()
        server.stop()
        let loop = try ConnectionLoop("http://127.0.0.1:\(server.port)")
        loop.open()
        #expect(loop.failure == .connect("127.0.0.1:\(server.port): Connection refused"))
    }

    @Test func aServerWithoutTLSIsGivenUp() throws {
        let server = try LocalServer()
        let loop = try ConnectionLoop("https://127.0.0.1:\(server.port)")
        loop.connection.open()
        loop.turn()
        try server.accept()
        loop.run { !loop.watched.values.contains { $0.writable } }
        let hello = server.read(5)
        let rest = server.read(Int(hello[3]) << 8 | Int(hello[4]))
        #expect(rest.first == 1 && rest.firstRange(of: Array("http/1.1".utf8)) == nil, "no protocol is offered (ALPN)")
        loop.advance(by: .seconds(51))
        #expect(loop.failure == .unreachable("127.0.0.1:\(server.port): no TLS connection in time"))
        #expect(loop.watched.isEmpty)
        loop.events = []
        loop.connection.open()
        loop.turn()
        try server.accept()
        server.send(Array("220 mail.example ESMTP\r\n".utf8))
        loop.run { loop.failure != nil }
        #expect(loop.failure?.word == "tls")
    }

    @Test func closingWhileItConnectsForgetsAll() throws {
        let server = try LocalServer()
        let loop = try ConnectionLoop("https://127.0.0.1:\(server.port)")
        loop.connection.open()
        loop.turn()
        loop.connection.close()
        #expect(loop.watched.isEmpty && loop.connection.nextDeadline == nil && loop.events.isEmpty)
    }

    @Test func anotherURLIsRefused() {
        for url in ["mqtt://h:1", "", "ftp://h", "http://"] {
            #expect(throws: HTTPUplink.SetupError.self) { _ = try ConnectionLoop(url) }
        }
    }

    @Test func bytesGoThroughTLS() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let loop = try ConnectionLoop(server.request.url, tls: TLSSettings(authorities: server.certificate))
        loop.open()
        #expect(loop.events.first == .opened(peerAddress: "127.0.0.1"))
        loop.connection.send(Array("GET / HTTP/1.0\r\n\r\n".utf8))
        loop.run { loop.failure != nil }
        let page = String(decoding: loop.received, as: UTF8.self)
        #expect(page.hasPrefix("HTTP/1.0 200 ok") && page.contains("</pre>"))
    }

    @Test func aStrangerIsNotTrusted() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let other = try TLSServer(name: "IP:127.0.0.1")
        let loop = try ConnectionLoop(server.request.url, tls: TLSSettings(authorities: other.certificate))
        loop.open()
        #expect(loop.failure?.word == "tls")
        let pinned = try ConnectionLoop(
            server.request.url,
            tls: TLSSettings(authorities: server.certificate, pins: [try TLSServer.pin(other.certificate)]))
        pinned.open()
        #expect(pinned.failure?.message.hasSuffix("matches none of the pins") == true)
    }
}

extension Thread {
    /// Returns the call that waits for its end.
    fileprivate static func inBackground(
        _ server: LocalServer, _ work: @escaping @Sendable (LocalServer) -> Int
    ) -> () -> Int {
        nonisolated(unsafe) let server = server
        nonisolated(unsafe) var result = 0
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            result = work(server)
            done.signal()
        }
        return {
            done.wait()
            return result
        }
    }
}
