import Foundation
import TestSupport
import Testing

/// Receivers, collectors, disks and operators that do not behave, while the daemon runs.
@Suite(.waiting) struct HostileWorldTests {
    private let count = DemoDrive.sentences.count

    private func isAtLeast(_ count: Int) -> (Any?) -> Bool { { ($0 as? Int ?? 0) >= count } }

    private func source(_ report: [String: Any], _ member: String) -> Int? {
        (report["source"] as? [String: Any])?[member] as? Int
    }

    /// Every location of the log has arrived, once and in order.
    private func expectAllArrived(_ rig: Rig, of log: String) throws {
        let (received, expected) = try (rig.received(), rig.replayed(log))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.seq) == Array(1...max(1, expected.count)))
    }

    @Test func aReceiverThatIsMissingComesGoesAndComesBack() throws {
        let rig = try Rig()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try rig.configure(source: Rig.serial(receiver.path))
        let daemon = try rig.startDaemon()
        let missing = try rig.waitFor("source", "state") { $0 as? String == "lost" }
        #expect(missing["health"] as? String == "degraded")
        #expect("\(missing["problems"] ?? "")".contains("gps"))

        try receiver.plug()
        try rig.waitFor("source", "state") { $0 as? String == "silent" || $0 as? String == "opening" }
        receiver.send(DemoDrive.bytes(0..<400))
        try rig.waitFor("source", "sentences", isAtLeast(400))
        receiver.unplug()
        try rig.waitFor("source", "state") { $0 as? String == "lost" }
        try receiver.plug()
        // The line is emptied when it is opened: send until something gets through.
        try rig.waitFor("source", "sentences") {
            receiver.send(DemoDrive.bytes(400..<440))
            return ($0 as? Int ?? 0) > 400
        }
        try daemon.stop()
    }

    /// libcurl would write the keys of each connection there, by which whoever reads along reads what was sent.
    @Test func theKeysOfConnectionsAreWrittenToNoFile() throws {
        let rig = try Rig()
        let keys = rig.path("keys")
        let certificate = "-keyout \(rig.path("key.pem")) -out \(rig.path("cert.pem"))"
        let server = try RunningProgram(
            shell: """
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x \(certificate) &&
                exec openssl s_server -accept 127.0.0.1:0 -cert \(rig.path("cert.pem")) -key \(rig.path("key.pem")) -www
                """, in: rig.directory)
        try server.waitFor("ACCEPT 127.0.0.1:")
        let said = server.text.components(separatedBy: "ACCEPT 127.0.0.1:").last ?? ""
        let port = try #require(Int(said.prefix { $0.isNumber }))
        try rig.configure(source: Rig.log(DemoDrive.path, follow: true), server: port)
        try rig.reconfigure("http://", to: "https://")
        let daemon = try rig.startDaemon(environment: ["SSLKEYLOGFILE": keys])
        try rig.waitForEndpoint { ($0["failed"] as? [String: Int])?["tls"] ?? 0 > 0 }
        #expect(!FileManager.default.fileExists(atPath: keys))
        try daemon.stop()
    }

    @Test func aLineWithBytesThatAreNoSentences() throws {
        let rig = try Rig()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(source: Rig.serial(receiver.path) + "\nstale_after = \"1s\"")
        let daemon = try rig.startDaemon()
        var generator = SeededGenerator(seed: 3)
        try rig.waitFor("source", "state") {
            receiver.send((0..<500).map { _ in UInt8.random(in: 0x80...0xFF, using: &generator) })
            return $0 as? String == "unreadable"
        }
        #expect(daemon.text.contains("unreadable: the receiver sends data, but no NMEA"))
        receiver.send(DemoDrive.bytes(0..<180))
        try rig.waitFor("source", "state") { $0 as? String == "receiving" }
        try daemon.stop()
    }

    /// With 420 fixes without a date, none of them admitted, the health was ok once.
    @Test func aReceiverWhoseFixesHaveNoDateIsNotWell() throws {
        let (rig, server, daemon) = try Rig.withReceiver()
        // Each second has its RMC before its GGA.
        server.send(Array((0..<720).map { DemoDrive.sentences[$0 * 2 + 1] }.joined()))
        let dateless = try rig.waitFor("source", "dateless", isAtLeast(700))
        #expect(dateless["health"] as? String == "degraded")
        let motion = dateless["motion"] as? [String: Any]
        #expect((motion?["rejected"] as? [String: Int])?["dateless"] ?? 0 >= 700, "\(motion ?? [:])")
        let problems = "\(dateless["problems"] ?? "")"
        #expect(problems.contains("was believed: the receiver gives no date: let it send RMC or ZDA"), "\(problems)")
        server.send(DemoDrive.bytes(2250..<count))
        let dated = try rig.waitFor("motion", "admitted", isAtLeast(10))
        #expect(!"\(dated["problems"] ?? "")".contains("believed"))
        try daemon.stop()
    }

    @Test func aFloodOnALineLosesNothing() throws {
        let rig = try Rig()
        try rig.startCollector()
        let receiver = SerialReceiver(path: rig.path("gps"))
        try receiver.plug()
        try rig.configure(source: Rig.serial(receiver.path, baud: 115200))
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state") { $0 as? String == "silent" || $0 as? String == "opening" }
        // The line is emptied when it is opened: what comes before that is no loss.
        try rig.waitFor("source", "sentences") {
            if $0 as? Int == 0 { receiver.send(DemoDrive.bytes(38..<46)) }
            return ($0 as? Int ?? 0) > 0
        }
        let before = try #require(source(rig.status(), "sentences"))
        let flood = DemoDrive.bytes(76..<count)
        #expect(receiver.send(flood, timeout: 60) == flood.count)
        let report = try rig.waitFor("source", "sentences", isAtLeast(before + count - 76))
        #expect(source(report, "checksum_errors") == 0)
        try daemon.stop()
    }

    @Test func aServerThatRestartsAndSpeaksJSONInBetween() throws {
        let (rig, server, daemon) = try Rig.withReceiver()
        for line in DemoDrive.sentences[..<800] {
            server.send(line + Array("{\"class\":\"SKY\",\"satellites\":[{\"PRN\":7}]}\r\n".utf8))
        }
        try rig.waitFor("source", "sentences", isAtLeast(800))
        server.stop()
        try rig.waitFor("source", "state") { $0 as? String == "lost" }
        let again = try LocalServer(port: server.port)
        try again.accept()
        again.send(DemoDrive.bytes(800..<1600))
        let report = try rig.waitFor("source", "sentences", isAtLeast(1600))
        try daemon.stop()
        #expect(source(report, "checksum_errors") == 0)
    }

    @Test func aPortThatIsTakenIsUsedOnceItIsFree() throws {
        let rig = try Rig()
        let taken = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let (isBound, port) = withLoopback(0) { bind(taken, $0, $1) == 0 && getsockname(taken, $0, &$1) == 0 }
        #expect(isBound)
        try rig.configure(source: "kind = \"udp\"\nport = \(port)\nstale_after = \"1s\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("another program listens there")
        close(taken)
        try rig.waitFor("source", "state") { $0 as? String == "silent" }
        try daemon.stop()
    }

    @Test func aDaemonThatWasStoppedForAWhileGoesOn() throws {
        let (rig, server, daemon) = try Rig.withReceiver()
        server.send(DemoDrive.bytes(0..<750))
        try rig.waitFor("source", "sentences", isAtLeast(750))
        daemon.kill(SIGSTOP)
        try daemon.waitUntilStopped()
        server.send(DemoDrive.bytes(750..<1500))
        // A command that is asked meanwhile says so instead of waiting for ever.
        #expect(try rig.statusExit() == 2)
        daemon.kill(SIGCONT)
        daemon.kill(SIGHUP)
        let report = try rig.waitFor("source", "sentences", isAtLeast(1500))
        #expect(source(report, "checksum_errors") == 0)
        try daemon.waitFor("configuration reloaded")
        try daemon.stop()
    }

    /// Writes beyond the limit fail, as on a full disk.
    @Test func aDiskThatRefusesForAWhileCostsNothing() throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = try rig.write(DemoDrive.secondHalf)
        try rig.configure(source: Rig.log(log, playback: "150.0"), outbox: "commit_window = \"20ms\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "state") { $0 as? String == "moving" }
        try limitFiles(of: daemon, to: "100", rig)
        let refused = try rig.waitFor("queue", "commit_failed", isAtLeast(2))
        #expect(refused["health"] as? String == "degraded")
        #expect("\(refused["problems"] ?? "")".contains("outbox"))
        try limitFiles(of: daemon, to: "unlimited", rig)
        #expect(try daemon.exitStatus(within: 60) == 0)
        #expect(daemon.text.contains("written to disk again"))
        try expectAllArrived(rig, of: log)
    }

    /// Uploads go on from memory; nothing is lost, and nothing comes twice, over a restart too.
    @Test func uploadsGoOnWhileTheDiskFails() throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = try rig.write(DemoDrive.secondHalf)
        try rig.configure(
            source: Rig.log(log, playback: "45.0"), endpoint: "batch_size = 10\nbatch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept", isAtLeast(20))
        try limitFiles(of: daemon, to: "100", rig)
        let failing = try rig.waitFor("queue", "sent_from_ram", within: 40, isAtLeast(30))
        #expect(failing["health"] as? String == "degraded" && "\(failing["problems"] ?? "")".contains("outbox"))
        try limitFiles(of: daemon, to: "unlimited", rig)
        try daemon.waitFor("written to disk again", within: 40)
        #expect(try daemon.exitStatus(within: 60) == 0)
        // Nothing is left for another start.
        try rig.runDaemon()
        #expect(try rig.received().map(\.timeMs) == rig.replayed(log).map(\.timeMs))
    }

    private func limitFiles(of daemon: RunningProgram, to size: String, _ rig: Rig) throws {
        try rig.shell("prlimit --pid \(daemon.processID) --fsize=\(size):unlimited")
    }

    @Test func whatTheDiskDidNotTakeInTheEndIsLoggedAsLost() throws {
        let rig = try Rig()
        try rig.configure(source: Rig.log(rig.write(DemoDrive.secondHalf), playback: "60.0"))
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
        let log = try rig.write(DemoDrive.lastTrip)
        try rig.configure(source: Rig.log(log))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("end of input")
        try daemon.stop(within: 8.5)
        #expect(try rig.received().isEmpty)
        try rig.stopCollector()
        try rig.startCollector()
        try rig.runDaemon()
        try expectAllArrived(rig, of: log)
    }

    @Test(arguments: 0..<6)
    func maySIGTERMComeWhenItWill(_ turn: Int) throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = try rig.write(DemoDrive.lastTrip)
        try rig.configure(source: Rig.log(log), outbox: "commit_window = \"20ms\"")
        let daemon = try rig.startDaemon()
        _ = daemon.ended(within: Double(turn) * 0.015)
        daemon.kill(SIGTERM)
        // Before the signals are watched, at its very start, it simply ends.
        #expect([0, -SIGTERM].contains(try daemon.exitStatus(within: 8.5)))
        try rig.runDaemon()
        let received = try rig.received()
        #expect(isRising(received.map(\.seq)))
        #expect(MainJob.firstHole(received, try rig.replayed(log), milliseconds: 11_000) == nil)
    }

    @Test func aReplyWithoutEndTakesNoMemory() throws {
        let rig = try Rig()
        let server = try LocalServer()
        try rig.configure(source: Rig.log(rig.write(DemoDrive.lastTrip)), server: server.port)
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
        #expect(try rig.statusExit() == 1)
        server.stop()
        try daemon.stop(within: 8.5)
    }
}
