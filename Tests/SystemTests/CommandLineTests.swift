import Foundation
import TestSupport
import Testing

/// The commands as a person types them: what they print where, and their exit statuses.
@Suite(.waiting) struct CommandLineTests {
    /// One finished call of the built `waypost`.
    private struct Call {
        var status: Int32
        var output: String
        var errors: String

        init(_ arguments: [String], input: Data? = nil) throws {
            let folder = URL(fileURLWithPath: try makeTemporaryDirectory())
            defer { try? FileManager.default.removeItem(at: folder) }
            let files = ["input", "output", "errors"].map(folder.appendingPathComponent)
            for file in files { try (file == files[0] ? input ?? Data() : Data()).write(to: file) }
            let process = Process()
            process.executableURL = try BuiltProducts.executable("waypost")
            process.arguments = arguments
            process.standardInput = try FileHandle(forReadingFrom: files[0])
            process.standardOutput = try FileHandle(forWritingTo: files[1])
            process.standardError = try FileHandle(forWritingTo: files[2])
            try process.run()
            process.waitUntilExit()
            status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
            output = try String(contentsOf: files[1], encoding: .utf8)
            errors = try String(contentsOf: files[2], encoding: .utf8)
        }
    }

    private func fixture(_ name: String) -> String {
        BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(name)").path
    }

    /// The name of the output may be another one of a file that is read.
    @Test func noFileThatIsReadIsReplaced() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path
        func refused(_ arguments: [String], input: Data? = nil) throws -> Bool {
            let call = try Call(arguments, input: input)
            return call.status == 64 && call.errors.contains("name another one")
        }
        try directory.write("w.toml", "[source]\nkind = \"file\"\npath = \"/dev/null\"\n")
        try directory.write("outbox.db", "")
        try directory.write("outbox.db-shm", "")
        #expect(symlink("\(path)/w.toml", "\(path)/w.csv") == 0)
        let log = fixture("demo-city-drive.nmea")
        #expect(try refused(["replay", "--config", "\(path)/w.toml", "--format", "csv", "-o", "\(path)/w.csv", log]))
        // One that is there, and one that is not: SQLite would read either.
        for part in ["", "-shm", "-wal", "-lock"] {
            let file = "\(path)/outbox.db\(part)"
            let export = ["queue", "export", "--path", "\(path)/outbox.db", "--format", "csv", "-o", file]
            #expect(try refused(export), "\(file)")
        }
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        let waypost = try BuiltProducts.executable("waypost").path
        try FileManager.default.copyItem(atPath: log, toPath: "\(path)/drive.nmea")
        shell.arguments = [
            "-c", "'\(waypost)' replay --format gpx -o '\(path)/drive.nmea' - <'\(path)/drive.nmea' 2>'\(path)/errors'",
        ]
        try shell.run()
        shell.waitUntilExit()
        #expect(try shell.terminationStatus == 64 && directory.read("errors").contains("standard input"))
        #expect(try directory.read("drive.nmea") == String(contentsOfFile: log, encoding: .utf8))
    }

    @Test func aLinkInPlaceOfAQueueIsNamedBesideALog() throws {
        let directory = try TemporaryDirectory()
        let queue = "\(directory.path)/outbox.db"
        try directory.write("outbox.db-wal", String(repeating: "x", count: 5000))
        try directory.write("other", "x")
        #expect(symlink("\(directory.path)/other", queue) == 0)
        for command in ["show", "verify"] {
            let call = try Call(["queue", command, "--path", queue])
            #expect((call.output + call.errors).contains("\(queue) is no regular file"), "\(call.errors)")
            #expect(!call.errors.contains("lost"))
        }
    }

    // Help and version.

    @Test func withoutACommandItPrintsItsHelp() throws {
        let call = try Call([])
        #expect(call.status == 0)
        #expect(call.output == (try Call(["--help"]).output))
        #expect(call.output.contains("\n  run "))
    }

    static let helps: [(command: [String], words: [String])] = [
        (["run"], ["--config", "--from-start", "--linger", "SIGTERM"]),
        (["replay"], ["--config", "--format", "text, jsonl, gpx", "--output", "<logs>", "waypost replay "]),
        (["queue", "export"], ["--config", "--path", "--format", "--output", "jsonl, gpx"]),
        (["decode"], ["--format", "text, jsonl, none", "<log>", "waypost decode "]),
        (["check"], ["--print", "<file>", "78"]),
        (["queue"], ["show", "list", "waypost queue list "]),
        (["queue", "show"], ["--config", "--path"]),
        (["queue", "list"], ["--config", "--path", "--count", "--newest", "JSON Lines"]),
        (["status"], ["--config", "--socket", "--json", "no daemon"]),
        (["endpoint"], ["list", "bind", "resume", "drop"]),
        (["endpoint", "bind"], ["<name>", "--force", "on_collision"]),
        (["flush"], ["--commit", "--panic", "no daemon"]),
        (["pace"], ["moving", "stationary", "auto", "--config", "--socket"]),
        (["engine"], ["set", "clear", "constant"]),
        (["engine", "set"], ["--priority", "--interval", "--displacement", "--config", "--socket"]),
        (["subscriber", "add"], ["<id>", "--trackable", "--interval", "--config", "--socket"]),
    ]

    @Test(arguments: helps) func theHelpTeaches(command: [String], words: [String]) throws {
        let call = try Call(command + ["--help"])
        #expect(call.status == 0 && call.errors.isEmpty)
        let text = call.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect((words + ["OVERVIEW:", "USAGE: waypost"]).filter { !text.contains($0) } == [], "\(text)")
    }

    @Test func tellsItsVersion() throws {
        let call = try Call(["--version"])
        #expect(call.status == 0)
        #expect(call.output.wholeMatch(of: /[0-9]+\.[0-9]+\.[0-9]+\n/) != nil, "\(call.output)")
    }

    // Exit statuses, after sysexits.h.

    static let failures: [(arguments: [String], status: Int32)] = [
        (["bogus"], 64), (["--bogus"], 64), (["run", "--linger=-1"], 64), (["run", "--linger", "nan"], 64),
        (["odometer", "set", "-1"], 64), (["odometer", "set", "nan"], 64), (["odometer", "set", "1e12"], 64),
        (["odometer", "set", "far"], 64), (["reload", "--socket", "/nowhere/control.sock"], 2),
        (["decode", "--format", "xml"], 64), (["replay"], 64),
        (["queue", "list", "--count", "0"], 64), (["run", "--linger", "soon"], 64),
        (["decode", "/nowhere/drive.nmea"], 66), (["replay", "/nowhere/drive.nmea"], 66), (["decode", "/"], 66),
        (["queue", "--path", "/nowhere/outbox.db"], 66), (["check", "/nowhere/waypost.toml"], 78),
        (["run", "--config", "/nowhere/waypost.toml"], 78), (["status", "--config", "/nowhere/waypost.toml"], 2),
        (["status", "--socket", "/nowhere/control.sock"], 2), (["top", "--socket", "/nowhere/control.sock"], 2),
        (["pace", "moving", "--socket", "/nowhere/control.sock"], 2),
        (["geofences", "refresh", "--socket", "/nowhere/control.sock"], 2),
        (["pace", "sideways"], 64), (["remote", "--socket", "/nowhere/control.sock"], 2), (["remote", "drop"], 64),
        (["engine", "clear", "--socket", "/nowhere/control.sock"], 2),
        (["subscriber", "remove", "x", "--socket", "/nowhere/control.sock"], 2),
        (["flush", "--commit", "--socket", "/nowhere/control.sock"], 2), (["endpoint", "bind"], 64),
        (["quarantine", "drop"], 64), (["quarantine", "retry", "--id", "1", "--all"], 64),
        (["quarantine", "list", "--path", "/nowhere/outbox.db"], 66),
        (["queue", "export", "--path", "/nowhere/outbox.db"], 66), (["queue", "export", "--format", "xml"], 64),
        (["replay", "/dev/null", "-o", "/nowhere/drive.csv"], 73),
        (["replay", "--beacons", "b.jsonl", "drive.nmea"], 64),
        (["replay", "--config", "w.toml", "--beacons", "b.jsonl", "--format", "html", "drive.nmea"], 64),
        (["replay", "--config", "w.toml", "--beacons", "-", "-"], 64),
    ]

    @Test(arguments: failures)
    func endsWithAStatusThatSaysWhatWasWrong(arguments: [String], status: Int32) throws {
        let call = try Call(arguments)
        #expect(call.status == status && call.output.isEmpty, "\(call)")
        let subject = arguments.last { $0.hasPrefix("/") } ?? "Usage: waypost"
        #expect(call.errors.contains(subject), "\(call.errors)")
    }

    // decode and replay.

    @Test func decodeAndReplayPrintWhatIsReviewedInTheFixtures() throws {
        let rows: [([String], String)] = [
            (["decode", "--format", "jsonl"], "glued-and-garbled.decode.expected"),
            (["decode"], "glued-and-garbled.decode.txt"),
            (["replay", "--format", "jsonl"], "two-second-epochs-over-midnight.replay.expected"),
            (["replay"], "two-second-epochs-over-midnight.replay.txt"),
        ]
        for (arguments, name) in rows {
            let log = fixture(name.prefix { $0 != "." } + ".nmea")
            let call = try Call(arguments + [log])
            // Lines that are no sentences are named.
            #expect(call.status == 0 && call.errors.isEmpty == !name.hasPrefix("glued"), "\(call.errors)")
            // A story has local times.
            let output = call.output.replacing(/(?m)^(\d{4}-\d\d-\d\d [\d:]{8}) \+00:00/) { $0.output.1 }
            #expect(output == (try String(contentsOfFile: fixture(name), encoding: .utf8)), "\(name)")
        }
    }

    @Test func replayWritesAFileWholeOrNotAtAll() throws {
        let folder = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (file, broken, output) = (folder + "/drive.gpx", folder + "/broken", folder + "/drive.csv")
        let whole = try Call(["replay", "--format", "gpx", "-o", file, fixture("demo-city-drive.nmea")])
        #expect(whole.status == 0 && whole.output.isEmpty && whole.errors.isEmpty, "\(whole.errors)")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        // With a mistake behind its first point, it is read up to there: docs/replay.md.
        let first = try #require(bytes.firstRange(of: Data("<trkpt".utf8))).lowerBound
        try (bytes.prefix(first + 4) + Data("</gpx>".utf8)).write(to: URL(fileURLWithPath: broken))
        let cut = try Call(["replay", "--format", "csv", "-o", output, broken])
        #expect(cut.status == 65 && cut.output.isEmpty)
        #expect(cut.errors.hasPrefix("waypost: \(broken):"), "\(cut.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["broken", "drive.gpx"])
        // The form follows from the name, and no log is overwritten, by whatever name.
        let named = try Call(["replay", "-o", output, fixture("demo-city-drive.nmea")])
        #expect(named.status == 0 && named.errors.isEmpty, "\(named.errors)")
        #expect(try String(contentsOfFile: output, encoding: .utf8).hasPrefix("time,trackable,"))
        #expect(symlink(file, folder + "/link.gpx") == 0)
        for name in ["/drive.gpx", "/link.gpx"] {
            let own = try Call(["replay", "-o", folder + name, file])
            #expect(own.status == 64 && own.errors.contains("name another"), "\(own.errors)")
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == bytes)
        // By its content, and from a pipe.
        let piped = try Call(["replay", "--format", "csv", "-"], input: bytes)
        #expect(piped.status == 0 && piped.output.split(separator: "\n").count > 40)
    }

    @Test func readsStandardInput() throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: fixture("leap-second.nmea")))
        let expected = try String(contentsOfFile: fixture("leap-second.decode.expected"), encoding: .utf8)
        #expect(try Call(["decode", "-", "--format", "jsonl"], input: bytes).output == expected)
        #expect(try Call(["decode", "--format", "jsonl"], input: bytes).output == expected)
        let replayed = try String(contentsOfFile: fixture("leap-second.replay.expected"), encoding: .utf8)
        #expect(try Call(["replay", "--format", "jsonl", "-"], input: bytes).output == replayed)
    }

    /// An empty log is no failure.
    @Test func countsWithoutPrintingFixes() throws {
        let call = try Call(["decode", "--format", "none", fixture("glued-and-garbled.nmea")])
        #expect(call.output.hasPrefix("2777 bytes, 22 sentences, 10 fixes, 0 epochs without a fix\n"))
        #expect(try Call(["decode", "/dev/null"]).output == "0 bytes, 0 sentences, 0 fixes, 0 epochs without a fix\n")
        #expect(try Call(["replay", "/dev/null"]).output.contains("\ntrips      0"))
    }

    @Test func replayDecidesByTheSettingsOfTheConfiguration() throws {
        let rig = try Rig()
        let file = try rig.configure(
            source: "kind = \"serial\"\npath = \"/dev/ttyACM0\"", more: "[tracking]\nstop_timeout = \"8m\"")
        let call = try Call(["replay", "--config", file, fixture("demo-city-drive.nmea")])
        #expect(call.output.contains("trips      1, ended by a stop: 0\n"), "\(call.output)")
    }

    @Test func replayDoubtsTheDatesOfAnOldLogOnlyWhenAsked() throws {
        let rig = try Rig()
        let log = fixture("years-on-both-sides-of-the-century.nmea")
        let serial = "kind = \"serial\"\npath = \"/dev/ttyACM0\""
        let old = try Call(["replay", "--format", "jsonl", "--config", rig.configure(source: serial), log])
        #expect(old.output.contains("\"dateless\":0,") && old.output.contains("\"first_ms\":946684799000"))
        let repaired = try Call([
            "replay", "--format", "jsonl", "--config", rig.configure(source: serial + "\nrollover = \"repair\""), log,
        ])
        // None of them is a whole number of week counters away from a day that can be.
        #expect(repaired.output.contains("\"dates_refused\":4,") && !repaired.output.contains("946684799000"))
    }

    // check.

    @Test func checkAsksTheGPSDOfTheSource() throws {
        let server = try LocalServer()
        let rig = try Rig()
        let source = "kind = \"gpsd\"\nhost = \"127.0.0.1\"\nport = \(server.port)\ndevice = \"/dev/b\""
        let file = try rig.configure(source: source)
        let program = try rig.waypost(["check", file])
        try server.accept()
        let version = #"{"class":"VERSION","release":"3.25","rev":"3.25","proto_major":3,"proto_minor":15}"#
        let devices = #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/\u001b[2Ja"}]}"#
        server.send(Array("\(version)\r\n\(devices)\r\n".utf8))
        #expect(try program.exitStatus(within: 60) == 0)
        #expect(program.text.contains("\(file): valid\nsource: gpsd 3.25 (protocol 3.15) with /dev/\\x1b[2Ja\n"))
        #expect(program.text.contains("warning: source: gpsd does not have /dev/b; it has /dev/\\x1b[2Ja\n"))
        // The configuration is valid, whether or not a receiver is there.
        server.stop()
        let call = try Call(["check", "--print", file])
        #expect(call.status == 0 && !call.output.contains("source: "))
        #expect(call.errors.contains("warning: source: cannot connect to gpsd at 127.0.0.1:\(server.port)"))
        #expect(call.errors.contains("systemctl start gpsd.socket"))
    }

    @Test func checkReportsAllProblemsAtOnceByLineAndColumn() throws {
        let rig = try Rig()
        let file = rig.path("bad.toml")
        try """
        [source]
        kind = "serial"
        pth = "/dev/ttyACM0"
        [tracking]
        stop_timeout = "5q"
        [outbox]
        commit_window = "10d"
        """.write(toFile: file, atomically: true, encoding: .utf8)
        let call = try Call(["check", file])
        #expect(call.status == 78 && call.output.isEmpty)
        let lines = call.errors.split(separator: "\n")
        for start in ["1:2: source.path: ", "3:1: source.pth: ", "5:16: tracking.stop_timeout: ", "7:17: outbox."] {
            #expect(lines.contains { $0.hasPrefix("\(file):\(start)") }, "\(start) in \(call.errors)")
        }
        #expect(call.errors.contains("(did you mean path?)"))
        #expect(lines.allSatisfy { $0.hasPrefix("\(file):") }, "\(call.errors)")
    }

    @Test func checkPrintsTheEffectiveSettingsWithTheirOrigin() throws {
        let rig = try Rig()
        let file = try rig.configure(source: "kind = \"serial\"\npath = \"/dev/ttyACM0\"")
        let good = try Call(["check", file])
        #expect(good.status == 0 && !good.errors.contains(file) && good.output == "\(file): valid\n", "\(good)")
        let call = try Call(["check", "--print", file])
        let lines = [
            "path = \"/dev/ttyACM0\"  # from \(file):5\n", "\nstop_timeout = \"5m\"  # default\n",
            "\n# What an answer means to endpoint ",
        ]
        #expect(call.status == 0 && lines.filter { !call.output.contains($0) } == [], "\(call.output)")
        // What it prints is a configuration again, and means the same.
        let printed = rig.path("printed.toml")
        try call.output.write(toFile: printed, atomically: true, encoding: .utf8)
        let again = try Call(["check", "--print", printed])
        #expect(again.status == 0, "\(again.errors)")
        #expect(settings(again.output) == settings(call.output))
    }

    /// Without the origins.
    private func settings(_ printed: String) -> [String] {
        printed.split(separator: "\n").map { String($0.prefix(upTo: $0.range(of: "  #")?.lowerBound ?? $0.endIndex)) }
    }

    // queue and status.

    @Test func queueShowsWhatWaitsWithAndWithoutADaemon() throws {
        let rig = try Rig()
        // No server listens at the endpoint.
        try rig.configure(source: "kind = \"file\"\npath = \"\(fixture("demo-city-drive.nmea"))\"")
        try rig.runDaemon(["--linger", "0"])
        let config = ["--config", rig.path("waypost.toml")]
        let show = try Call(["queue"] + config)
        #expect(show.status == 0 && show.errors.isEmpty)
        let lines = [
            ": 724 rows on disk\n", "endpoint main: 724 waiting on disk", "oldest  2026-03-02T07:00:29.000Z  seq 1\n",
            "newest  2026-03-02T07:29:47.000Z  seq 724\n",
        ]
        #expect(lines.filter { !show.output.contains($0) } == [], "\(show.output)")

        let rows = try json(Call(["queue", "list", "--count", "1000", "--path", rig.path("outbox.db")]).output)
        #expect(rows.compactMap { $0["seq"] as? Int } == Array(1...724))
        let keys: Set<String> = ["seq", "time", "trackable", "latitude", "longitude", "moving", "event", "published"]
        #expect(rows.allSatisfy { keys.isSubset(of: $0.keys) && $0["trackable"] as? String == "rig" })
        let shown = try json(Call(["queue", "show", "--json"] + config).output)
        #expect(shown.first?.int("rows") == 724 && shown.first?.list("endpoints").first?.int("waiting") == 724)
        let listed = try json(Call(["endpoint", "list", "--json"] + config).output)
        #expect(listed.first?.string("name") == "main" && listed.first?.int("waiting") == 724)
        #expect(try json(Call(["quarantine", "list", "--json"] + config).output).isEmpty)
        #expect(try json(Call(["profile", "list", "--json"]).output).contains { $0.string("name") == "traccar" })
        let valid = try json(Call(["check", "--json", rig.path("waypost.toml")]).output)
        #expect(valid.first?["valid"] as? Bool == true)
        try "[endpoint]\nurl = 7\n".write(toFile: rig.path("wrong.toml"), atomically: true, encoding: .utf8)
        let wrong = try Call(["check", "--json", rig.path("wrong.toml")])
        let found = try json(wrong.output).first
        #expect(
            wrong.status == 78 && found?["valid"] as? Bool == false
                && (found?["problems"] as? [String])?.isEmpty == false)
        for (name, status) in [("x.gpx", 0), ("x.xyz", 64), ("plain", 0)] as [(String, Int32)] {
            #expect(try Call(["queue", "export", "-o", rig.path(name)] + config).status == status, "\(name)")
        }
        #expect(try String(contentsOfFile: rig.path("x.gpx"), encoding: .utf8).contains("<gpx"))
        let newest = try json(Call(["queue", "list", "--newest", "--count", "2"] + config).output)
        #expect(Set(newest.compactMap { $0["seq"] as? Int }) == [723, 724])
    }

    @Test func statusIsOneObjectAndItsExitStatusIsTheHealth() throws {
        let rig = try Rig()
        try rig.startCollector()
        // On a slow machine as well the receiver is not silent yet when somebody looks.
        try rig.configure(source: Rig.log(DemoDrive.path, follow: true) + "\nstale_after = \"1h\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since 2026-03-02T07:24:47")
        let config = ["--config", rig.path("waypost.toml")]
        try rig.waitForEndpoint { $0["acked"] as? Int == 724 }
        let short = try Call(["status"] + config).output
        let wanted = [
            "parked     since 2026-03-02 07:24 +00:00 (", "receiver   file ", "server     main: last upload ",
            "queue      empty\n",
        ]
        #expect(wanted.filter { !short.contains($0) } == [] && short.split(separator: "\n").count <= 8, "\(short)")
        let call = try Call(["status", "--all"] + config)
        let lines = [
            ": ok\n", "receiver   file ", "motion     stationary since 2026-03-02T07:24:47.000Z",
            "track      724 kept, 2 trips, 2 stops, odometer 56",
            "endpoint   main: active, 0 waiting, 724 accepted",
        ]
        #expect(call.status == 0 && lines.filter { !call.output.contains($0) } == [], "\(call.output)")

        let printed = try Call(["status", "--json"] + config)
        #expect(printed.status == 0)
        let reports = try json(printed.output)
        let report = try #require(reports.first)
        let keys: Set<String> = [
            "id", "ok", "version", "health", "units", "line", "problems", "configuration", "uptime_s", "wakeups",
            "repeated_on_fresh_connection", "unasked_answers", "motion", "source", "queue", "power", "endpoints",
        ]
        #expect(reports.count == 1 && Set(report.keys) == keys, "\(report.keys)")
        #expect(report.string("health") == "ok" && (report["problems"] as? [String])?.isEmpty == true)
        #expect(["motion.stops", "source.sentences", "queue.last_seq"].map(report.int) == [2, 3754, 724])
        #expect(report.list("endpoints").first?.int("acked") == 724)

        // The receiving end goes away: one thing to look at, nothing lost.
        try rig.stopCollector()
        try daemon.stop()
        #expect(try Call(["status"] + config).status == 2)
    }

    private func json(_ lines: String) throws -> [[String: Any]] {
        try lines.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\($0)")
        }
    }
}
