import CSQLite
import Foundation
import TestSupport
import Testing

/// Files, settings and command lines as they should not be: a clear message or a counted defect, never a trap or a hang.
@Suite(.waiting) struct BadInputTests {
    private let drive = DemoDrive.path

    /// A mebibyte of noise.
    private static let noise: Data = {
        var generator = SeededGenerator(seed: 7)
        let words: [UInt64] = (0..<1 << 17).map { _ in generator.next() }
        return words.withUnsafeBytes { Data($0) }
    }()

    private func uniform(_ count: Int) -> Data { Self.noise.prefix(count) }

    @Test(arguments: ["decode", "replay"])
    func logsThatAreNone(_ command: String) throws {
        let rig = try Rig()
        try Data().write(to: URL(fileURLWithPath: rig.path("empty")))
        try uniform(300_000).write(to: URL(fileURLWithPath: rig.path("binary")))
        try (Data([0x1F, 0x8B]) + uniform(3000)).write(to: URL(fileURLWithPath: rig.path("gzip")))
        try "$GPRMC".write(toFile: rig.path("wide"), atomically: true, encoding: .utf16)
        let gpx = "<gpx><wpt lat=\"9\" lon=\"9\"/></gpx>"
        try gpx.write(toFile: rig.path("waypoints"), atomically: true, encoding: .utf8)
        let rows: [(String, Int32, String)] = [
            (rig.path("empty"), 0, ""), (rig.path("binary"), 65, "is it a log of a receiver?"), ("/dev/null", 0, ""),
            (rig.path("gzip"), 65, "zcat \(rig.path("gzip")) | waypost replay -"),
            (rig.path("wide"), 65, "iconv -f UTF-16"),
            (rig.path("waypoints"), 65, "waypoints and routes are no measurements"),
            (rig.directory.path, 66, "Is a directory"), (rig.path("missing"), 66, "No such file"),
        ]
        for (log, status, words) in rows {
            let call = try rig.call([command, log])
            #expect(call.status == status && (words.isEmpty || call.text.contains(words)), "\(log): \(call)")
        }
    }

    @Test(arguments: ["check", "run"])
    func configurationsThatCannotBeUsed(_ command: String) throws {
        let rig = try Rig()
        try Data([0x61, 0x3D, 0x22, 0xFF, 0xFE, 0x22]).write(to: URL(fileURLWithPath: rig.path("latin.toml")))
        try Data(repeating: 0x20, count: 1 << 20 + 1).write(to: URL(fileURLWithPath: rig.path("big.toml")))
        try uniform(5000).write(to: URL(fileURLWithPath: rig.path("binary.toml")))
        try Data().write(to: URL(fileURLWithPath: rig.path("empty.toml")))
        let nested = String(repeating: "[", count: 200_000)
        try "a = \(nested)".write(toFile: rig.path("nested.toml"), atomically: true, encoding: .utf8)
        mkfifo(rig.path("pipe.toml"), 0o600)
        let rows: [(String, String)] = [
            ("missing.toml", "no such file"), (".", "found a directory"), ("latin.toml", "not valid TOML"),
            ("big.toml", "1 MiB"), ("binary.toml", "not valid TOML"), ("empty.toml", "source.kind"),
            ("nested.toml", "not valid TOML"), ("pipe.toml", "device or pipe"),
        ]
        let start: [String] = command == "run" ? ["run", "--config"] : [command]
        for (file, words) in rows {
            let call = try rig.call(start + [rig.path(file)])
            #expect(call.status == 78 && call.text.contains(words), "\(file): \(call)")
        }
    }

    @Test func outputThatIsNotRead() throws {
        let rig = try Rig()
        let configuration = try rig.configure(source: Rig.log(drive))
        let rows: [(String, String)] = [
            // The shell's number for a program that SIGPIPE ended, or nothing to complain about.
            ("{ $waypost decode \(drive); echo $? >&2; } | head -1", "2026-03-02 07:00:00"),
            ("{ $waypost replay \(drive); case $? in 0|141) echo well >&2;; esac; } | :", "well"),
            ("$waypost decode \(drive) > /dev/full; echo $?", "write to standard output: No space left on device\n74"),
            ("$waypost replay \(drive) > /dev/full; echo $?", "write to standard output: No space left on device\n74"),
            ("$waypost check \(configuration) > /dev/full; echo $?", "No space left on device\n74"),
        ]
        for (line, words) in rows {
            let shell = try RunningProgram(shell: line, in: rig.directory)
            #expect(try shell.exitStatus(within: 20) == 0)
            let text = shell.text
            #expect(text.contains(words) && !text.contains("Fatal error"), "\(line): \(text)")
        }
    }

    @Test func aLineWithoutEndTakesNoMemory() throws {
        let rig = try Rig()
        mkfifo(rig.path("line"), 0o600)
        try rig.configure(source: Rig.log(rig.path("line")))
        let daemon = try rig.startDaemon()
        let pipe = open(rig.path("line"), O_WRONLY | O_CLOEXEC)
        try #require(pipe >= 0)
        func feed(_ bytes: [UInt8]) throws {
            try #require(bytes.withUnsafeBytes { write(pipe, $0.baseAddress, $0.count) } == bytes.count)
        }
        let block = [UInt8](repeating: 0x41, count: 1 << 20)
        try feed(Array("$GPRMC,".utf8) + block)
        let before = try daemon.peakMemory
        for _ in 0..<40 { try feed(block) }
        let peak = try daemon.peakMemory
        #expect(peak < 100 << 20 && peak - before < 10 << 20, "\(before), then \(peak)")
        close(pipe)
        try daemon.stop(within: 20)
    }

    @Test func anEmptyFileAndABinaryOne() throws {
        let rig = try Rig()
        for bytes in [Data(), uniform(1 << 20), Data(count: 1 << 20)] {
            try bytes.write(to: URL(fileURLWithPath: rig.path("log")))
            try rig.configure(source: Rig.log(rig.path("log")))
            let daemon = try rig.startDaemon()
            #expect(try daemon.exitStatus(within: 20) == 0)
            #expect(daemon.text.contains("queue empty"))
        }
    }

    static let places: [(String, String)] = [
        ("/dev/null/outbox.db", "check that the state directory exists"), ("/sys/outbox.db", "check owner and mode"),
        ("/nonexistent/outbox.db", "check that the state directory exists"),
    ]

    @Test(arguments: places)
    func whereNoQueueCanBeTheDaemonRunsFromMemory(_ path: String, _ hint: String) throws {
        let rig = try Rig()
        try rig.configure(source: Rig.log(rig.write(DemoDrive.lastTrip)))
        try rig.reconfigure(rig.path("outbox.db"), to: path)
        let daemon = try rig.startDaemon()
        try daemon.waitFor(hint)
        #expect(daemon.text.contains(path), "\(daemon.text)")
        let status = try rig.waitFor("queue", "ram_ring_depth") { $0 as? Int ?? 0 > 0 }
        let (health, problems) = (status["health"] as? String, "\(status["problems"] ?? "")")
        #expect(health == "degraded" && problems.contains(hint), "\(problems)")
        daemon.kill(SIGTERM)
        // What could be neither stored nor sent is lost, and logged.
        #expect(try daemon.exitStatus(within: 15) == 74)
    }

    @Test func aQueueThatIsNoneIsSetAside() throws {
        let rig = try Rig()
        let garbage = uniform(20_000)
        try garbage.write(to: URL(fileURLWithPath: rig.path("outbox.db")))
        try rig.configure(source: Rig.log(rig.write(DemoDrive.lastTrip)))
        let daemon = try rig.startDaemon()
        try rig.waitFor("queue", "queue_depth") { $0 as? Int == 124 }
        try daemon.stop()
        #expect(daemon.text.contains("moved to \(rig.path("outbox.db")).corrupt-1"), "\(daemon.text)")
        #expect(FileManager.default.contents(atPath: rig.path("outbox.db.corrupt-1")) == garbage)
        #expect(try rig.newestRow()?.seq == 124)
    }

    @Test func aQueueOfANewerVersionIsLeftAsItIs() throws {
        let rig = try Rig()
        try Data().write(to: URL(fileURLWithPath: rig.path("log")))
        try rig.configure(source: Rig.log(rig.path("log")))
        try rig.runDaemon()
        var database: OpaquePointer?
        try #require(sqlite3_open(rig.path("outbox.db"), &database) == SQLITE_OK)
        try #require(
            sqlite3_exec(database, "ALTER TABLE state ADD COLUMN later; PRAGMA user_version = 99", nil, nil, nil)
                == SQLITE_OK)
        sqlite3_close(database)
        let before = FileManager.default.contents(atPath: rig.path("outbox.db"))
        let daemon = try rig.startDaemon()
        #expect(try daemon.exitStatus(within: 20) == 65)
        #expect(daemon.text.contains("schema 99 is newer"))
        #expect(FileManager.default.contents(atPath: rig.path("outbox.db")) == before)
        #expect(try rig.waypost(["queue", "--config", rig.path("waypost.toml")]).exitStatus(within: 10) == 65)
    }

    @Test func aSecondInstanceNamesTheFirst() throws {
        let rig = try Rig()
        mkfifo(rig.path("pipe"), 0o600)
        try rig.configure(source: Rig.log(rig.path("pipe"), follow: true))
        let first = try rig.startDaemon()
        try first.waitFor("started")
        let second = try rig.startDaemon()
        #expect(try second.exitStatus(within: 20) == 75)
        #expect(second.text.contains("in use by process \(first.processID)"))

        // Another queue, but the same control socket.
        try rig.reconfigure("outbox.db", to: "other.db")
        let third = try rig.startDaemon()
        #expect(try third.exitStatus(within: 20) == 75)
        #expect(third.text.contains("another waypost uses it"))
        #expect(try rig.statusExit() == 1)
        try first.stop()
        #expect(try rig.statusExit() == 2)
    }

    /// The queue would be opened under the number of standard error, and log lines written into it.
    @Test func closedStandardDescriptorsAreHarmless() throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = try rig.write(DemoDrive.lastTrip)
        try rig.configure(source: Rig.log(log))
        let shell = try RunningProgram(
            shell: "$waypost run --config \(rig.path("waypost.toml")) <&- >&- 2>&-", in: rig.directory)
        #expect(try shell.exitStatus(within: 60) == 0)
        #expect(try rig.received().count == rig.replayed(log).count)
        let lock = try String(contentsOfFile: rig.path("outbox.db-lock"), encoding: .utf8)
        #expect(!lock.contains("<"))
    }
}
