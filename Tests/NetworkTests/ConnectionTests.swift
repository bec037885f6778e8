import Glibc
import Protocols
import Synchronization
import TestSupport
import Testing
import WaypostCore

@testable import Network

@Suite struct ConnectionTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test func opensAnotherConnectionWhenTheServerClosedTheKeptOne() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(Self.ok)
        }
        let loop = try PollLoop()
        for _ in 0..<3 {
            #expect(try loop.reply(UplinkRequest(url: server.url, body: [1])).status == 200)
        }
        #expect(server.connections == 3 && server.requests.count == 3)
    }

    /// Each of many endpoints keeps its own.
    @Test func keepsAsManyConnectionsAsThereAreServers() throws {
        let servers = try (0..<20).map { _ in
            try ScriptedServer { connection in
                while connection.request() != nil { connection.send(Self.ok) }
            }
        }
        let loop = try PollLoop()
        for _ in 0..<2 {
            for server in servers { _ = try loop.reply(UplinkRequest(url: server.url, body: [1])) }
        }
        #expect(loop.uplink.counters.connections == servers.count)
    }

    /// Before a byte of it, in the middle, and by a reset.
    @Test(arguments: [0, 3_000_000, 16 << 20]) func repeatsOnceWhenTheKeptConnectionDiesUnderTheRequest(_ size: Int)
        throws
    {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(Self.ok)
            if connection.number == 1 {
                if size == 0 { _ = connection.request() } else { connection.waitForBytes() }
                if size == 16 << 20 { connection.reset() }
            } else {
                while connection.request() != nil { connection.send(Self.ok) }
            }
        }
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        let body = [UInt8](repeating: 7, count: size)
        let outcome = try loop.outcome(UplinkRequest(url: server.url, body: body))
        #expect(outcome.reply?.status == 200 && outcome.newConnection, "\(outcome)")
        let counters = loop.uplink.counters
        #expect(counters.repeatedOnFreshConnection == 1 && counters.connections == 2 && server.connections == 2)
        let isSame = server.requests.last?.body == body
        #expect(isSame)
    }

    @Test func repeatsNoMoreThanOnce() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            if connection.number == 1 {
                connection.send(Self.ok)
                _ = connection.request()
            }
        }
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        let outcome = try loop.outcome(UplinkRequest(url: server.url, body: [2]))
        #expect(outcome.failure?.word == "closed", "\(outcome)")
        #expect(server.requests.map(\.body) == [[1], [2], [2]])
        #expect(loop.uplink.counters.repeatedOnFreshConnection == 1)
    }

    @Test func doesNotRepeatOnceALineOfTheAnswerHasCome() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(Self.ok)
            _ = connection.request()
            connection.send("HTTP/1.1 500 Oops\r\n")
        }
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        let outcome = try loop.outcome(UplinkRequest(url: server.url, body: [2]))
        #expect(outcome.reply?.status == 500, "\(outcome)")
        #expect(server.requests.map(\.body) == [[1], [2]])
    }

    /// An answer too many, half of one, and the end of the connection.
    @Test(arguments: ["HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 2", ""])
    func anAnswerThatNobodyAskedForIsNotThatToTheNextRequest(_ more: String) throws {
        let mayGoOn = Mutex(false)
        let hasGone = Mutex(0)
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(Self.ok)
            if connection.number > 2 { return connection.waitForEnd() }
            while !mayGoOn.withLock({ $0 }) { usleep(1000) }
            connection.send(more)
            if more.isEmpty { connection.close() }
            hasGone.withLock { $0 += 1 }
            connection.waitForEnd()
        }
        let loop = try PollLoop()
        // Two connections are kept.
        var replies: [Int?] = []
        for body in [1, 2] as [UInt8] {
            loop.uplink.send(UplinkRequest(url: server.url, body: [body])) { replies.append($0.reply?.status) }
        }
        loop.run { replies.count == 2 }
        mayGoOn.withLock { $0 = true }
        loop.run { hasGone.withLock { $0 } == 2 }
        let outcome = try loop.outcome(UplinkRequest(url: server.url, body: [3]))
        #expect(outcome.reply?.status == 200 && outcome.newConnection, "\(outcome)")
        #expect(outcome.followsUnasked == !more.isEmpty)
        let counters = loop.uplink.counters
        #expect(counters.unaskedAnswers == (more.isEmpty ? 0 : 2) && counters.repeatedOnFreshConnection == 0)
        #expect(server.requests.count == 3 && server.connections == 3)
    }

    /// A connection whose answer is just arriving is not idle.
    @Test func aRequestUnderWayIsLeftAlone() throws {
        let server = try ScriptedServer { connection in
            while let request = connection.request() {
                connection.send(request.body == [2] ? "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" : Self.ok)
                if request.body == [2] { connection.waitForBytes() }
            }
        }
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        var slow: UplinkOutcome?
        loop.uplink.send(UplinkRequest(url: server.url, body: [2], timeout: .seconds(5))) { slow = $0 }
        loop.run { server.requests.count == 2 }
        #expect(try loop.outcome(UplinkRequest(url: server.url, body: [1])).newConnection)
        #expect(slow == nil && loop.uplink.counters.unaskedAnswers == 0)
        loop.advance(by: .seconds(6))
        #expect(slow?.failure?.word == "timeout", "\(String(describing: slow))")
    }

    @Test func closesAConnectionThatIsIdleForLong() throws {
        let server = try ScriptedServer(answering: Self.ok)
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        #expect(descriptorsConnected(to: server.port) == 1)
        #expect(loop.uplink.nextDeadline != nil)
        loop.advance(by: .seconds(119))
        #expect(descriptorsConnected(to: server.port) == 1)
        loop.advance(by: .seconds(2))
        #expect(descriptorsConnected(to: server.port) == 0)
        #expect(loop.uplink.nextDeadline == nil)
        #expect(try loop.outcome(UplinkRequest(url: server.url, body: [1])).newConnection)
    }

    @Test func keepsNoConnectionOverASleep() throws {
        let ended = Mutex(0)
        let server = try ScriptedServer { connection in
            while connection.request() != nil { connection.send(Self.ok) }
            ended.withLock { $0 += 1 }
        }
        let loop = try PollLoop()
        let request = UplinkRequest(url: server.url, body: [1])
        _ = try loop.reply(request)
        loop.uplink.closeIdleConnections(at: loop.now)
        #expect(descriptorsConnected(to: server.port) == 0)
        // What is sent after that goes by a new connection, which is not kept either.
        #expect(try loop.outcome(request).newConnection)
        #expect(descriptorsConnected(to: server.port) == 0)
        loop.advance(by: .seconds(11))
        _ = try loop.reply(request)
        #expect(try !loop.outcome(request).newConnection)
        #expect(descriptorsConnected(to: server.port) == 1)
        loop.run { ended.withLock { $0 } == 2 }
    }

    @Test func usesNoConnectionFromBeforeASleepWhileARequestIsInFlight() throws {
        let server = try ScriptedServer { connection in
            while let request = connection.request() {
                if request.body == [2] { connection.waitForEnd() }
                connection.send(Self.ok)
            }
        }
        let loop = try PollLoop()
        var slow: UplinkOutcome?
        loop.uplink.send(UplinkRequest(url: server.url, body: [2], timeout: .seconds(5))) { slow = $0 }
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        loop.run { server.requests.count == 2 }
        loop.uplink.closeIdleConnections(at: loop.now)
        #expect(try loop.outcome(UplinkRequest(url: server.url, body: [1])).newConnection)
        loop.advance(by: .seconds(6))
        #expect(slow?.failure?.word == "timeout")
        #expect(descriptorsConnected(to: server.port) == 0)
    }

    @Test func cancelsWhatIsInFlightOnClose() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.waitForEnd()
        }
        let loop = try PollLoop()
        var called = false
        loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { _ in called = true }
        loop.run { server.requests.count == 1 }
        loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { _ in called = true }
        #expect(descriptorsConnected(to: server.port) == 1)
        loop.uplink.close()
        #expect(descriptorsConnected(to: server.port) == 0)
        #expect(loop.watched.isEmpty)
        #expect(loop.uplink.nextDeadline == nil)
        loop.advance(by: .seconds(100))
        loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { _ in called = true }
        loop.turn(atMost: .zero)
        loop.uplink.close()
        #expect(!called)
    }

    @Test func mayBeClosedFromACompletion() throws {
        let server = try ScriptedServer(answering: Self.ok)
        let loop = try PollLoop()
        var ended = 0
        for _ in 0..<3 {
            loop.uplink.send(UplinkRequest(url: "nonsense", body: [])) { [unowned loop] _ in
                ended += 1
                loop.uplink.close()
            }
        }
        loop.run { ended > 0 }
        #expect(ended == 1)
        #expect(server.connections == 0)
    }

    @Test func leaksNoDescriptor() throws {
        let server = try ScriptedServer { connection in
            while let request = connection.request() {
                switch request.body.first {
                case 0: connection.send(Self.ok)
                case 1: return
                case 2: connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
                default: return connection.reset()
                }
                if request.body.first != 0 { return }
            }
        }
        let loop = try PollLoop()
        for number in 0..<40 {
            _ = try loop.outcome(UplinkRequest(url: server.url, body: [UInt8(number % 4)]))
            #expect(descriptorsConnected(to: server.port) <= 1)
        }
        #expect(loop.watched.isEmpty)
        loop.uplink.closeIdleConnections(at: loop.now)
        #expect(descriptorsConnected(to: server.port) == 0)
    }

    @Test func saysWhatIsWrongWithTheAuthorities() {
        #expect(throws: HTTPUplink.SetupError.self) {
            try PollLoop(.init(version: "1", caFile: "/nonexistent/ca.pem"))
        }
    }
}
