import CLinux
import Glibc
import Synchronization
import Testing
import WaypostCore
import WaypostNMEA

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

    @Test func aConnectionOverWhichNothingComesIsMadeAgain() throws {
        let (server, loop) = try connected()
        loop.pass(.seconds(5))
        #expect(loop.states == [.opening, .silent])
        loop.pass(.milliseconds(54_999))
        #expect(loop.source.descriptor != nil && loop.notices.isEmpty)
        for pause: Int64 in [1, 2] {
            loop.pass(.milliseconds(pause == 1 ? 1 : 60_000))
            #expect(loop.source.descriptor == nil)
            server.hangUp()
            loop.pass(.seconds(pause))
            loop.takeInput()
            try server.accept()
        }
        // It is said once, and is silent until something comes.
        #expect(loop.notices.count == 1 && loop.notices.first?.contains("nothing comes: connecting again") == true)
        #expect(loop.states == [.opening, .silent])
        try writeAll(Receiver.log(0..<3), to: server.client)
        loop.reach { loop.seconds.count == 2 }
        #expect(loop.states == [.opening, .silent, .receiving])
        server.hangUp()
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

    @Test func sentencesThatABridgeCutAreJoined() throws {
        let (source, loop, port) = try listening(UDPSettings(port: 0))
        let fd = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(fd) }
        let target = try #require(SocketAddress(numericHost: "127.0.0.1", port: port))
        var rest = Array(Receiver.log(0..<20).utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(100))
            rest = rest.dropFirst(100)
            try #require(target.withPointer { sendto(fd, piece, piece.count, 0, $0, $1) } == piece.count)
            if rest.isEmpty { try send(Receiver.rmc(19).replacing("A*", with: "B*"), to: port) }
        }
        loop.reach { source.counters.sentences == 40 && source.counters.checksumErrors == 1 }
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == Array(0..<20))
        #expect(loop.fixes.allSatisfy { $0.altitudeMSL != nil && $0.speed != nil })
        // One that nothing continues is counted.
        try send(String(Receiver.rmc(30).prefix(20)), to: port)
        loop.takeInput()
        #expect(source.counters.badBytes == 0)
        loop.pass(.seconds(1))
        #expect(source.counters.badBytes == 1)
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

@Suite struct DatagramJoinerTests {
    private struct Datagram {
        var text: String
        /// Milliseconds.
        var at = 0
        var port: UInt16 = 1
    }

    /// What is taken of datagrams, and what still waits at the end.
    private func taken(_ datagrams: [Datagram]) throws -> (texts: [String], waits: Bool) {
        var joiner = DatagramJoiner()
        var texts: [String] = []
        func take(_ bytes: Span<UInt8>) {
            texts.append(String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self))
        }
        for datagram in datagrams {
            let sender = try #require(SocketAddress(numericHost: "127.0.0.1", port: datagram.port))
            let at = EventTime(nanoseconds: Int64(datagram.at) * 1_000_000)
            joiner.received(Array(datagram.text.utf8).span, from: sender, at: at, take)
        }
        return (texts, joiner.nextDeadline != nil)
    }

    @Test func joinsTheRestsOfEachSender() throws {
        let a = Receiver.rmc(1)
        let b = Receiver.gga(2)
        // The line end is one character.
        let plain = String(a.dropLast())
        let cases: [([Datagram], [String], waits: Bool)] = [
            ([.init(text: a)], [a], false),
            // Without a line end, and as a C string with its end.
            ([.init(text: plain)], [plain], false), ([.init(text: plain + "\u{0}")], [plain + "\u{0}"], false),
            ([.init(text: plain + plain)], [plain + plain], false),
            ([.init(text: String(a.prefix(30))), .init(text: String(a.dropFirst(30)))], [a], false),
            ([.init(text: a + b.prefix(9)), .init(text: b.dropFirst(9) + "$G")], [a, b], true),
            // Within the checksum, and within the line end.
            ([.init(text: String(plain.dropLast())), .init(text: plain.suffix(1) + "\r\n")], [a], false),
            ([.init(text: plain + "\r"), .init(text: "\n")], [plain + "\r", "\n"], false),
            // What begins anew drops the rest.
            ([.init(text: String(a.prefix(30))), .init(text: b)], [String(a.prefix(30)), b], false),
            ([.init(text: String(a.prefix(30))), .init(text: "{}\n")], [String(a.prefix(30)), "{}\n"], false),
            // After a second nothing continues it.
            (
                [.init(text: String(a.prefix(30))), .init(text: String(a.dropFirst(30)), at: 1000)],
                [String(a.prefix(30)), String(a.dropFirst(30))], false
            ),
            ([.init(text: String(a.prefix(30))), .init(text: String(a.dropFirst(30)), at: 999)], [a], false),
            (
                [
                    .init(text: String(a.prefix(30))), .init(text: String(b.prefix(30)), port: 2),
                    .init(text: String(b.dropFirst(30)), port: 2), .init(text: String(a.dropFirst(30))),
                ], [b, a], false
            ),
            ([.init(text: "")], [], false), ([.init(text: "\u{0}")], ["\u{0}"], false),
        ]
        for (datagrams, texts, waits) in cases {
            let found = try taken(datagrams)
            #expect(found.texts == texts && found.waits == waits, "\(datagrams.map(\.text)): \(found)")
        }
    }

    @Test func whatWaitsIsBounded() throws {
        let long = String(repeating: "x", count: 4097)
        #expect(try taken([.init(text: "$" + long)]).texts == ["$" + long])
        let many = (1...9).map { Datagram(text: "$GP\($0)", port: $0) }
        #expect(try taken(many).texts == ["$GP1"])
    }
}

@Suite struct StrayBytesTests {
    @Test func aMinuteWithManyIsAProblemUntilOneWithFew() {
        var stray = StrayBytes()
        var counters = NMEACounters()
        var began: [Int] = []
        for second in 0..<200 {
            counters.bytes += 100
            if (70..<130).contains(second) { counters.strayBytes += 20 }
            if stray.received(counters, at: EventTime(nanoseconds: Int64(second) * 1_000_000_000)) {
                began.append(second)
            }
            if second == 125 {
                #expect(stray.words("why")?.hasSuffix(" % of the bytes belong to no sentence: why") == true)
            }
        }
        #expect(began == [120])
        #expect(stray.percent == nil)
    }
}
