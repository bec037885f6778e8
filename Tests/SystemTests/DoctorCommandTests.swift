import CSQLite
import Foundation
import TestSupport
import Testing

/// `waypost doctor` on this host, as far as it is the same on every host.
@Suite(.waiting) struct DoctorCommandTests {
    private let rig: Rig
    private let drive = DemoDrive.path

    /// On a disk: what is in memory alone is another finding.
    init() throws { rig = try Rig(in: "/var/tmp") }

    /// The first page of a table, in the file itself once its log is empty.
    private func damage(table: String, of file: String) throws {
        var database: OpaquePointer?
        var statement: OpaquePointer?
        defer { sqlite3_close(database) }
        #expect(sqlite3_open(file, &database) == SQLITE_OK)
        #expect(sqlite3_exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", nil, nil, nil) == SQLITE_OK)
        let place = """
            SELECT (rootpage - 1) * page_size, page_size FROM sqlite_schema, pragma_page_size WHERE name = '\(table)'
            """
        #expect(sqlite3_prepare_v2(database, place, -1, &statement, nil) == SQLITE_OK)
        defer { sqlite3_finalize(statement) }
        #expect(sqlite3_step(statement) == SQLITE_ROW)
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: file))
        try handle.seek(toOffset: UInt64(sqlite3_column_int64(statement, 0)))
        try handle.write(contentsOf: Data(repeating: 0xA5, count: Int(sqlite3_column_int64(statement, 1))))
        try handle.close()
    }

    /// Exit status, and by number the state of each check and what was found.
    private func doctor() throws -> (status: Int32, checks: [Int: (state: String, found: String)], text: String) {
        let program = try rig.waypost(["doctor", "--json", "--config", rig.path("waypost.toml")])
        let status = try program.exitStatus(within: 60)
        let json = try #require(try JSONSerialization.jsonObject(with: Data(program.text.utf8)) as? [String: Any])
        var checks: [Int: (String, String)] = [:]
        for check in try #require(json["checks"] as? [[String: Any]]) {
            let number = try #require(check["number"] as? Int)
            checks[number] = (check["state"] as? String ?? "", check["found"] as? String ?? "")
        }
        #expect(json["exit_status"] as? Int == Int(status))
        if checks[20]?.0 == "ok" {
            let endpoint = try #require((json["endpoints"] as? [[String: Any]])?.first)
            #expect(endpoint["connect_ms"] is Double && endpoint["first_byte_ms"] is Double, "\(endpoint)")
        }
        return (status, checks, program.text)
    }

    @Test(.bug(id: 13)) func findsThatTheServerIsGoneAndThenThatTheDaemonIs() throws {
        try rig.startCollector()
        try rig.configure(source: Rig.log(drive, follow: true))
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= 724 }
        let well = try doctor()
        for number in [1, 2, 3, 20, 21, 24] { #expect(well.checks[number]?.state == "ok", "\(number): \(well.checks)") }
        #expect(well.checks.count == 28)
        #expect(well.checks[24]?.found.contains("rows") == true || well.checks[24]?.found.contains("empty") == true)
        _ = try rig.stopCollector()
        let cut = try doctor()
        #expect(cut.checks[20]?.state == "broken" && cut.checks[20]?.found.contains("connect") == true, "\(cut.checks)")
        #expect(cut.status == 1)
        #expect(daemon.isRunning)
        try daemon.stop()
        let gone = try doctor()
        #expect(gone.status == 2 && gone.checks[2]?.state == "broken", "\(gone.checks)")
        #expect(gone.checks[15]?.state == "skipped" && gone.checks[24]?.state == "ok", "\(gone.checks)")
        // A bug report is no place for positions.
        for text in [well.text, cut.text, gone.text] { #expect(!text.contains("52.5") && !text.contains("13.4")) }
    }

    /// Trips are not read for the summary.
    @Test(.bug(id: 13)) func readsEveryPageOfTheQueueWhenNoDaemonRuns() throws {
        try rig.configure(source: Rig.log(drive))
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= 724 }
        try daemon.stop()
        let sound = try doctor()
        #expect(sound.checks[24]?.state == "ok" && sound.checks[24]?.found.contains("724 rows") == true)
        try damage(table: "trip", of: rig.path("outbox.db"))
        let damaged = try doctor()
        #expect(damaged.checks[24]?.state == "broken", "\(damaged.checks)")
    }

    @Test func saysWhatIsWrongWithAConfigurationAndLeavesTheRest() throws {
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/ttyACM0")
        let broken = try doctor()
        #expect(broken.status == 2 && broken.checks[1]?.state == "broken", "\(broken.checks)")
        #expect(broken.checks[2]?.state == "skipped" && broken.checks[24]?.state == "skipped")
        let program = try rig.waypost(["doctor", "--all", "--config", rig.path("waypost.toml")])
        #expect(try program.exitStatus(within: 60) == 2)
        #expect(program.text.contains("broken: 1 configuration: "), "\(program.text)")
        #expect(program.text.contains("\n    > sudo waypost check "), "\(program.text)")
        #expect(program.text.contains("skipped: 24 queue: because of 1"), "\(program.text)")
    }
}
