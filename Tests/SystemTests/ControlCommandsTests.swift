import Foundation
import Synchronization
import TestSupport
import Testing

/// What an operator sees of delivery and how it is steered, by the commands of the built program.
@Suite(.waiting) struct ControlCommandsTests {
    private let rig: Rig
    private let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path

    init() throws { rig = try Rig() }

    /// The drive, followed at its end, so that the daemon stays.
    private var source: String { "kind = \"file\"\npath = \"\(drive)\"\nfollow = true\nplayback = \"max\"" }

    /// Exit status and all that was printed.
    private func call(_ line: String) throws -> (status: Int32, text: String) {
        let arguments = line.split(separator: " ").map(String.init)
        let program = try rig.waypost(arguments + ["--config", rig.path("waypost.toml")])
        let status = try program.exitStatus(within: 60)
        return (status, program.text)
    }

    private func waitUntilRead(_ rows: Int = 724) throws {
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= rows }
    }

    @Test func flushSendsWhatWaitsForItsWindowAndSaysWhatCameOfIt() throws {
        try rig.startCollector()
        try rig.configure(
            source: source, outbox: "commit_window = \"1h\"", endpoint: "batch_window = \"1h\"\nbatch_size = 100")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        let flush = try call("flush")
        #expect(flush.status == 0 && flush.text.hasSuffix(" accepted, 0 waiting\n"), "\(flush.text)")
        #expect(try rig.received().count == 724)
        #expect(daemon.isRunning)
    }

    @Test func flushCommitReturnsWhenTheRowsAreOnDisk() throws {
        try rig.configure(source: source, outbox: "commit_window = \"1h\"", endpoint: "batch_window = \"1h\"")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        let flush = try call("flush --commit")
        #expect(flush.status == 0 && flush.text.hasPrefix("on disk, "), "\(flush.text)")
        daemon.kill(SIGKILL)
        #expect(try rig.newestRow()?.seq == 724)
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
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        #expect(open.withLock { $0 } == 1)
        #expect(try call("flush --commit").status == 0)
        try rig.waitForEndpoint { _ in open.withLock { $0 } == 0 }
        #expect(daemon.isRunning)
    }

    @Test func flushSaysWhyNothingArrived() throws {
        try rig.configure(source: source)
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        let flush = try call("flush")
        #expect(flush.status == 1 && flush.text.contains("main: 0 accepted, 724 waiting: "), "\(flush.text)")
        #expect(flush.text.contains("refused"))
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

    @Test func aPanicIsRecordedAndSentAtOnce() throws {
        try rig.startCollector()
        try rig.configure(source: source, outbox: "commit_window = \"1h\"", endpoint: "batch_window = \"1h\"")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        #expect(try call("flush --panic").status == 0)
        #expect(try rig.received().last?.event == "panic")
        #expect(daemon.isRunning)
    }

    @Test func aPanicWithoutAPositionIsRefused() throws {
        try rig.configure(source: "kind = \"serial\"\npath = \"\(rig.path("no-receiver"))\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("receiver serial")
        let flush = try call("flush --panic --commit")
        #expect(flush.status == 1 && flush.text.contains("no position is known yet"), "\(flush.text)")
    }

    @Test func withoutADaemonFlushSaysSo() throws {
        try rig.configure(source: source)
        #expect(try call("flush").status == 2)
    }

    // endpoint

    @Test func anEndpointThatTheServerStoppedGoesOnAfterResume() throws {
        try rig.startCollector(["--answer", "410", "--first", "1"])
        try rig.configure(source: source, endpoint: "batch_size = 100\nbatch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stopped (gone)")
        let list = try call("endpoint list")
        #expect(list.status == 1 && list.text.contains("main: stopped (gone)"), "\(list.text)")
        #expect(list.text.contains("\n  do: ") && list.text.contains("waypost endpoint resume main"), "\(list.text)")
        // The server answers the first batch while later fixes are still on their way into the queue.
        try rig.waitFor("queue", "queue_depth") { $0 as? Int == 724 }
        let status = try call("status")
        #expect(
            status.status == 1 && status.text.contains("endpoint   main: stopped (gone), 724 waiting"), "\(status.text)"
        )
        #expect(try call("endpoint resume main").text == "main: resumed\n")
        #expect(try call("flush").status == 0)
        #expect(try rig.received().count == 724)
        let well = try call("endpoint list")
        #expect(well.status == 0 && well.text.hasPrefix("main: active, 0 waiting, 724 accepted, last "), "\(well.text)")
    }

    @Test func aStopEndsWithoutADaemonToo() throws {
        try rig.startCollector(["--answer", "410", "--first", "1"])
        try rig.configure(source: source, endpoint: "batch_size = 100\nbatch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stopped (gone)")
        try waitUntilRead()
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 20) == 0)
        let list = try call("endpoint list")
        #expect(list.status == 1 && list.text.contains("main: stopped (gone), 72"), "\(list.text)")
        #expect(try call("endpoint resume main").text == "main: resumed\n")
        #expect(try call("endpoint list").text.contains("main: active, 72"))
    }

    @Test func whatWaitsIsExportedBesideADaemonAndWithoutOne() throws {
        try rig.configure(source: source, endpoint: "batch_window = \"1h\"\nbatch_size = 10000")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        #expect(try call("flush --commit").status == 0)
        let replayed = try call("replay --format csv \(drive)").text
        #expect(try call("queue export --format csv").text == replayed)
        daemon.kill(SIGKILL)
        let file = rig.path("waiting.gpx")
        let export = try call("queue export --format gpx -o \(file)")
        #expect(export.status == 0 && export.text.isEmpty, "\(export.text)")
        let gpx = try String(contentsOfFile: file, encoding: .utf8)
        #expect(gpx.components(separatedBy: "<trkpt ").count == 724 && gpx.components(separatedBy: "<trk>").count == 3)
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let records = try call("queue export").text.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        #expect(records.count == 724 && records.first??["seq"] as? Int == 1 && records.last??["seq"] as? Int == 724)
    }

    @Test func ordersThatMeanNothingAreRefusedWithAHint() throws {
        try rig.configure(source: source)
        for line in ["with a daemon", "without one"] {
            let daemon = line == "with a daemon" ? try rig.startDaemon() : nil
            if daemon != nil { try waitUntilRead() }
            for (order, words) in [
                ("endpoint drop main", "only while the endpoint is held"), ("endpoint bind main", "is already bound"),
                ("endpoint resume other", "known: main"),
            ] {
                let refused = try call(order)
                #expect(refused.status == 1 && refused.text.contains(words), "\(line): \(refused.text)")
            }
            daemon?.kill(SIGTERM)
            _ = try daemon?.exitStatus(within: 20)
        }
    }

    @Test func aQueueThatAnotherDaemonHoldsIsNotTouched() throws {
        try rig.configure(source: source)
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        try rig.reconfigure("control.sock", to: "other.sock")
        let refused = try call("endpoint resume main")
        #expect(refused.status != 0 && refused.text.contains("--socket"), "\(refused.text)")
        #expect(daemon.isRunning)
    }

    /// The drive waits for a device of the name "rig", which then gets another name.
    private func rename() throws {
        try rig.configure(source: source, endpoint: "batch_window = \"1h\"\nbatch_size = 100\ndevice = \"first\"")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
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
        let list = try call("endpoint list")
        #expect(list.status == 1 && list.text.contains("main: rebind") && list.text.contains("endpoint bind main"))
        let refused = try call("endpoint bind main")
        #expect(refused.status == 1 && refused.text.contains("locations of another device"), "\(refused.text)")
        #expect(try rig.received().isEmpty)
        let bound = try call("endpoint bind main --force")
        #expect(bound.status == 0 && bound.text.hasPrefix("main: bound, "), "\(bound.text)")
        let flush = try call("flush")
        #expect(flush.status == 0)
        let seqs = try rig.received().map(\.seq)
        // A heartbeat may be behind the drive.
        #expect(seqs.count >= 724 && isRising(seqs), "\(seqs.count) after \(flush.text)")
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
        #expect(list.status == 0 && lines.count == 724, "\(list.text.prefix(300))")
        #expect(lines.last?.contains("main  seq 724  2026-03-02T07:29:47.000Z  rebound, sent ") == true)
        let file = rig.path("rows.jsonl")
        #expect(try call("quarantine export \(file)").status == 0)
        #expect(try call("quarantine export \(file)").status == 73)
        // What cannot be written to its end is not left in halves.
        let shell = try RunningProgram(
            shell: "cd '\(rig.directory.path)'; ulimit -f 200; trap '' XFSZ; "
                + "$waypost quarantine export --config waypost.toml part.jsonl; echo $?; "
                + "$waypost quarantine export --config waypost.toml > /dev/full; echo $?; ls -d part*",
            in: rig.directory)
        _ = try shell.exitStatus(within: 20)
        let full = "waypost: write to standard output: No space left on device\n74\n"
        #expect(shell.text.hasPrefix("waypost: write the output: File too large\n74\n\(full)"), "\(shell.text)")
        #expect(shell.text.contains("ls: "), "\(shell.text)")
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let rows = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(rows.compactMap { ($0["record"] as? [String: Any])?["seq"] as? Int }.last == 724)
        #expect(rows.allSatisfy { $0["endpoint"] as? String == "main" && $0["reason"] as? String == "rebound" })
        let (first, last) = try (#require(rows.first?["id"] as? Int), #require(rows.last?["id"] as? Int))
        #expect(try call("quarantine drop --id \(first)").text == "deleted: 1 row\n")
        #expect(try call("quarantine drop").status == 64)
        let daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        #expect(try call("quarantine retry --endpoint main --id \(last)").text == "to be sent again: 1 row\n")
        let flush = try call("flush")
        #expect(flush.status == 0, "\(flush.text)")
        // A heartbeat may be behind the drive.
        let seqs = try rig.received().map(\.seq)
        #expect(seqs.contains(724) && seqs.allSatisfy { $0 >= 724 }, "\(seqs)")
        #expect(try call("quarantine drop --all").text == "deleted: \(lines.count - 2) rows\n")
        #expect(try call("quarantine list").text.isEmpty)
        #expect(daemon.isRunning)
    }

    // What costs money

    @Test func nothingIsSentOverAMeteredInterfaceThatIsToBeSpared() throws {
        try rig.startCollector()
        try rig.configure(
            source: source,
            endpoint: "batch_size = 10\nbatch_window = \"1s\"\nmetered = \"hold\"\nmetered_interfaces = [\"l*\"]")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        let list = try call("endpoint list")
        #expect(list.status == 0 && list.text.contains("the route to it is over lo, which is metered"), "\(list.text)")
        let flush = try call("flush")
        #expect(flush.status == 1 && flush.text.contains("724 waiting: held"), "\(flush.text)")
        #expect(try rig.received().isEmpty)
        #expect(daemon.isRunning)
    }

    @Test func eventsGoOverAMeteredInterfaceWithWhatWaitsBeforeThem() throws {
        try rig.startCollector()
        try rig.configure(
            source: source,
            endpoint: "batch_window = \"1h\"\nmetered = \"events-only\"\nmetered_interfaces = [\"lo\"]")
        let daemon = try rig.startDaemon()
        // The last row of the drive is the stop at its end.
        try waitUntilRead()
        try rig.waitFor("queue", "last_seq") { _ in (try? rig.received().last?.seq) == 724 }
        #expect(try rig.received().map(\.seq) == Array(1...724))
        #expect(try call("endpoint list").text.contains("the route to it is over lo, which is metered"))
        #expect(daemon.isRunning)
    }

    // status

    /// A number without advice is noise.
    @Test func everyMetricHasItsRowInTheManuals() throws {
        try rig.startCollector()
        try rig.configure(source: source, endpoint: "batch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try waitUntilRead()
        try rig.waitFor("queue", "commits") { $0 as? Int ?? 0 > 0 }
        let report = try rig.status().report
        let endpoint = try #require((report["endpoints"] as? [[String: Any]])?.first)
        let words: Set = ["name", "state", "reason", "held", "interface", "problem", "advice", "disk_error"]
        let metrics = Set(endpoint.keys).union((report["queue"] as? [String: Any] ?? [:]).keys).subtracting(words)
        #expect(metrics.count > 25)
        #expect(metrics.isSuperset(of: ["quarantine_overflow", "stray_answers"]))
        let folder = BuiltProducts.repository.appendingPathComponent("docs")
        let table = try String(contentsOf: folder.appendingPathComponent("operations.md"), encoding: .utf8)
        let manual = try String(contentsOf: folder.appendingPathComponent("waypost.8"), encoding: .utf8)
        for metric in metrics {
            let row = table.split(separator: "\n").first { $0.hasPrefix("| ") && $0.contains("`\(metric)`") }
            #expect(row?.split(separator: "|").count == 4, "\(metric)")
            #expect(manual.contains(metric), "\(metric)")
        }
        #expect(daemon.isRunning)
    }

    @Test func aStatusOfManyTrackablesFitsIntoAFrame() throws {
        let trackables = (0..<900).map { "[[trackable]]\nid = \"parcel-of-a-long-name-\($0)\"\n" }.joined()
        try rig.configure(source: "kind = \"serial\"\npath = \"\(rig.path("no-receiver"))\"", more: trackables)
        let daemon = try rig.startDaemon()
        try daemon.waitFor("receiver serial")
        let report = try rig.status().report
        let motion = try #require(report["motion"] as? [String: Any])
        #expect(motion["trackables"] as? Int == 900)
        #expect((motion["resolutions"] as? [String: Any])?.count ?? 0 > 50)
        #expect((report["endpoints"] as? [Any])?.count == 1)
        let shown = try call("status")
        #expect(shown.text.contains("and 880 more trackables"), "\(shown.text)")
    }
}
