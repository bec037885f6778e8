import CSQLite
import Foundation
import Glibc
import Profiles
import Testing

@testable import Queue

/// Other programs remove, replace and overwrite the files of a queue that is in use.
@Suite struct HeldQueueTests {
    private let scratch: Scratch
    /// A queue of the same name, as it was a while ago.
    private let backup: Scratch

    init() throws {
        scratch = try Scratch()
        backup = try Scratch()
    }

    enum Act: CaseIterable {
        case removeDatabase, removeLog, removeBoth, removeAll, renameDatabase
        case replaceDatabase, replaceLog, replaceBoth, replaceByEmpty
        case linkToNothing, linkToAnother, linkLog, pipe
        case copyOverDatabase, copyOverLog, copyOverBoth, truncateDatabase, truncateLog, truncateBoth, truncateAndRemove

        /// What it leaves can only be read through the connection.
        var overwrites: Bool {
            switch self {
            case .copyOverDatabase, .copyOverLog, .copyOverBoth, .truncateDatabase, .truncateLog, .truncateBoth,
                .truncateAndRemove:
                true
            default: false
            }
        }
    }

    private func carryOut(_ act: Act) {
        func remove(_ parts: String...) { for part in parts { unlink(scratch.path + part) } }
        func truncate(_ parts: String...) { for part in parts { Glibc.truncate(scratch.path + part, 0) } }
        func replace(_ parts: String...) {
            for part in parts {
                Scratch.write(Scratch.read(backup.path + part), to: scratch.path + ".restored")
                rename(scratch.path + ".restored", scratch.path + part)
            }
        }
        func copyOver(_ parts: String...) {
            for part in parts { Scratch.write(Scratch.read(backup.path + part), to: scratch.path + part) }
        }
        switch act {
        case .removeDatabase: remove("")
        case .removeLog: remove("-wal")
        case .removeBoth: remove("", "-wal")
        case .removeAll: remove("", "-wal", "-shm", "-lock")
        case .renameDatabase: rename(scratch.path, scratch.path + ".away")
        case .replaceDatabase: replace("")
        case .replaceLog: replace("-wal")
        case .replaceBoth: replace("", "-wal")
        case .replaceByEmpty:
            Scratch.write([], to: scratch.path + ".restored")
            rename(scratch.path + ".restored", scratch.path)
        case .linkToNothing:
            remove("")
            symlink(scratch.path + ".nowhere", scratch.path)
        case .linkToAnother:
            remove("")
            symlink(backup.path, scratch.path)
        case .linkLog:
            remove("-wal")
            symlink(backup.path + "-wal", scratch.path + "-wal")
        case .pipe:
            remove("")
            mkfifo(scratch.path, 0o600)
        case .copyOverDatabase: copyOver("")
        case .copyOverLog: copyOver("-wal")
        case .copyOverBoth: copyOver("", "-wal")
        case .truncateDatabase: truncate("")
        case .truncateLog: truncate("-wal")
        case .truncateBoth: truncate("", "-wal")
        case .truncateAndRemove:
            truncate("", "-wal")
            remove("", "-wal")
        }
    }

    private func open(random: [UInt8] = testUUID) throws -> Outbox {
        try Outbox(
            OutboxSettings(path: scratch.path), endpoints: [.test()], bootID: testBoot, newUUID: random,
            worksWithoutDisk: true, locksExclusively: true)
    }

    /// Files go while a commit is being written: it counts once they are back.
    @Test(arguments: [Act.removeDatabase, .removeLog, .replaceBoth, .truncateBoth])
    func rowsStayWhenFilesGoInACommit(_ act: Act) throws {
        let (outbox, batch) = try makeQueue()
        let deed = Deed { carryOut(act) }
        // SQLite has not written to the log yet.
        sqlite3_commit_hook(
            try #require(outbox.database).connection.handle,
            { deed in
                guard let deed else { return 0 }
                Unmanaged<Deed>.fromOpaque(deed).takeUnretainedValue().carryOut()
                return 0
            }, Unmanaged.passUnretained(deed).toOpaque())
        let reply = try outbox.append(15..<16)
        #expect(deed.once == nil && reply.refusal == nil && reply.replacement.count == 1)
        try expectWhole(batch, 16, "\(act)")
    }

    private final class Deed {
        private(set) var once: (() -> Void)?

        init(_ once: @escaping () -> Void) { self.once = once }

        func carryOut() {
            once?()
            once = nil
        }
    }

    /// A queue from which a batch is in flight, and another one was delivered since the backup.
    private func makeQueue() throws -> (outbox: Outbox, batch: Batch) {
        let outbox = try open()
        for number in 0..<10 { try outbox.append(number..<number + 1) }
        CrashImage(of: scratch.path).write(to: backup.path)
        try outbox.acknowledge(try #require(try outbox.form(5)))
        let batch = try #require(try outbox.form(3))
        for number in 10..<15 { try outbox.append(number..<number + 1) }
        return (outbox, batch)
    }

    /// The queue as the next process finds it, if this one is killed now: no row lost, none doubled, the same batch.
    private func expectWhole(_ batch: Batch, _ rows: Int, _ comment: Comment) throws {
        let cut = try Scratch()
        CrashImage(of: scratch.path).write(to: cut.path)
        let found = try Outbox.open(cut)
        let kept = found.newest(99)
        #expect(kept.map(\.seq) == Array(6...Int64(rows)), comment)
        #expect(kept.map(\.location) == samples(5..<rows), comment)
        #expect(found.inFlight() == [batch], comment)
        #expect(found.current.depths[0].waiting == rows - 8 && !found.current.recovery.isSalvaging, comment)
    }

    /// Before a commit, whose rows are safe as well. What others put there is the same queue: nothing of it comes again.
    @Test(arguments: Act.allCases, [false, true]) func rowsStayWhenFilesGo(_ act: Act, isShared: Bool) throws {
        // What is overwritten right after it was opened is not in memory yet.
        guard !isShared || !act.overwrites else { return }
        let (outbox, batch) = try makeQueue()
        if isShared { outbox.letReadersIn() }
        carryOut(act)
        let reply = try outbox.append(15..<16)
        #expect(reply.refusal == nil && reply.replacement.count >= 1)
        #expect(reply.replacement.words?.contains("by another program while in use") == true)
        for round in 0..<20 where outbox.current.recovery.isSalvaging {
            _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(round)])))
        }
        try expectWhole(batch, 16, "\(act)")
        #expect(try outbox.append(16..<17).replacement.count == reply.replacement.count)
        outbox.close()
    }

    /// What was not in memory when it was overwritten.
    @Test func rowsThatWereOverwrittenAreSaidToBeMissing() throws {
        let first = try open()
        for start in stride(from: 0, to: 20_000, by: 500) { try first.append(start..<start + 500) }
        first.close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let outbox = try open(random: testUUID.reversed())
        try outbox.append(20_000..<20_001)
        carryOut(.truncateDatabase)
        let reply = try outbox.append(20_001..<20_002)
        #expect(reply.replacement.count == 1 && reply.recovery.corruptRecovered == 1)
        for round in 0..<100 where outbox.current.recovery.isSalvaging {
            _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(round)])))
        }
        let (missing, words) = (outbox.current.recovery.missing, outbox.current.replacement.words ?? "")
        #expect(missing > 1000)
        #expect(words.contains("; it was written again without \(missing) locations"), "\(missing): \(words)")
    }

    /// The first file is put back before the second one is copied.
    @Test func aBackupIsCopiedFileByFile() throws {
        let (outbox, batch) = try makeQueue()
        for act in [Act.copyOverDatabase, .copyOverLog] {
            carryOut(act)
            outbox.letReadersIn()
        }
        #expect(try outbox.append(15..<16).replacement.count == 2)
        try expectWhole(batch, 16, "")
    }

    /// The disk has failed, or goes on refusing: no connection is open.
    @Test(arguments: Act.allCases.filter { !$0.overwrites && $0 != .replaceLog }, [false, true])
    func rowsStayWhenFilesGoThatAreClosed(_ act: Act, refuses: Bool) throws {
        let (outbox, batch) = try makeQueue()
        if refuses {
            try outbox.beginInMemory(OutboxError(.io, path: scratch.path, message: "no write"))
            try outbox.keep(Commit(rows: NewRow.samples(15..<16)))
        } else {
            outbox.failed(OutboxError(.io, path: scratch.path, message: "no read"))
        }
        try #require(outbox.database == nil)
        carryOut(act)
        if !refuses { try outbox.append(15..<16) }
        #expect(try outbox.append(16..<17).refusal == nil)
        for round in 0..<20 where outbox.current.recovery.isSalvaging {
            _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(round)])))
        }
        try expectWhole(batch, 17, "\(act)")
    }

    /// What cannot be written again is sent from the files that are open, and written once it can be.
    @Test(arguments: [Act.removeBoth, .copyOverBoth]) func memoryTakesOver(_ act: Act) throws {
        let (outbox, batch) = try makeQueue()
        carryOut(act)
        // Nothing can be put into the place of a directory.
        let hidden = scratch.directory + "-hidden"
        rename(scratch.directory, hidden)
        let refusal = try #require(try outbox.append(15..<16).refusal)
        #expect(refusal.cause == .cannotOpen && refusal.message.contains("cannot be written again"))
        let answer = BatchAnswer(endpoint: "main", batchID: batch.id)
        let sent = try outbox.keep(Commit(answers: [answer], forms: [.of(99)])).formed
        #expect(sent.flatMap(\.rows).map(\.location) == samples(8..<16))
        rename(hidden, scratch.directory)
        let reply = try outbox.append(16..<17)
        #expect(reply.refusal == nil && reply.hasReturned)
        #expect(outbox.inFlight() == sent)
        outbox.close()
        #expect(try Outbox.open(scratch).newest(99).map(\.location) == samples(8..<17))
    }

    /// While the disk refuses, another queue comes to its place.
    @Test func memoryReadsNoOtherQueue() throws {
        try Outbox.open(backup, rows: 9, random: testUUID.reversed()).close()
        let outbox = try open()
        try outbox.append(20..<25)
        try outbox.beginInMemory(OutboxError(.io, path: scratch.path, message: "no write"))
        carryOut(.replaceBoth)
        let kept = try outbox.keep(Commit(rows: NewRow.samples(25..<26), forms: [.of(99)]))
        #expect(kept.formed.isEmpty)
        #expect(try outbox.append(26..<27).refusal == nil)
        #expect(try outbox.form(99)?.rows.map(\.location) == samples(20..<27))
    }

    @Test func rowsOfAnotherQueueAreAdded() throws {
        let other = try Outbox.open(backup, rows: 4, random: testUUID.reversed())
        try other.acknowledge(try #require(try other.form(1)))
        other.close()
        let outbox = try open()
        try outbox.append(10..<13)
        for part in ["", "-wal"] {
            Scratch.write(Scratch.read(backup.path + part), to: scratch.path + ".restored")
            rename(scratch.path + ".restored", scratch.path + part)
        }
        for number in 13..<20 { try outbox.append(number..<number + 1) }
        let rows = try #require(try outbox.form(99)).rows
        #expect(rows.map(\.seq) == Array(1...13 as ClosedRange<Int64>))
        #expect(rows.filter { $0.seq <= 4 }.map(\.location) == samples(10..<14))
        let added = rows.map(\.location).filter { samples(1..<4).contains($0) }
        #expect(added == samples(1..<4) && rows.count == 13)
    }

    /// The process was ended after the new file was whole, and before it was in place.
    @Test(arguments: [false, true]) func aReplacementIsFinishedAtTheNextStart(isInTheWay: Bool) throws {
        try Outbox.open(backup, rows: 5).close()
        try backup.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if isInTheWay { try Outbox.open(scratch, rows: 2, random: testUUID.reversed()).close() }
        Scratch.write(Scratch.read(backup.path), to: scratch.path + ".new")
        #expect(try Outbox.open(scratch).form(99)?.rows.map(\.location) == samples(0..<5))
        #expect(access(scratch.path + ".corrupt-1", F_OK) == (isInTheWay ? 0 : -1))
    }

    /// Whoever starts a second daemon may have removed the lock file.
    @Test func twoDaemonsNeverShareAQueue() throws {
        let first = try open()
        try first.append(0..<3)
        unlink(scratch.path + "-lock")
        for isShared in [false, true] {
            if isShared { first.letReadersIn() }
            let error = #expect(throws: OutboxError.self) { try open(random: testUUID.reversed()) }
            // Of a file, and not of SQLite.
            #expect(error?.cause == .locked(pid: isShared ? getpid() : nil) && error?.code == 0)
            try first.append(isShared ? 3..<4 : 4..<5)
        }
        // With another queue the second one starts, and the first waits until it has ended.
        for part in ["", "-wal", "-shm", "-lock"] { unlink(scratch.path + part) }
        let second = try open(random: testUUID.reversed())
        try second.append(50..<52)
        let reply = try first.append(5..<6)
        #expect(reply.refusal?.cause == .locked(pid: getpid()))
        #expect(try first.keep(Commit(forms: [.of(99)])).formed.flatMap(\.rows).count == 6)
        second.close()
        #expect(try first.append(6..<7).refusal == nil)
        for number in 7..<10 { try first.append(number..<number + 1) }
        #expect(first.current.depths[0].waiting + first.current.depths[0].inFlight == 12)
    }

    /// Another process has the lock file that has taken the place of ours: it may open the queue as soon as SQLite lets it.
    @Test func readersAreKeptOutWithoutTheLockFile() throws {
        let outbox = try open()
        try outbox.append(0..<3)
        unlink(scratch.path + "-lock")
        var lock: OutboxLock? = try OutboxLock(path: scratch.path)
        weak let before = outbox.database
        outbox.letReadersIn()
        #expect(before != nil && lock?.isInPlace == true)
        lock = nil
        outbox.letReadersIn()
        #expect(before == nil && outbox.database != nil)
    }
}
