import Glibc
import Profiles
import Testing

@testable import Queue

@Suite struct OutboxReaderTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test(arguments: [true, false])
    func seesWhatWaits(besideARunningDaemon: Bool) throws {
        let outbox = try Outbox.open(scratch, [.test(), .test("spare", required: false)], rows: 10)
        let batch = try #require(try outbox.form(4))
        if !besideARunningDaemon { outbox.close() }
        let reader = try OutboxReader(path: scratch.path)
        #expect(try reader.name == "7f3a91c2" && reader.rowCount() == 10)
        #expect(try reader.oldest(3).map(\.seq) == [1, 2, 3])
        #expect(try reader.newest(2).map(\.seq) == [9, 10])
        #expect(try reader.newest(0).isEmpty)
        var place = QueuePlace()
        #expect(try reader.next(&place, limit: 7).map(\.seq) == [1, 2, 3, 4, 5, 6, 7])
        #expect(try reader.next(&place, limit: 2).map(\.seq) == [8, 9])
        #expect(try reader.next(&place, limit: 2).map(\.seq) == [10])
        #expect(try reader.next(&place, limit: 2).isEmpty && place.isLast && !reader.hasPassedDamage)
        let depths = try reader.depths()
        #expect(depths.map(\.endpoint) == ["main", "spare"])
        #expect(depths.map(\.waiting) == [6, 10])
        #expect(depths.map(\.inFlight) == [4, 0])
        #expect(depths.map(\.oldestSeq) == [1, 1])
        if besideARunningDaemon {
            try outbox.acknowledge(batch)
            try outbox.append(10..<11)
            #expect(try reader.depths().map(\.waiting) == [7, 11])
        }
        #expect(outbox.settings.path == scratch.path)
    }

    /// A person who asks what is in a queue gets what can be read, and learns that it is not all.
    @Test(.bug(id: 16)) func readsAroundDamage() throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 50, by: 10) { try outbox.append(start..<start + 10) }
        outbox.close()
        try scratch.execute(
            "UPDATE segment SET data = zeroblob(8) WHERE last IN (20, 50); PRAGMA wal_checkpoint(TRUNCATE)")
        let expected: [Int64] = Array(1...10) + Array(21...40)
        let reader = try OutboxReader(path: scratch.path)
        var place = QueuePlace()
        var found: [Int64] = []
        while !place.isLast { found += try reader.next(&place, limit: 15).map(\.seq) }
        #expect(found == expected && reader.hasPassedDamage)
        #expect(try OutboxReader(path: scratch.path).oldest(100).map(\.seq) == found)
        let newest = try OutboxReader(path: scratch.path)
        #expect(try newest.newest(25).map(\.seq) == found.suffix(25) && newest.hasPassedDamage)
        let sound = try OutboxReader(path: scratch.path)
        #expect(try sound.oldest(10).count == 10 && !sound.hasPassedDamage)
    }

    @Test func takesAFileThatWasCutOffWhileItWasGivenItsLogForAnEmptyQueue() throws {
        // As a kill between the writing of the header and the end of that transaction leaves it.
        let young = scratch.path + "-young"
        close(creat(young, 0o600))
        let connection = try Connection(path: young, access: .readWrite)
        try connection.execute("PRAGMA page_size = 512; PRAGMA cache_size = 1; CREATE TABLE t (x); BEGIN IMMEDIATE")
        for _ in 0..<200 { try connection.execute("INSERT INTO t VALUES (randomblob(400))") }
        for suffix in ["", "-journal"] { Scratch.write(Scratch.read(young + suffix), to: scratch.path + suffix) }
        try connection.execute("ROLLBACK")
        #expect(try OutboxReader(path: scratch.path).rowCount() == 0)
        try #require(access(scratch.path + "-journal", F_OK) == 0)
    }

    @Test func takesAFileThatWasCutOffWhileItWasMadeForAnEmptyQueue() throws {
        close(creat(scratch.path, 0o600))
        let reader = try OutboxReader(path: scratch.path)
        #expect(try reader.rowCount() == 0)
        #expect(try reader.oldest(5).isEmpty)
        #expect(try reader.newest(5).isEmpty)
        #expect(try reader.depths().isEmpty)
    }

    @Test func doesNotMakeAQueueOfItsOwn() throws {
        let error = #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path) }
        #expect(error?.cause == .cannotOpen)
        #expect(Scratch.contents(of: scratch.directory).isEmpty)
    }

    @Test func leavesAClosedQueueAsItIs() throws {
        try Outbox.open(scratch, rows: 5).close()
        let before = CrashImage(of: scratch.path)
        _ = try OutboxReader(path: scratch.path).depths()
        #expect(CrashImage(of: scratch.path) == before)
        #expect(try Outbox.open(scratch).current.rows == 5)
    }
}
