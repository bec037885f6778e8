import CCurl
import Glibc
import Protocols
import Synchronization
import TestSupport
import Testing
import WaypostCore

@testable import Network

/// Progress, memory and links of one connection.
@Suite struct WayTests {
    private static let second: Int64 = 1_000_000_000
    private static func at(_ seconds: Int64) -> EventTime { EventTime(nanoseconds: seconds * second) }

    /// Written at second 0; the kernel's clock is 100 s ahead.
    private func written(isKept: Bool = false, _ body: Int = 1000) -> TransferProgress {
        var progress = TransferProgress(bodyCount: body, at: Self.at(0))
        if !isKept { progress.socketOpened(at: Self.at(0)) }
        progress.moved(CURLINFO_HEADER_OUT, 100, at: Self.at(0), clock: 100 * Self.second)
        progress.moved(CURLINFO_DATA_OUT, body, at: Self.at(0), clock: 100 * Self.second)
        return progress
    }

    @Test func whatThePeerAcknowledgesIsProgress() {
        var progress = written()
        guard case .awaitingReply(Self.at(0)) = progress.phase else { return _ = Issue.record("\(progress.phase)") }
        // After 30 s something is unacknowledged, and the last acknowledgement is 2 s old.
        progress.looked(unacknowledged: 500, silence: 2 * Self.second, clock: 130 * Self.second)
        guard case .sending(Self.at(28)) = progress.phase else { return _ = Issue.record("\(progress.phase)") }
        #expect(progress.written == .part)
        // Nothing since.
        progress.looked(unacknowledged: 500, silence: 32 * Self.second, clock: 160 * Self.second)
        guard case .sending(Self.at(28)) = progress.phase else { return _ = Issue.record("\(progress.phase)") }
        progress.looked(unacknowledged: 0, silence: Self.second, clock: 170 * Self.second)
        guard case .awaitingReply(Self.at(69)) = progress.phase else { return _ = Issue.record("\(progress.phase)") }
        #expect(progress.written == .whole)
        // The kernel acknowledges with each byte of an answer, too.
        progress.looked(unacknowledged: 0, silence: 0, clock: 200 * Self.second)
        guard case .awaitingReply(Self.at(69)) = progress.phase else { return _ = Issue.record("\(progress.phase)") }
    }

    /// A byte now and then is no progress, and neither is what came fast before.
    @Test func anAnswerIsGivenTimeForWhatItBrings() {
        var progress = written()
        func slowSince() -> EventTime? {
            if case .receiving(let since) = progress.phase { since } else { nil }
        }
        progress.moved(CURLINFO_HEADER_IN, 100, at: Self.at(10), clock: 0)
        #expect(slowSince() == Self.at(10))
        for second in 11...1000 as ClosedRange<Int64> {
            progress.moved(CURLINFO_DATA_IN, 4096, at: Self.at(second), clock: 0)
            #expect(slowSince() == Self.at(second))
        }
        for second in 1001...1060 as ClosedRange<Int64> {
            progress.moved(CURLINFO_DATA_IN, 1, at: Self.at(second), clock: 0)
            progress.looked(unacknowledged: 0, silence: 0, clock: (100 + second) * Self.second)
        }
        #expect(slowSince().map { $0 < Self.at(1001) } == true)
    }

    @Test func aKeptConnectionOfWhichNothingIsAcknowledgedMayBeForgotten() {
        var progress = written(isKept: true)
        progress.looked(unacknowledged: 1100, silence: 40 * Self.second, clock: 110 * Self.second)
        #expect(progress.mayBeForgotten)
        progress.looked(unacknowledged: 600, silence: Self.second, clock: 112 * Self.second)
        #expect(!progress.mayBeForgotten)
        #expect(!written().mayBeForgotten)
    }

    @Test func aConnectionAfterOneThatBroughtNothingUsesShortPackets() throws {
        var progress = written()
        progress.looked(unacknowledged: 1100, silence: 40 * Self.second, clock: 140 * Self.second)
        #expect(progress.isUntouched)
        progress.looked(unacknowledged: 1000, silence: Self.second, clock: 141 * Self.second)
        #expect(!progress.isUntouched)

        // No answer to the beginning of TLS.
        let begun = Mutex(0)
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            begun.withLock { $0 += 1 }
            connection.waitForEnd()
        }
        let loop = try PollLoop()
        func longest() throws -> Int32 {
            var outcome: UplinkOutcome?
            loop.uplink.send(UplinkRequest(url: "https://127.0.0.1:\(server.port)", body: [1])) { outcome = $0 }
            let before = begun.withLock { $0 }
            loop.run { begun.withLock { $0 } > before }
            var (bytes, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            getsockopt(try #require(connected(to: server.port)), Int32(IPPROTO_TCP), TCP_MAXSEG, &bytes, &length)
            for _ in 0..<4 where outcome == nil { loop.advance(by: .seconds(31)) }
            #expect(outcome?.failure?.word == "tls", "\(String(describing: outcome))")
            return bytes
        }
        #expect(try longest() > 536)
        #expect(try longest() <= 536)
        // It is not for their length.
        #expect(try longest() > 536)
    }

    private func connected(to port: Int) -> Int32? {
        (3..<256 as Range<Int32>).first { descriptor in
            var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            let isKnown = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
            }
            return isKnown && address.sin_family == sa_family_t(AF_INET)
                && Int(UInt16(bigEndian: address.sin_port)) == port
        }
    }

    @Test func onlyIPv4IsAskedForAfterASlowLookup() {
        var memory = ConnectMemory()
        memory.lookedUp(in: .seconds(1), hasIPv4: true)
        memory.lookedUp(in: .seconds(15), hasIPv4: false)
        #expect(!memory.isIPv4Alone)
        memory.lookedUp(in: .seconds(15), hasIPv4: true)
        #expect(memory.isIPv4Alone && memory.overAnotherLink(hasIPv4: true).isIPv4Alone)
        #expect(memory.overAnotherLink(hasIPv4: false) == ConnectMemory())
        memory.failedToLookUp(in: .seconds(20))
        #expect(memory.isIPv4Alone, "silence is no answer")
        memory.failedToLookUp(in: .milliseconds(100))
        memory.lookedUp(in: .seconds(15), hasIPv4: true)
        #expect(!memory.isIPv4Alone, "a name without such an address")
        #expect(memory.limit(.seconds(10)) == .seconds(10))
        memory.missed()
        #expect(memory.limit(.seconds(10)) == .seconds(30))
    }

    @Test func aServerThatTakesNothingMoreOfARequestIsGivenUp() throws {
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            while usleep(10_000) == 0, !connection.hasGone {}
        }
        let loop = try PollLoop()
        var outcome: UplinkOutcome?
        loop.uplink.send(UplinkRequest(url: server.url, body: [UInt8](repeating: 1, count: 32 << 20))) { outcome = $0 }
        loop.run { loop.uplink.requestsInFlight == 1 && loop.watched.values.contains { $0.writable } }
        for _ in 0..<20 { loop.turn(atMost: .milliseconds(20)) }
        #expect(outcome == nil)
        loop.advance(by: .seconds(31))
        #expect(outcome?.failure?.word == "timeout" && outcome?.written == .part, "\(String(describing: outcome))")
    }

    /// What is bound to addresses that are there is left alone.
    @Test func anEventOfAnotherLinkChangesNothing() throws {
        let server = try ScriptedServer(answering: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let loop = try PollLoop()
        let request = UplinkRequest(url: server.url, body: [1])
        _ = try loop.reply(request)
        loop.uplink.linksChanged(at: loop.now)
        #expect(try !loop.outcome(request).newConnection)
        var outcome: UplinkOutcome?
        loop.uplink.send(request) { outcome = $0 }
        loop.turn(atMost: .zero)
        loop.uplink.linksChanged(at: loop.now)
        loop.run { outcome != nil }
        #expect(outcome?.reply?.status == 200)
    }

    @Test func knowsByWhichAddressAConnectionLeaves() throws {
        let (listener, port) = try listenOnLoopback(backlog: 1)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        // From another address than the one that would be chosen now.
        var other = address
        other.sin_port = 0
        other.sin_addr.s_addr = inet_addr("127.0.0.2")
        for (isBound, isGone) in [(false, false), (true, true)] {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(client) }
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafePointer(to: &address) { address in
                withUnsafePointer(to: &other) { other in
                    func general(_ address: UnsafePointer<sockaddr_in>) -> UnsafePointer<sockaddr> {
                        UnsafeRawPointer(address).assumingMemoryBound(to: sockaddr.self)
                    }
                    return (!isBound || bind(client, general(other), size) == 0)
                        && connect(client, general(address), size) == 0
                }
            }
            #expect(isConnected && HostRoute.isGone(client) == isGone)
        }
    }
}
