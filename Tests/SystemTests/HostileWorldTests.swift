import Foundation
import TestSupport
import Testing

/// Receivers, collectors, disks and operators that do not behave, while the daemon runs.
@Suite(.waiting) struct HostileWorldTests {
    private let drive: [UInt8]
    private let drivePath = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path
    private let sentences: Int
    /// The drive lies before the day the daemon was built, which a live receiver is not believed.
    private let old = "rollover = \"off\""

    init() throws {
        drive = Array(try Data(contentsOf: URL(fileURLWithPath: drivePath)))
        sentences = drive.count { $0 == UInt8(ascii: "$") }
    }

    /// The part of the drive between two shares of it, in whole lines.
    private func part(_ from: Double, _ to: Double) -> [UInt8] {
        let lines = drive.split(separator: 0x0A, omittingEmptySubsequences: false)
        let range = Int(Double(lines.count) * from)..<Int(Double(lines.count) * to)
        return lines[range].flatMap { $0 + [0x0A] }
    }

    private func isAtLeast(_ count: Int) -> (Any?) -> Bool { { ($0 as? Int ?? 0) >= count } }

    private func sentencesSent(_ bytes: [UInt8]) -> Int { bytes.count { $0 == UInt8(ascii: "$") } }

    private func tcpSource(_ server: LocalServer) -> String {
        "kind = \"tcp\"\nhost = \"localhost\"\nport = \(server.port)\n" + old
    }

    /// Every location of the drive has arrived, once and in order.
    private func expectAllArrived(_ rig: Rig) throws {
        let (received, expected) = try (rig.received(), rig.replayed(drivePath))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.seq) == Array(1...max(1, expected.count)))
    }

    @Test func aReceiverThatIsMissingComesGoesAndComesBack() throws {
        let rig = try Rig()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try rig.configure(source: "kind = \"serial\"\npath = \"\(receiver.path)\"\nbaud = 9600\n" + old)
        let daemon = try rig.startDaemon()
        let missing = try rig.waitFor("source", "state") { $0 as? String == "lost" }
        #expect(missing.exit == 1)
        #expect("\(missing.report["problems"] ?? "")".contains("gps"))

        try receiver.plug()
        try rig.waitFor("source", "state") { $0 as? String == "silent" || $0 as? String == "opening" }
        receiver.send(part(0, 0.1))
        try rig.waitFor("source", "sentences", isAtLeast(sentencesSent(part(0, 0.1))))
        receiver.unplug()
        try rig.waitFor("source", "state") { $0 as? String == "lost" }
        try receiver.plug()
        let before = sentencesSent(part(0, 0.1))
        // The line is emptied when it is opened: send until something gets through.
        try rig.waitFor("source", "sentences") {
            receiver.send(part(0.1, 0.11))
            return ($0 as? Int ?? 0) > before
        }
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    @Test func aLineWithBytesThatAreNoSentences() throws {
        let rig = try Rig()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(source: "kind = \"serial\"\npath = \"\(receiver.path)\"\nbaud = 9600\nstale_after = \"1s\"")
        let daemon = try rig.startDaemon()
        var generator = SeededGenerator(seed: 3)
        try rig.waitFor("source", "state") {
            receiver.send((0..<500).map { _ in UInt8.random(in: 0x80...0xFF, using: &generator) })
            return $0 as? String == "unreadable"
        }
        #expect(daemon.text.contains("wrong baud rate or a binary protocol"))
        receiver.send(part(0, 0.05))
        try rig.waitFor("source", "state") { $0 as? String == "receiving" }
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    /// With 420 fixes without a date, none of them admitted, the health was ok once.
    @Test func aReceiverWhoseFixesHaveNoDateIsNotWell() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try rig.configure(source: tcpSource(server))
        let daemon = try rig.startDaemon()
        try server.accept()
        try rig.waitFor("source", "state") { $0 as? String == "silent" || $0 as? String == "receiving" }
        let places = drive.split(separator: 0x0A).filter { $0.starts(with: Array("$GNGGA".utf8)) }
        server.send(places.prefix(720).flatMap { $0 + [0x0A] })
        let dateless = try rig.waitFor("source", "dateless", isAtLeast(700)).report
        #expect(dateless["health"] as? String == "degraded")
        let motion = dateless["motion"] as? [String: Any]
        #expect((motion?["rejected"] as? [String: Int])?["dateless"] ?? 0 >= 700, "\(motion ?? [:])")
        let problems = "\(dateless["problems"] ?? "")"
        #expect(problems.contains("was believed: the receiver gives no date: let it send RMC or ZDA"), "\(problems)")
        server.send(part(0.6, 1))
        let dated = try rig.waitFor("motion", "admitted", isAtLeast(10)).report
        #expect(!"\(dated["problems"] ?? "")".contains("believed"))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    @Test func aFloodOnALineLosesNothing() throws {
        let rig = try Rig()
        try rig.startCollector()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(source: "kind = \"serial\"\npath = \"\(receiver.path)\"\nbaud = 115200\n" + old)
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state") { $0 as? String == "silent" || $0 as? String == "opening" }
        // The line is emptied when it is opened: what comes before that is no loss.
        try rig.waitFor("source", "sentences") {
            if $0 as? Int == 0 { receiver.send(part(0.01, 0.012)) }
            return ($0 as? Int ?? 0) > 0
        }
        let before = try #require((try rig.status().report["source"] as? [String: Any])?["sentences"] as? Int)
        let flood = part(0.02, 1)
        #expect(receiver.send(flood, timeout: 60) == flood.count)
        let report = try rig.waitFor("source", "sentences", isAtLeast(before + sentencesSent(part(0.02, 1)))).report
        #expect((report["source"] as? [String: Any])?["checksum_errors"] as? Int == 0)
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    @Test func aServerThatRestartsAndSpeaksJSONInBetween() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try rig.configure(source: tcpSource(server))
        let daemon = try rig.startDaemon()
        try server.accept()
        let (first, second) = (part(0, 0.5), part(0.5, 1))
        for line in first.split(separator: 0x0A) {
            server.send(Array(line) + [0x0A] + Array("{\"class\":\"SKY\",\"satellites\":[{\"PRN\":7}]}\r\n".utf8))
        }
        try rig.waitFor("source", "sentences", isAtLeast(sentencesSent(first)))
        server.stop()
        try rig.waitFor("source", "state") { $0 as? String == "lost" }
        let again = try LocalServer(port: server.port)
        try again.accept()
        again.send(second)
        let report = try rig.waitFor("source", "sentences", isAtLeast(sentences)).report
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        #expect((report["source"] as? [String: Any])?["checksum_errors"] as? Int == 0)
    }

    @Test func aPortThatIsTakenIsUsedOnceItIsFree() throws {
        let rig = try Rig()
        let taken = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(taken, $0, length) == 0)
                getsockname(taken, $0, &length)
            }
        }
        try rig.configure(source: "kind = \"udp\"\nport = \(UInt16(bigEndian: address.sin_port))\nstale_after = \"1s\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("another program listens there")
        close(taken)
        try rig.waitFor("source", "state") { $0 as? String == "silent" }
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }

    @Test func aDaemonThatWasStoppedForAWhileGoesOn() throws {
        let rig = try Rig()
        try rig.startCollector()
        let server = try LocalServer()
        try rig.configure(source: tcpSource(server))
        let daemon = try rig.startDaemon()
        try server.accept()
        server.send(part(0, 0.2))
        try rig.waitFor("source", "sentences", isAtLeast(sentencesSent(part(0, 0.2))))
        daemon.kill(SIGSTOP)
        try daemon.waitUntilStopped()
        server.send(part(0.2, 0.4))
        // A command that is asked meanwhile says so instead of waiting for ever.
        #expect(try rig.status().exit == 2)
        daemon.kill(SIGCONT)
        daemon.kill(SIGHUP)
        let report = try rig.waitFor("source", "sentences", isAtLeast(sentencesSent(part(0, 0.4)))).report
        #expect((report["source"] as? [String: Any])?["checksum_errors"] as? Int == 0)
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        #expect(daemon.text.contains("configuration reloaded"))
    }

    /// Writes beyond the limit fail, as on a full disk.
    @Test func aDiskThatRefusesForAWhileCostsNothing() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(source: paced(300), outbox: "commit_window = \"20ms\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "state") { $0 as? String == "moving" }
        try limitFiles(of: daemon, to: "100", rig)
        let refused = try rig.waitFor("queue", "commit_failed", isAtLeast(2))
        #expect(refused.exit == 1)
        #expect("\(refused.report["problems"] ?? "")".contains("outbox"))
        try limitFiles(of: daemon, to: "unlimited", rig)
        #expect(try daemon.exitStatus(within: 60) == 0)
        #expect(daemon.text.contains("written to disk again"))
        try expectAllArrived(rig)
    }

    /// Uploads go on from memory; nothing is lost, and nothing comes twice, over a restart too.
    @Test func uploadsGoOnWhileTheDiskFails() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: paced(45), endpoint: "batch_size = 10\nbatch_window = \"100ms\""
        )
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept", isAtLeast(20))
        try limitFiles(of: daemon, to: "100", rig)
        let failing = try rig.waitFor("queue", "sent_from_ram", within: 40, isAtLeast(30))
        #expect(failing.exit == 1 && "\(failing.report["problems"] ?? "")".contains("outbox"))
        try limitFiles(of: daemon, to: "unlimited", rig)
        try daemon.waitFor("written to disk again", within: 40)
        #expect(try daemon.exitStatus(within: 60) == 0)
        // Nothing is left for another start.
        #expect(try rig.startDaemon().exitStatus(within: 60) == 0)
        let (received, expected) = try (rig.received(), rig.replayed(drivePath))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
    }

    private func paced(_ factor: Int) -> String {
        "kind = \"file\"\npath = \"\(drivePath)\"\nplayback = \(factor).0"
    }

    private func limitFiles(of daemon: RunningProgram, to size: String, _ rig: Rig) throws {
        let shell = try RunningProgram(
            shell: "prlimit --pid \(daemon.processID) --fsize=\(size):unlimited", in: rig.directory)
        #expect(try shell.exitStatus(within: 10) == 0)
    }

    @Test func whatTheDiskDidNotTakeInTheEndIsLoggedAsLost() throws {
        let rig = try Rig()
        try rig.configure(source: paced(60))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        try limitFiles(of: daemon, to: "100", rig)
        try rig.waitFor("queue", "ram_ring_depth", isAtLeast(1))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 15) == 74)
    }

    @Test func endsInTimeWhileACollectorHangs() throws {
        let rig = try Rig()
        try rig.startCollector(["--hang"])
        try rig.configure(source: "kind = \"file\"\npath = \"\(drivePath)\"\nplayback = \"max\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("end of input")
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 8.5) == 0)
        #expect(try rig.received().isEmpty)
        try rig.stopCollector()
        try rig.startCollector()
        #expect(try rig.startDaemon().exitStatus(within: 30) == 0)
        try expectAllArrived(rig)
    }

    @Test(arguments: 0..<6)
    func maySIGTERMComeWhenItWill(_ turn: Int) throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drivePath)\"\nplayback = \"max\"", outbox: "commit_window = \"20ms\"")
        let daemon = try rig.startDaemon()
        _ = daemon.ended(within: Double(turn) * 0.03)
        daemon.kill(SIGTERM)
        // Before the signals are watched, at its very start, it simply ends.
        #expect([0, -SIGTERM].contains(try daemon.exitStatus(within: 8.5)))
        #expect(try rig.startDaemon().exitStatus(within: 60) == 0)
        let received = try rig.received()
        #expect(isRising(received.map(\.seq)))
        #expect(MainJob.firstHole(received, try rig.replayed(drivePath), milliseconds: 11_000) == nil)
    }

    @Test func aReplyWithoutEndTakesNoMemory() throws {
        let rig = try Rig()
        let server = try LocalServer()
        try rig.configure(source: "kind = \"file\"\npath = \"\(drivePath)\"\nplayback = \"max\"")
        try rig.reconfigure("http://127.0.0.1:9", to: "http://127.0.0.1:\(server.port)")
        let daemon = try rig.startDaemon()
        try server.accept()
        #expect(!server.receive().isEmpty)
        server.send(Array("HTTP/1.1 503 Busy\r\nContent-Length: 104857600\r\n\r\n".utf8))
        let block = [UInt8](repeating: 0x20, count: 1 << 20)
        var taken = 0
        for _ in 0..<100 {
            let count = server.send(block)
            taken += count
            if count < block.count { break }
        }
        #expect(taken < 50 << 20)
        #expect(try daemon.peakMemory < 100 << 20)
        #expect(try rig.status().exit == 1)
        server.stop()
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 8.5) == 0)
    }
}
