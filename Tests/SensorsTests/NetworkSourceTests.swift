import CLinux
import Glibc
import Positioning
import Synchronization
import Testing

@testable import Sensors

@Suite struct TCPSourceTests {
    private func source(_ host: String, _ port: UInt16, resolver: @escaping HostLookup.Resolver) -> TestLoop {
        TestLoop(TCPSource(settings: TCPSettings(host: host, port: port), jitter: { 0 }, resolver: resolver))
    }

    private func loop(_ port: UInt16) -> TestLoop {
        TestLoop(TCPSource(settings: TCPSettings(host: "127.0.0.1", port: port), jitter: { 0 }))
    }

    private func connected() throws -> (server: Listener, loop: TestLoop) {
        let server = try Listener()
        let loop = loop(server.port)
        loop.start()
        loop.takeInput()
        try server.accept()
        return (server, loop)
    }

    @Test func readsAndConnectsAgainWhenTheServerHangsUp() throws {
        let (server, loop) = try connected()
        try writeAll(Receiver.log(0..<3) + "$GPRMC,00", to: server.client)
        loop.reach { loop.seconds.count == 2 }
        server.hangUp()
        loop.reach { loop.lossReason != nil }
        // What there is of the last epoch is handed over.
        #expect(loop.seconds == [0, 1, 2])
        #expect(loop.source.descriptor == nil)
        loop.pass(.milliseconds(999))
        #expect(loop.source.descriptor == nil)
        loop.pass(.milliseconds(1))
        loop.takeInput()
        try server.accept()
        try writeAll(Receiver.log(10..<12), to: server.client)
        loop.reach { loop.seconds.last == 11 }
        #expect(loop.seconds == [0, 1, 2, 10, 11])
        #expect(loop.states.map(\.word) == ["opening", "receiving", "lost", "opening", "receiving"])
        #expect(loop.source.counters.checksumErrors == 0)
    }

    @Test func asleepItHangsUpAndNothingIsDue() throws {
        let (server, loop) = try connected()
        try writeAll(Receiver.log(0..<3), to: server.client)
        loop.reach { loop.seconds.count == 2 }
        #expect(loop.setAsleep(true))
        #expect(loop.seconds == [0, 1, 2])
        #expect(loop.source.descriptor == nil && loop.source.nextDeadline == nil)
        var end = pollfd(fd: server.client, events: Int16(POLLIN), revents: 0)
        var byte: UInt8 = 0
        #expect(poll(&end, 1, 60_000) == 1 && recv(server.client, &byte, 1, 0) == 0)
        loop.pass(.seconds(3600))
        #expect(!server.isAskedFor)
        #expect(loop.setAsleep(false))
        loop.takeInput()
        try server.accept()
        try writeAll(Receiver.log(10..<12), to: server.client)
        loop.reach { loop.seconds.last == 11 }
        #expect(loop.states.map(\.word) == ["opening", "receiving", "opening", "receiving"])
    }

    @Test func refusedConnectionsBackOffToAMinute() throws {
        let server = try Listener(listens: false)
        let loop = loop(server.port)
        loop.start()
        var pauses: [Int64] = []
        for _ in 0..<8 {
            loop.reach { loop.source.descriptor == nil }
            let next = try #require(loop.source.nextDeadline)
            pauses.append(next.duration(since: loop.now).milliseconds / 1000)
            loop.pass(next.duration(since: loop.now))
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
        #expect(loop.states.map(\.word) == ["opening", "lost"])
        #expect(loop.lossReason?.contains("nothing listens") == true)
    }

    @Test func halfOpenConnectionIsReportedSilent() throws {
        let (server, loop) = try connected()
        defer { server.hangUp() }
        loop.pass(.seconds(5))
        #expect(loop.states == [.opening, .silent])
        #expect(loop.source.nextDeadline == nil)
        #expect(loop.source.descriptor != nil)
    }

    @Test func anUnansweredConnectIsGivenUpAfterTenSeconds() throws {
        // A full backlog leaves further connects without an answer.
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 0))
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(listener) }
        try #require(address.withPointer { bind(listener, $0, $1) } == 0 && listen(listener, 0) == 0)
        let port = try #require(localPort(listener))
        let target = try #require(SocketAddress(numericHost: "127.0.0.1", port: port))
        var fillers: [Int32] = []
        defer { fillers.forEach { close($0) } }
        for _ in 0..<4 {
            let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
            fillers.append(fd)
            _ = target.withPointer { connect(fd, $0, $1) }
        }
        let loop = loop(port)
        loop.start()
        #expect(loop.source.awaitsWritability)
        #expect(!loop.awaitInput(milliseconds: 20))
        loop.pass(.milliseconds(9999))
        #expect(loop.lossReason == nil)
        loop.pass(.milliseconds(1))
        #expect(loop.lossReason?.contains("no answer") == true)
        #expect(loop.source.descriptor == nil)
    }

    @Test func resolvesNamesBesideTheLoopAndTriesEachAddress() throws {
        let server = try Listener()
        let refusing = try Listener(listens: false)
        let (dead, live) = (refusing.port, server.port)
        let loop = source("receiver.test", live) { host, _ in
            #expect(host == "receiver.test")
            return .success([dead, live].compactMap { SocketAddress(numericHost: "127.0.0.1", port: $0) })
        }
        loop.start()
        #expect(!loop.source.awaitsWritability)
        loop.takeInput()
        while loop.source.awaitsWritability { loop.takeInput() }
        #expect(server.isAskedFor)
        try server.accept()
        try writeAll(Receiver.log(0..<2), to: server.client)
        loop.reach { !loop.seconds.isEmpty }
        #expect(loop.lossReason == nil)
    }

    @Test func aNameThatCannotBeResolvedIsTriedAgain() throws {
        let loop = source("receiver.test", 1) { _, _ in .failure(SourceProblem("cannot find receiver.test")) }
        loop.start()
        loop.takeInput()
        #expect(loop.lossReason == "cannot find receiver.test")
        #expect(loop.source.nextDeadline == loop.now + .seconds(1))
    }

    @Test func aHangingResolverHoldsNothingUpAndIsNotStartedTwice() throws {
        let gate = Gate()
        let counter = Counter()
        let loop = source("receiver.test", 9) { _, _ in
            counter.add()
            gate.wait()
            return .failure(SourceProblem("late answer"))
        }
        loop.start()
        loop.pass(.seconds(10))
        #expect(loop.lossReason?.contains("no answer about the address") == true)
        loop.pass(.seconds(11))
        loop.pass(.seconds(12))
        gate.open()
        loop.reach { loop.lossReason == "late answer" }
        #expect(counter.value == 1)
    }
}

private final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    func add() { count.add(1, ordering: .sequentiallyConsistent) }
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
}

/// Holds a thread until it is opened.
private final class Gate: Sendable {
    private let fd = waypost_eventfd()

    deinit { close(fd) }

    func wait() {
        var ready = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        _ = poll(&ready, 1, 60_000)
    }

    func open() {
        var one: UInt64 = 1
        _ = write(fd, &one, 8)
    }
}

@Suite struct UDPSourceTests {
    private func send(_ text: String, to port: UInt16, from host: String = "127.0.0.1") throws {
        let fd = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(fd) }
        let local = try #require(SocketAddress(numericHost: host, port: 0))
        try #require(local.withPointer { bind(fd, $0, $1) } == 0)
        let target = try #require(SocketAddress(numericHost: "127.0.0.1", port: port))
        let bytes = Array(text.utf8)
        try #require(target.withPointer { sendto(fd, bytes, bytes.count, 0, $0, $1) } == bytes.count)
    }

    private func listening(_ settings: UDPSettings) throws -> (source: UDPSource, loop: TestLoop, port: UInt16) {
        let source = UDPSource(settings: settings)
        let loop = TestLoop(source)
        loop.start()
        return (source, loop, try #require(source.boundPort))
    }

    @Test func readsSeveralSentencesOfADatagram() throws {
        let (source, loop, port) = try listening(UDPSettings(port: 0))
        try send(Receiver.log(0..<3), to: port)
        loop.takeInput()
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [0, 1, 2])
        #expect(loop.states == [.opening, .receiving])
        loop.pass(.seconds(5))
        #expect(loop.states.last == .silent)
        #expect(source.nextDeadline == nil)
    }

    @Test func asleepItListensToNobody() throws {
        let (source, loop, port) = try listening(UDPSettings(port: 0))
        try send(Receiver.log(0..<3), to: port)
        loop.takeInput()
        #expect(loop.setAsleep(true))
        #expect(loop.seconds == [0, 1, 2])
        #expect(source.descriptor == nil && source.nextDeadline == nil && source.boundPort == nil)
        loop.pass(.seconds(3600))
        #expect(loop.setAsleep(false))
        try send(Receiver.log(10..<12), to: try #require(source.boundPort))
        loop.takeInput()
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [0, 1, 2, 10, 11])
        #expect(loop.states == [.opening, .receiving, .opening, .receiving])
    }

    @Test func aSentenceDoesNotGoOnInTheNextDatagram() throws {
        let (source, loop, port) = try listening(UDPSettings(port: 0))
        let sentence = Receiver.rmc(0)
        try send(String(sentence.prefix(20)), to: port)
        try send(String(sentence.dropFirst(20)), to: port)
        try send(Receiver.rmc(1), to: port)
        loop.reach { source.counters.sentences == 1 }
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [1])
    }

    @Test func takesOneSenderOnlyWhereToldSo() throws {
        let (source, loop, port) = try listening(UDPSettings(port: 0, from: "127.0.0.2"))
        try send(Receiver.epoch(0), to: port)
        try send(Receiver.epoch(1), to: port, from: "127.0.0.2")
        loop.reach { source.counters.sentences == 2 }
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [1])
        #expect(source.refused == 1)
    }

    @Test func anOccupiedPortIsTriedAgain() throws {
        let first = UDPSource(settings: UDPSettings(port: 0))
        first.start(at: .zero) { _ in }
        let port = try #require(first.boundPort)
        let loop = TestLoop(UDPSource(settings: UDPSettings(port: port)))
        loop.start()
        #expect(loop.lossReason?.contains("Address already in use; another program listens there") == true)
        first.close()
        loop.pass(.seconds(1))
        #expect(loop.states.map(\.word) == ["opening", "lost", "opening"])
        try send(Receiver.epoch(0), to: port)
        loop.takeInput()
        #expect(loop.states.last == .receiving)
    }

    @Test func aNameIsNoAddressToBind() {
        let loop = TestLoop(UDPSource(settings: UDPSettings(host: "localhost", port: 0)))
        loop.start()
        #expect(loop.lossReason?.contains("in digits") == true)
    }
}
