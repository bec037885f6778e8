import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// Cut power, failing media, strange files.
@Suite struct DurabilityTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// The log is written front to back, so any part of a commit may be missing when the power goes.
    @Test(arguments: [11, 12] as [UInt64])
    func storesATornCommitWholeOrNotAtAll(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let cut = try Scratch()
        let outbox = try Outbox.open(scratch)
        var last = 0
        for _ in 0..<40 {
            let count = Int.random(in: 1...30, using: &generator)
            let before = CrashImage(of: scratch.path)
            try outbox.append(last..<last + count)
            let after = CrashImage(of: scratch.path)
            defer { last += count }
            // A checkpoint in between is another matter: then the log was on the medium before.
            guard before.database == after.database else { continue }
            let first = try #require(after.firstDifference(from: before))
            for end in [first, Int.random(in: first..<after.log.count, using: &generator), after.log.count] {
                let torn = [UInt8](after.log[..<end]) + before.log.dropFirst(end)
                CrashImage(database: after.database, log: torn).write(to: cut.path)
                let found = try Outbox.open(cut)
                let rows = found.current.rows
                let isWhole = rows == last + count && found.current.lastSeq == Int64(rows)
                let isNothing = rows == last && found.current.lastSeq == Int64(rows)
                if !isWhole, end == after.log.count || !isNothing {
                    Issue.record("seed \(seed): \(rows) rows, \(end) of \(after.log.count) bytes")
                }
                found.close()
            }
        }
    }

    /// Copies of the files at any instant of a running writer: what was acknowledged before the copy is in it.
    @Test func losesNothingThatWasAcknowledgedBeforeTheCut() throws {
        let seed = testSeed(1)
        var generator = SeededGenerator(seed: seed)
        let cut = try Scratch()
        let writer = try OutboxWriter(try Outbox.open(scratch))
        var acknowledged: Int64 = 0
        var submitted = 0
        for _ in 0..<25 {
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let rows = NewRow.samples(submitted..<submitted + 10)
                submitted += 10
                writer.submit(Commit(rows: rows)) { acknowledged = (try? $0.get().lastSeq) ?? acknowledged }
            }
            writer.drain()
            let safe = acknowledged
            // The log first: a checkpoint after that only copies what the log holds already.
            let log = Scratch.read(scratch.path + "-wal")
            let database = Scratch.read(scratch.path)
            let image = CrashImage(database: database, log: log)
            guard Scratch.read(scratch.path + "-wal").starts(with: log.prefix(32)) else { continue }
            image.write(to: cut.path)
            let found = try Outbox.open(cut)
            let rows: [QueuedLocation] = try found.form(100_000)?.rows ?? []
            let areRight = rows.indices.allSatisfy { rows[$0].seq == Int64($0 + 1) && rows[$0].location == .sample($0) }
            #expect(
                areRight && Int64(rows.count) >= safe && rows.count % 10 == 0, "seed \(seed): \(rows.count) of \(safe)")
            found.close()
        }
        writer.close()
        #expect(acknowledged == Int64(submitted))
    }

    @Test func rollsBackAndGoesOnWhenTheDiskIsFull() throws {
        let outbox = try Outbox.open(scratch, rows: 10)
        let database = try #require(outbox.database)
        let pages = try database.connection.integer("PRAGMA page_count")
        try database.connection.execute("PRAGMA max_page_count = \(pages)")
        let error = #expect(throws: OutboxError.self) { try outbox.append(10..<10_000) }
        #expect(error?.cause == .full)
        #expect(outbox.current.rows == 10)
        try database.connection.execute("PRAGMA max_page_count = 1000000")
        #expect(try outbox.append(10..<10_000).lastSeq == 10_000)
        #expect(try outbox.form(2000)?.rows.map(\.location) == samples(0..<2000))
    }

    @Test func opensTheFileAgainAfterAnInputOutputError() throws {
        let outbox = try Outbox.open(scratch, rows: 10)
        try breakDescriptors(of: scratch.path + "-wal")
        let error = #expect(throws: OutboxError.self) { try outbox.append(10..<20) }
        #expect(error?.cause == .io)
        #expect(try outbox.append(10..<25).lastSeq == 25)
        #expect(try outbox.form(99)?.rows.map(\.location) == samples(0..<25))
    }

    @Test func oneReadThatSucceedsEndsARunOfThoseThatFail() throws {
        try Outbox.open(scratch, rows: 300).close()
        let connection = try Connection(path: scratch.path, access: .readOnly)
        let medium = SystemMedium()
        func read(_ page: Int64) -> (isRead: Bool, run: Int) {
            var bytes = [UInt8](repeating: 0, count: DatabaseFile.pageSize)
            let isRead = bytes.withUnsafeMutableBytes { DatabaseFile(connection).read(page, into: $0) }
            return (isRead, medium.failedReads.run)
        }
        // The same file, which cannot be read through this descriptor.
        try replaceDescriptors(of: scratch.path, by: scratch.path, O_WRONLY)
        let first = read(3)
        #expect(!first.isRead && first.run != 0)
        // Of the same 4 KiB, and of others.
        #expect(read(4) == first)
        let second = read(20)
        #expect(!second.isRead && second.run != 0 && second.run != first.run)
        try replaceDescriptors(of: scratch.path, by: scratch.path, O_RDONLY)
        #expect(read(3) == (true, second.run))
        #expect(read(20) == (true, 0))
        try replaceDescriptors(of: scratch.path, by: scratch.path, O_WRONLY)
        #expect(read(20) == (false, second.run + 1))
    }

    /// Pages that a flush failed to write look written, and are never written again unless they are changed.
    @Test func whatComesAfterAFailedFlushDoesNotRestOnIt() throws {
        let outbox = try Outbox.open(scratch, rows: 5)
        let onMedium = CrashImage(of: scratch.path)
        let refused = Commit(rows: NewRow.samples(5..<205))
        try outbox.beginInMemory(OutboxError(.io, path: "", message: ""), afterStoring: refused)
        let shown = CrashImage(of: scratch.path)
        try outbox.append(5..<205)
        try outbox.append(205..<210)
        outbox.close()

        let written = CrashImage(of: scratch.path)
        let cut = try Scratch()
        CrashImage(
            database: written.database.changed(since: shown.database, onto: onMedium.database),
            log: written.log.changed(since: shown.log, onto: onMedium.log)
        ).write(to: cut.path)
        let found = try Outbox.open(cut)
        #expect(try found.form(999)?.rows.map(\.location) == samples(0..<210))
    }

    /// A server that has stored a batch takes whatever comes under its id for a repeat.
    @Test func givesNoNumberTwiceWhenRowsAreGoneAfterAFailure() throws {
        let outbox = try Outbox.open(scratch)
        let before = CrashImage(of: scratch.path)
        try outbox.append(0..<5)
        outbox.failed(OutboxError(.io, path: "", message: ""))
        before.write(to: scratch.path)
        #expect(try outbox.append(5..<10).lastSeq == 10)
        let batch = try #require(try outbox.form(100))
        #expect(batch.rows.map(\.seq) == [6, 7, 8, 9, 10])
    }

    @Test func refusesASecondInstanceAndNamesTheFirst() throws {
        let first = try Outbox.open(scratch)
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .locked(pid: getpid()))
        first.close()
        try Outbox.open(scratch).close()
    }

    @Test func refusesANewerSchemaWithoutTouchingIt() throws {
        try Outbox.open(scratch).close()
        try scratch.execute("ALTER TABLE state ADD COLUMN later; PRAGMA user_version = 99; PRAGMA wal_checkpoint")
        let before = CrashImage(of: scratch.path)
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .otherSchema(found: 99, known: Schema.version()))
        #expect(CrashImage(of: scratch.path) == before)
        #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path) }
    }

    @Test func convertsAnOlderSchemaAndKeepsItsRows() throws {
        try Outbox.open(scratch, rows: 3).close()
        let next = Schema.migrations + ["ALTER TABLE endpoint ADD COLUMN note TEXT; UPDATE endpoint SET note = 'new'"]
        // The step after it fails, as when the power goes there: the file stays at the version before.
        let broken = next + ["CREATE TABLE extra (id INTEGER PRIMARY KEY); UPDATE nowhere SET id = 1"]
        #expect(throws: OutboxError.self) { try Database(path: scratch.path, migrations: broken) }
        let database = try Database(path: scratch.path, migrations: next)
        #expect(try database.connection.integer("PRAGMA user_version") == Int64(Schema.version(after: next)))
        #expect(try database.connection.text("SELECT note FROM endpoint") == "new")
        #expect(try database.connection.integer("SELECT sum(rows) FROM segment") == 3)
        #expect(try database.connection.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'") == 0)
    }

    @Test func refusesAFileThatIsNoQueue() throws {
        Scratch.write([], to: scratch.path)
        try scratch.execute("CREATE TABLE theirs (a)")
        #expect(#expect(throws: OutboxError.self) { try Outbox.open(scratch) }?.cause == .foreign)
        #expect(Scratch.contents(of: scratch.directory).allSatisfy { !$0.contains("corrupt") })
    }

    @Test func saysWhichDirectoryIsMissing() throws {
        let settings = OutboxSettings(path: "/nonexistent/waypost/outbox.db")
        let error = #expect(throws: OutboxError.self) {
            try Outbox(settings, endpoints: [.test()], bootID: nil, newUUID: testUUID)
        }
        #expect(error?.cause == .cannotOpen)
        #expect(error?.description.contains("/nonexistent/waypost/outbox.db") == true)
    }

    @Test func runsWithTheDurabilityItPromises() throws {
        let outbox = try Outbox.open(scratch)
        let connection = try #require(outbox.database).connection
        #expect(try connection.text("PRAGMA journal_mode") == "wal")
        let names = ["synchronous", "page_size", "secure_delete"]
        #expect(try names.map { try connection.integer("PRAGMA \($0)") } == [2, 512, 0])
        var info = stat()
        for name in ["", "-wal", "-shm", "-lock"] {
            #expect(stat(scratch.path + name, &info) == 0 && info.st_mode & 0o077 == 0, "\(name)")
        }
    }

    /// A log that is reused in place costs one flush per commit; one that is deleted or grows costs two.
    @Test func keepsTheLogSmallAndKeepsItAtClose() throws {
        let outbox = try Outbox.open(scratch)
        var largest = 0
        for round in 0..<300 {
            try outbox.append(round * 10..<round * 10 + 10)
            if let batch = try outbox.form(100) { try outbox.acknowledge(batch) }
            largest = max(largest, try size(of: "-wal"))
        }
        outbox.close()
        #expect(largest < 400_000)
        #expect(try size(of: "-wal") > 100_000)
    }

    private func size(of part: String) throws -> Int {
        var info = stat()
        try #require(stat(scratch.path + part, &info) == 0)
        return Int(info.st_size)
    }
}

extension [UInt8] {
    /// What a medium holds that had `old` and was given the pages that differ from `shown`.
    fileprivate func changed(since shown: [UInt8], onto old: [UInt8]) -> [UInt8] {
        var medium = old + [UInt8](repeating: 0, count: Swift.max(0, count - old.count))
        for start in stride(from: 0, to: count, by: 4096) {
            let page = start..<Swift.min(start + 4096, count)
            if page.upperBound > shown.count || self[page] != shown[page] {
                medium.replaceSubrange(page, with: self[page])
            }
        }
        return medium
    }
}
