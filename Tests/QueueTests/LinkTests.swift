import CSQLite
import Glibc
import Profiles
import Testing

@testable import Queue

/// The directory of a queue belongs to the user of the daemon, and others, root among them, come to look.
@Suite struct LinkTests {
    private let scratch: Scratch
    /// What a link may lead to.
    private let precious: String

    init() throws {
        scratch = try Scratch()
        precious = scratch.directory + "/precious"
        Scratch.write(Array("do not touch".utf8), to: precious)
    }

    private func isUntouched() -> Bool { Scratch.read(precious) == Array("do not touch".utf8) }

    @Test(arguments: ["", "-lock", "-wal", "-shm", "-journal"])
    func aFileOfTheQueueThatIsALinkIsNotFollowed(_ part: String) throws {
        if !part.isEmpty {
            try Outbox.open(scratch, rows: 3).close()
            unlink(scratch.path + part)
        }
        #expect(symlink(precious, scratch.path + part) == 0)
        let outbox = try? Outbox.open(scratch)
        _ = try? outbox?.append(3..<6)
        outbox?.close()
        _ = try? OutboxReader(path: scratch.path).rowCount()
        #expect(isUntouched())
    }

    /// SQLite plays a journal back, and then deletes the file that it names as that of a transaction over several databases.
    @Test func aJournalThatNamesAnotherFileDoesNotHaveItDeleted() throws {
        try Outbox.open(scratch, rows: 3).close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let pages = Scratch.read(scratch.path).count / 512
        Scratch.write(journal(naming: precious, pages: pages), to: scratch.path + "-journal")
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .cannotOpen)
        #expect(isUntouched())
        unlink(scratch.path + "-journal")
        #expect(try Outbox.open(scratch).append(3..<6).rows == 6)
    }

    private func journal(naming name: String, pages: Int) -> [UInt8] {
        func word(_ value: Int) -> [UInt8] { [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) } }
        let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
        let header = magic + word(0) + word(0) + word(pages) + word(512) + word(512)
        let sum = name.utf8.reduce(0) { $0 + Int($1) }
        return header + [UInt8](repeating: 0, count: 512 - header.count) + word(0x4000_0000 / 512 + 1)
            + Array(name.utf8) + word(name.utf8.count) + word(sum) + magic
    }

    @Test func aLinkThatLeadsNowhereMakesNothingThere() throws {
        for part in ["", "-lock"] {
            unlink(scratch.path + part)
            #expect(symlink(scratch.directory + "/made", scratch.path + part) == 0)
            #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
            #expect(access(scratch.directory + "/made", F_OK) != 0)
            unlink(scratch.path + part)
        }
    }

    @Test(arguments: [true, false]) func aLockFileWithAnotherNameOrAPipeIsLeftAlone(isPipe: Bool) throws {
        let lock = scratch.path + "-lock"
        #expect((isPipe ? mkfifo(lock, 0o600) : link(precious, lock)) == 0)
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .cannotOpen)
        #expect(isUntouched())
    }

    /// Neither the daemon nor a program that reads waits for a pipe.
    @Test(arguments: ["", "-wal", "-shm", "-journal"], [true, false])
    func aFileOfTheQueueThatIsAPipeOrAFolderIsNamed(part: String, isPipe: Bool) throws {
        let path = scratch.path + part
        try Outbox.open(scratch, rows: 3).close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        unlink(path)
        #expect((isPipe ? mkfifo(path, 0o600) : mkdir(path, 0o700)) == 0)
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .cannotOpen && error?.message.contains("\(path) is no regular file: remove it") == true)
        let other = #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path) }
        #expect(other?.cause == .cannotOpen && other?.message == error?.message)
        let blind = try Outbox.open(scratch, random: [UInt8](repeating: 9, count: 16), worksWithoutDisk: true)
        #expect(blind.refusal?.message == error?.message)
        #expect(isPipe ? unlink(path) == 0 : rmdir(path) == 0)
        try blind.append(3..<6)
        #expect(blind.refusal == nil && blind.current.rows == (part.isEmpty ? 3 : 6))
    }

    /// It may have come there after that was looked at.
    @Test func aPipeIsNotWaitedFor() throws {
        mkfifo(scratch.path, 0o600)
        Connection.wrapCalls()
        var handle: OpaquePointer?
        #expect(sqlite3_open_v2(scratch.path, &handle, SQLITE_OPEN_READONLY, nil) == SQLITE_CANTOPEN)
        sqlite3_close(handle)
    }

    @Test func theWayToTheDirectoryMayLeadOverLinks() throws {
        let way = scratch.directory + "/way"
        #expect(symlink(scratch.directory, way) == 0)
        let outbox = try Outbox(
            OutboxSettings(path: way + "/outbox.db"), endpoints: [.test()], bootID: testBoot, newUUID: testUUID)
        try outbox.append(0..<3)
        #expect(try OutboxReader(path: way + "/outbox.db").rowCount() == 3)
        #expect(try OutboxReader(path: scratch.path).rowCount() == 3)
    }

    /// A schema that does something by itself, in a file that another program wrote.
    @Test func aTriggerInTheFileDoesNotRun() throws {
        try Outbox.open(scratch, rows: 1).close()
        var handle: OpaquePointer?
        #expect(sqlite3_open(scratch.path, &handle) == SQLITE_OK)
        let trigger = "CREATE TRIGGER theirs AFTER INSERT ON segment BEGIN DELETE FROM segment; END"
        #expect(sqlite3_exec(handle, trigger, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(handle)
        let again = try Outbox.open(scratch)
        try again.append(1..<3)
        #expect(try OutboxReader(path: scratch.path).rowCount() == 3)
    }

    @Test(arguments: ["PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = ''", "ATTACH 'other.db' AS other"])
    func aStatementReachesNeitherTheSchemaNorAnotherFile(_ statement: String) throws {
        _ = try Outbox.open(scratch)
        let connection = try Connection(path: scratch.path, access: .readWrite)
        #expect(throws: OutboxError.self) { try connection.execute(statement) }
    }
}
