import CSQLite
import CSimDisk
import Queue
import TestSupport
import Testing

@testable import Simworld

/// The disk is one for the process: its tests run one after the other.
@Suite(.serialized) struct SimulatedDiskTests {
    private let path = "/sim/queue"

    @Test func losesNothingThatWasCommittedOverAThousandCuts() throws {
        #expect(try (0..<1000 as Range<UInt64>).first { try loses(seed: $0) } == nil)
    }

    @Test func losesNothingWithoutPowersafeOverwrite() throws {
        let seeds: Range<UInt64> = 0..<300
        #expect(try seeds.first { try loses(seed: $0) { simdisk_set(Int32(simdisk_powersafe_overwrite), 0) } } == nil)
    }

    @Test func aDiskThatLiesLosesWhatWasCommitted() throws {
        let seeds: Range<UInt64> = 0..<200
        #expect(try seeds.count { try loses(seed: $0) { simdisk_set(Int32(simdisk_lying_sync), 300_000) } } > 20)
    }

    @Test func aKillLosesNothingThatWasWritten() throws {
        simdisk_reset(1)
        let database = try #require(Handle(path))
        #expect(database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE t (a)"))
        for value in 0..<20 { #expect(database.run("INSERT INTO t VALUES (\(value))")) }
        simdisk_kill()
        #expect(!database.run("INSERT INTO t VALUES (20)"))
        #expect(try #require(Handle(path)).integer("SELECT count(*) FROM t") == 20)
    }

    @Test func afterAFailedFlushTheCacheShowsWhatIsNotOnTheMedium() throws {
        var (shown, forgotten) = (0, 0)
        for seed in 0..<50 as Range<UInt64> {
            simdisk_reset(seed)
            let database = try #require(Handle(path))
            #expect(database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a)"))
            #expect(database.run("INSERT INTO t VALUES (1)"))
            simdisk_set(Int32(simdisk_fail_sync), 1_000_000)
            #expect(!database.run("INSERT INTO t VALUES (2)"))
            simdisk_set(Int32(simdisk_fail_sync), 0)
            database.close()
            if try #require(Handle(path)).integer("SELECT count(*) FROM t") == 2 { shown += 1 }
            #expect(simdisk_forget("\(path)-wal", false) == 0)
            if try #require(Handle(path)).integer("SELECT count(*) FROM t") == 1 { forgotten += 1 }
        }
        #expect(shown == 50)
        #expect(forgotten > 20)
    }

    /// A process was killed between writing a commit and flushing it: what the next one goes by is not taken back (seed 1320101).
    @Test(.bug(id: 11)) func whatAStartHasSeenStays() throws {
        func start() throws {
            let settings = OutboxSettings(path: path)
            try Outbox(
                settings, endpoints: [], bootID: nil, newUUID: [UInt8](repeating: 7, count: 16),
                medium: SimulatedMedium { 0 }
            ).close()
        }
        for seed in 0..<30 as Range<UInt64> {
            simdisk_reset(seed)
            try start()
            simdisk_kill()
            let killed = try #require(Handle(path))
            #expect(killed.run("PRAGMA synchronous = OFF; INSERT INTO network (seq) VALUES (99)"))
            simdisk_kill()
            try start()
            simdisk_power_cut()
            #expect(try #require(Handle(path)).integer("SELECT count(*) FROM network") == 1, "seed \(seed)")
        }
    }

    @Test func aRenamingIsDurableWithItsDirectory() {
        var kept = 0
        for seed in 0..<100 as Range<UInt64> {
            simdisk_reset(seed)
            #expect(simdisk_create("/sim/a") == 0)
            #expect(simdisk_sync_directory() == 0)
            #expect(simdisk_rename("/sim/a", "/sim/b") == 0)
            simdisk_power_cut()
            #expect(simdisk_exists("/sim/a") != simdisk_exists("/sim/b"))
            if simdisk_exists("/sim/b") { kept += 1 }
        }
        #expect((20...80).contains(kept))
        simdisk_reset(1)
        #expect(simdisk_create("/sim/a") == 0)
        #expect(simdisk_sync_directory() == 0)
        simdisk_power_cut()
        #expect(simdisk_exists("/sim/a"))
    }

    @Test func aReaderSeesWhatAnotherConnectionCommitted() throws {
        simdisk_reset(1)
        let writer = try #require(Handle(path))
        let reader = try #require(Handle(path))
        #expect(writer.run("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"))
        #expect(reader.run("BEGIN"))
        #expect(reader.integer("SELECT count(*) FROM t") == 1)
        #expect(writer.run("INSERT INTO t VALUES (2)"))
        #expect(reader.integer("SELECT count(*) FROM t") == 1)
        #expect(reader.run("COMMIT"))
        #expect(reader.integer("SELECT count(*) FROM t") == 2)
        // While it is there no process has the file alone.
        let alone = try #require(Handle(path))
        #expect(reader.run("BEGIN"))
        #expect(reader.integer("SELECT count(*) FROM t") == 2)
        #expect(!alone.run("PRAGMA locking_mode = EXCLUSIVE; INSERT INTO t VALUES (3)"))
    }

    @Test func aFullDiskAndAReadOnlyOneRefuse() throws {
        simdisk_reset(1)
        let database = try #require(Handle(path))
        #expect(database.run("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"))
        simdisk_set(Int32(simdisk_capacity), 1)
        #expect(!database.run("INSERT INTO t VALUES (zeroblob(20000))"))
        #expect(sqlite3_errcode(database.handle) == SQLITE_FULL)
        #expect(simdisk_available() == 0)
        simdisk_set(Int32(simdisk_capacity), 0)
        simdisk_set(Int32(simdisk_read_only), 1)
        #expect(!database.run("INSERT INTO t VALUES (2)"))
        simdisk_set(Int32(simdisk_read_only), 0)
        database.close()
        #expect(try #require(Handle(path)).integer("SELECT count(*) FROM t") == 1)
    }

    /// Commits one row after the other until the power goes in the middle of it.
    /// - Returns: whether a commit that was confirmed is not on the medium, more than one that was not is, or it is damaged.
    private func loses(seed: UInt64, _ prepare: () -> Void = {}) throws -> Bool {
        simdisk_reset(seed)
        var random = SeededGenerator(seed: seed)
        let database = try #require(Handle(path))
        #expect(
            database.run(
                """
                PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                PRAGMA wal_autocheckpoint = 6; CREATE TABLE t (id INTEGER PRIMARY KEY, a)
                """))
        prepare()
        simdisk_set(Int32(simdisk_changes_left), Int64.random(in: 1...120, using: &random))
        var committed = 0
        while simdisk_stopped() == false, committed < 200 {
            let size = Int.random(in: 1...1500, using: &random)
            guard database.run("INSERT INTO t VALUES (\(committed), randomblob(\(size)))") else { break }
            committed += 1
        }
        simdisk_power_cut()
        database.close()
        simdisk_set(Int32(simdisk_lying_sync), 0)
        let again = try #require(Handle(path))
        guard again.text("PRAGMA integrity_check") == "ok", let count = again.integer("SELECT count(*) FROM t") else {
            return true
        }
        let hasGap = count > 0 && again.integer("SELECT max(id) FROM t") != count - 1
        return hasGap || count < committed || count > committed + 1
    }
}

/// One connection to the simulated disk.
final class Handle {
    private(set) var handle: OpaquePointer?

    init?(_ path: String) {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, simdisk_vfs) == SQLITE_OK else { return nil }
        _ = waypost_sqlite_keep_wal(handle)
    }

    deinit { close() }

    func close() {
        sqlite3_close_v2(handle)
        handle = nil
    }

    func run(_ sql: String) -> Bool { sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK }

    func integer(_ sql: String) -> Int? { first(sql) { Int(sqlite3_column_int64($0, 0)) } }

    func text(_ sql: String) -> String? { first(sql) { sqlite3_column_text($0, 0).map { String(cString: $0) } ?? "" } }

    private func first<Value>(_ sql: String, _ take: (OpaquePointer?) -> Value) -> Value? {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else { return nil }
        defer { sqlite3_finalize(statement) }
        return sqlite3_step(statement) == SQLITE_ROW ? take(statement) : nil
    }
}
