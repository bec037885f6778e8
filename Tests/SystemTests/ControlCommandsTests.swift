import Foundation
import Synchronization
import TestSupport
import Testing

/// What an operator sees of delivery and how it is steered, by the commands of the built program.
@Suite(.waiting) struct ControlCommandsTests {
    private let rig: Rig
    /// The last trip of the demo drive, followed at its end, so that the daemon stays.
    private let source: String
    private let log: String
    private let rows = 124

    init() throws {
        rig = try Rig()
        log = try rig.write(DemoDrive.lastTrip)
        source = Rig.log(log, follow: true)
    }

    /// Exit status and all that was printed.
    private func call(_ line: String) throws -> (status: Int32, text: String) {
        try rig.call(line.split(separator: " ").map(String.init) + ["--config", rig.path("waypost.toml")])
    }

    /// The daemon with the whole log in its queue or sent.
    private func startAndRead() throws -> RunningProgram {
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= rows }
        return daemon
    }

    @Test func flushSendsWhatWaitsForItsWindowAndAPanicAtOnce() throws {
        try rig.startCollector()
        try rig.configure(
            source: source, outbox: "commit_window = \"1h\"", endpoint: "batch_window = \"1h\"\nbatch_size = 40")
        let daemon = try startAndRead()
        let flush = try call("flush")
        let (some, none) = (flush.text.hasSuffix(" accepted, 0 waiting\n"), flush.text.contains("nothing waits"))
        #expect(flush.status == 0 && (some || none), "\(flush.text)")
        #expect(try rig.received().count == rows)
        #expect(try call("flush --panic").status == 0)
        #expect(try rig.received().last?.event == "panic")
        #expect(daemon.isRunning)
    }

    @Test func aServerIsContactedBeforeThereIsAnythingToSendAndTestedOnRequest() throws {
        try rig.startCollector()
        try rig.configure(source: "kind = \"udp\"\nport = \(try LocalServer().port)")
        let daemon = try rig.startDaemon()
        try rig.waitForEndpoint { $0["contact"] as? String == "reached" && $0["acked"] as? Int == 0 }
        let flush = try call("flush")
        #expect(flush.status == 0 && flush.text.contains("nothing accepted, since nothing waits"), "\(flush.text)")
        let test = try call("endpoint test")
        #expect(test.status == 0 && test.text.contains("the server accepts connections: 127.0.0.1"), "\(test.text)")
        #expect(test.text.contains("endpoint test main --store"), "\(test.text)")
        #expect(test.text.contains("address: http://127.0.0.1:\(rig.port)\n") && !test.text.contains("note:"))
        // Only one in ten seconds.
        let again = try call("endpoint test --store --at 52.5,13.4")
        #expect(again.status == 1 && again.text.contains("less than 10 s ago"), "\(again.text)")
        try daemon.stop()
        // Without the daemon the command asks.
        let config = rig.path("waypost.toml")
        let stored = try rig.call(["endpoint", "test", "--store", "--at", "52.5,13.4", "--config", config])
        #expect(stored.status == 0 && stored.text.contains("the server took the test location"), "\(stored.text)")
        let location = try #require(try rig.received().last)
        #expect(location.latitude == 52.5 && location.reason == "test")
        _ = try rig.stopCollector()
        let refused = try rig.call(["endpoint", "test", "--config", config])
        #expect(refused.status == 1 && refused.text.contains("does the server run"), "\(refused.text)")
    }

    /// A server that shows the last location, as Home Assistant does, would show an odometer of 0 else.
    @Test func aTestLocationSaysWhatTheNewestFixSays() throws {
        try rig.startCollector()
        try rig.configure(
            source: Rig.log(rig.write(DemoDrive.lastTrip), follow: true) + "\nstale_after = \"1h\"",
            endpoint: "batch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= 124 }
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        // Somebody has edited the file, which the daemon has not read again.
        try rig.reconfigure("127.0.0.1:\(rig.port)\"", to: "127.0.0.1:9\"")
        let stored = try call("endpoint test --store")
        #expect(stored.status == 0, "\(stored.text)")
        #expect(stored.text.contains("has changed since and has http://127.0.0.1:9 now"), "\(stored.text)")
        let location = try #require(try rig.received().last)
        #expect(location.reason == "test" && (location.members["odometer"] as? Double ?? 0) > 100, "\(location)")
        #expect(daemon.isRunning)
    }

    /// The host may sleep for hours then: the server would keep the other end for nothing, or have forgotten it.
    @Test func flushCommitLeavesNoConnectionOpen() throws {
        let open = Mutex(0)
        let server = try ScriptedServer { connection in
            open.withLock { $0 += 1 }
            while connection.request() != nil { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
            open.withLock { $0 -= 1 }
        }
        try rig.configure(source: source, server: server.port, endpoint: "batch_window = \"0s\"")
        let daemon = try startAndRead()
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        #expect(open.withLock { $0 } == 1)
        #expect(try call("flush --commit").status == 0)
        try rig.waitForEndpoint { _ in open.withLock { $0 } == 0 }
        #expect(daemon.isRunning)
    }

    @Test func flushDoesNotWaitForAPauseToEnd() throws {
        try rig.startCollector(["--answer", "404"])
        try rig.configure(source: source, endpoint: "batch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("paused (not found)")
        let asked = ContinuousClock.now
        let flush = try call("flush")
        #expect(flush.status == 1 && flush.text.contains(" waiting: status 404; paused (not found)"), "\(flush.text)")
        #expect(ContinuousClock.now - asked < .seconds(20))
        #expect(daemon.isRunning)
    }

    /// The status names a problem and ends with one.
    @Test func withoutAReceiverThereIsAProblemAndNoPanic() throws {
        try rig.configure(source: Rig.serial(rig.path("no-receiver")))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("receiver serial")
        let flush = try call("flush --panic --commit")
        #expect(flush.status == 1 && flush.text.contains("no position is known yet"), "\(flush.text)")
        let (status, text) = try call("status")
        #expect(status == 1 && text.contains("degraded") && text.contains("\nproblem    receiver: "), "\(text)")
        try daemon.stop()
    }

    // endpoint

    @Test func anEndpointThatTheServerStoppedGoesOnAfterResume() throws {
        try rig.startCollector(["--answer", "410", "--first", "7"])
        try rig.configure(source: source, endpoint: "batch_size = 40\nbatch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stopped (gone)")
        let list = try call("endpoint list")
        #expect(list.status == 1 && list.text.contains("main: stopped (gone)"), "\(list.text)")
        #expect(list.text.contains("\n  do: ") && list.text.contains("waypost endpoint resume main"), "\(list.text)")
        try rig.waitFor("queue", "queue_depth") { $0 as? Int == rows }
        let (status, text) = try call("status")
        #expect(status == 1 && text.contains("server     main: stopped (gone), "), "\(text)")
        #expect(try call("status --all").text.contains("endpoint   main: stopped (gone), \(rows) waiting"))
        #expect(try call("endpoint resume main").text == "main: resumed\n")
        #expect(try call("flush").status == 0)
        #expect(try rig.received().count == rows)
        let well = try call("endpoint list")
        let words = "main: active, 0 waiting, \(rows) accepted, last "
        #expect(well.status == 0 && well.text.hasPrefix(words), "\(well.text)")
    }

    @Test func aStopEndsWithoutADaemonToo() throws {
        try rig.startCollector(["--answer", "410", "--first", "7"])
        try rig.configure(source: source, endpoint: "batch_size = 40\nbatch_window = \"100ms\"")
        let daemon = try startAndRead()
        try daemon.waitFor("stopped (gone)")
        try daemon.stop()
        let list = try call("endpoint list")
        #expect(list.status == 1 && list.text.contains("main: stopped (gone), 12"), "\(list.text)")
        #expect(try call("endpoint resume main").text == "main: resumed\n")
        #expect(try call("endpoint list").text.contains("main: active, 12"))
    }

    /// `flush --commit` returns when the rows are on disk.
    @Test func whatWaitsIsExportedBesideADaemonAndWithoutOne() throws {
        try rig.configure(
            source: source, outbox: "commit_window = \"1h\"", endpoint: "batch_window = \"1h\"\nbatch_size = 10000")
        let daemon = try startAndRead()
        let flush = try call("flush --commit")
        #expect(flush.status == 0 && flush.text.hasPrefix("on disk, "), "\(flush.text)")
        let replayed = try call("replay --format csv \(log)").text
        #expect(try call("queue export --format csv").text == replayed)
        daemon.kill(SIGKILL)
        let file = rig.path("waiting.gpx")
        let export = try call("queue export --format gpx -o \(file)")
        #expect(export.status == 0 && export.text.isEmpty, "\(export.text)")
        let gpx = try String(contentsOfFile: file, encoding: .utf8)
        #expect(["<trkpt ", "<trk>"].map { gpx.components(separatedBy: $0).count - 1 } == [rows - 1, 1])
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let records = try objects(call("queue export").text)
        #expect(records.compactMap { $0["seq"] as? Int } == Array(1...rows))
    }

    private func objects(_ lines: String) throws -> [[String: Any]] {
        try lines.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
        }
    }

    /// With a daemon and without one.
    @Test func ordersThatMeanNothingAreRefusedWithAHint() throws {
        try rig.configure(source: source)
        let orders: [(String, String)] = [
            ("endpoint drop main", "only while the endpoint is held"), ("endpoint bind main", "is already bound"),
            ("endpoint resume other", "known: main"),
        ]
        func areRefused(_ when: String) throws {
            for (order, words) in orders {
                let refused = try call(order)
                #expect(refused.status == 1 && refused.text.contains(words), "\(when): \(refused.text)")
            }
        }
        let daemon = try startAndRead()
        try areRefused("with a daemon")
        // No server listens.
        let flush = try call("flush")
        let words = "main: nothing accepted, \(rows) waiting: "
        #expect(flush.status == 1 && flush.text.contains(words) && flush.text.contains("refused"), "\(flush.text)")
        try daemon.stop(within: 20)
        try areRefused("without one")
        #expect(try call("flush").status == 2)
    }

    @Test func aQueueThatAnotherDaemonHoldsIsNotTouched() throws {
        try rig.configure(source: source)
        let daemon = try startAndRead()
        try rig.reconfigure("control.sock", to: "other.sock")
        let refused = try call("endpoint resume main")
        #expect(refused.status != 0 && refused.text.contains("--socket"), "\(refused.text)")
        #expect(daemon.isRunning)
    }

    /// The drive waits for a device of the name "rig", which then gets another name.
    private func rename() throws {
        try rig.configure(source: source, endpoint: "batch_window = \"1h\"\nbatch_size = 40\ndevice = \"first\"")
        let daemon = try startAndRead()
        #expect(try call("flush --commit").status == 0)
        daemon.kill(SIGKILL)
        try rig.reconfigure("\"first\"", to: "\"second\"")
        try rig.startCollector()
        try rig.reconfigure("127.0.0.1:9\"", to: "127.0.0.1:\(rig.port)\"")
    }

    @Test func rowsOfAnotherDeviceGoOutUnderTheNewNameByForce() throws {
        try rename()
        let daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        let (status, list) = try call("endpoint list")
        #expect(
            status == 1 && list.contains("main: rebind") && list.contains("sudo waypost endpoint bind main --force"),
            "\(list)")
        let refused = try call("endpoint bind main")
        #expect(refused.status == 1 && refused.text.contains("locations of another device"), "\(refused.text)")
        #expect(try rig.received().isEmpty)
        let bound = try call("endpoint bind main --force")
        #expect(bound.status == 0 && bound.text.hasPrefix("main: bound, "), "\(bound.text)")
        let flush = try call("flush")
        #expect(flush.status == 0)
        let seqs = try rig.received().map(\.seq)
        // A heartbeat may be behind the drive.
        #expect(seqs.count >= rows && isRising(seqs), "\(seqs.count) after \(flush.text)")
        #expect(daemon.isRunning)
    }

    @Test func rowsOfAnotherDeviceAreGivenUpWithoutADaemon() throws {
        try rename()
        let dropped = try call("endpoint drop main")
        #expect(dropped.status == 0 && dropped.text.hasPrefix("main: dropped, "), "\(dropped.text)")
        #expect(try call("endpoint list").text.hasPrefix("main: active, 0 waiting"))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        #expect(try rig.received().isEmpty)
    }

    @Test func quarantinedRowsAreListedExportedRetriedAndDropped() throws {
        try rename()
        try rig.reconfigure("device = ", to: "on_collision = \"quarantine\"\ndevice = ")
        #expect(try call("endpoint bind main --force").status == 0)
        let list = try call("quarantine list")
        let lines = list.text.split(separator: "\n")
        #expect(list.status == 0 && lines.count == rows, "\(list.text.prefix(300))")
        #expect(lines.last?.contains("main  seq \(rows)  2026-03-02T07:29:47.000Z  rebound, sent ") == true)
        let file = rig.path("rows.jsonl")
        #expect(try call("quarantine export \(file)").status == 0)
        #expect(try call("quarantine export \(file)").status == 73)
        // What cannot be written to its end is not left in halves.
        let shell = try RunningProgram(
            shell: """
                cd '\(rig.directory.path)'; ulimit -f 100; trap '' XFSZ
                $waypost quarantine export --config waypost.toml part.jsonl; echo $?
                $waypost quarantine export --config waypost.toml > /dev/full; echo $?; ls -d part*
                """, in: rig.directory)
        _ = try shell.exitStatus(within: 20)
        let full = "waypost: write to standard output: No space left on device\n74\n"
        let said = shell.text
        #expect(said.hasPrefix("waypost: write the output: File too large\n74\n\(full)"), "\(said)")
        #expect(said.contains("ls: "), "\(said)")
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let exported = try objects(String(contentsOfFile: file, encoding: .utf8))
        #expect((exported.last?["record"] as? [String: Any])?["seq"] as? Int == rows)
        #expect(exported.allSatisfy { $0["endpoint"] as? String == "main" && $0["reason"] as? String == "rebound" })
        let ids = exported.compactMap { $0["id"] as? Int }
        let (first, last) = try (#require(ids.first), #require(ids.last))
        #expect(try call("quarantine drop --id \(first)").text == "deleted: 1 location\n")
        #expect(try call("quarantine drop").status == 64)
        let daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        #expect(try call("quarantine retry --endpoint main --id \(last)").text == "to be sent again: 1 location\n")
        let flush = try call("flush")
        #expect(flush.status == 0, "\(flush.text)")
        // A heartbeat may be behind the drive.
        let seqs = try rig.received().map(\.seq)
        #expect(seqs.contains(rows) && seqs.allSatisfy { $0 >= rows }, "\(seqs)")
        #expect(try call("quarantine drop --all").text == "deleted: \(lines.count - 2) locations\n")
        #expect(try call("quarantine list").text.isEmpty)
        #expect(daemon.isRunning)
    }

    // What costs money

    @Test func nothingIsSentOverAMeteredInterfaceThatIsToBeSpared() throws {
        try rig.startCollector()
        try rig.configure(
            source: source,
            endpoint: "batch_size = 10\nbatch_window = \"1s\"\nmetered = \"hold\"\nmetered_interfaces = [\"l*\"]")
        let daemon = try startAndRead()
        let list = try call("endpoint list")
        #expect(list.status == 0 && list.text.contains("the route to it is over lo, which is metered"), "\(list.text)")
        let flush = try call("flush")
        #expect(flush.status == 1 && flush.text.contains("\(rows) waiting: held"), "\(flush.text)")
        #expect(try rig.received().isEmpty)
        #expect(daemon.isRunning)
    }

    @Test func eventsGoOverAMeteredInterfaceWithWhatWaitsBeforeThem() throws {
        try rig.startCollector()
        try rig.configure(
            source: source,
            endpoint: "batch_window = \"1h\"\nmetered = \"events-only\"\nmetered_interfaces = [\"lo\"]")
        let daemon = try startAndRead()
        // The last row of the drive is the stop at its end.
        let received = try rig.waitForReceived { $0.last?.seq == rows }
        #expect(received.map(\.seq) == Array(1...rows))
        #expect(try call("endpoint list").text.contains("the route to it is over lo, which is metered"))
        #expect(daemon.isRunning)
    }

    // status

    /// A number without advice is noise.
    @Test func everyMetricHasItsRowInTheManuals() throws {
        try rig.startCollector()
        try rig.configure(source: source, endpoint: "batch_window = \"100ms\"")
        let daemon = try startAndRead()
        try rig.waitFor("queue", "commits") { $0 as? Int ?? 0 > 0 }
        let report = try rig.status()
        let endpoint = try #require((report["endpoints"] as? [[String: Any]])?.first)
        let queue = report["queue"] as? [String: Any] ?? [:]
        let words: Set<String> = ["name", "state", "reason", "held", "interface", "problem", "advice", "disk_error"]
        let metrics = Set<String>(endpoint.keys).union(queue.keys).subtracting(words)
        #expect(metrics.count > 25)
        #expect(metrics.isSuperset(of: ["quarantine_overflow", "stray_answers"]))
        let folder = BuiltProducts.repository.appendingPathComponent("docs")
        let table = try String(contentsOf: folder.appendingPathComponent("operations.md"), encoding: .utf8)
        let manual = try String(contentsOf: folder.appendingPathComponent("waypost.8"), encoding: .utf8)
        let rows = table.split(separator: "\n").filter { $0.hasPrefix("| ") }
        let missing = metrics.filter { metric in
            let row = rows.first { $0.contains("`\(metric)`") }
            return row?.split(separator: "|").count != 4 || !manual.contains(metric)
        }
        #expect(missing.isEmpty)
        #expect(daemon.isRunning)
    }

    @Test func aStatusOfManyTrackablesFitsIntoAFrame() throws {
        let trackables = (0..<900).map { "[[trackable]]\nid = \"parcel-of-a-long-name-\($0)\"\n" }.joined()
        try rig.configure(source: Rig.serial(rig.path("no-receiver")), more: trackables)
        let daemon = try rig.startDaemon()
        try daemon.waitFor("receiver serial")
        let report = try rig.status()
        let motion = try #require(report["motion"] as? [String: Any])
        #expect(motion["trackables"] as? Int == 900)
        #expect((motion["resolutions"] as? [String: Any])?.count ?? 0 > 50)
        #expect((report["endpoints"] as? [Any])?.count == 1)
        let shown = try call("status --all")
        #expect(shown.text.contains("and 880 more trackables"), "\(shown.text)")
    }
}
