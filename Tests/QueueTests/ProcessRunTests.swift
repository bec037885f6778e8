import Profiles
import Testing

@testable import Queue

@Suite struct ProcessRunTests {
    /// A card that may only be read for weeks: every start begins at the same number.
    @Test(.bug(id: 11)) func livesWithoutADiskAreFarApart() {
        let leaps = (0..<64).map { number in
            var run = ProcessRun(bootID: nil, random: [1, 2, 3, 4, 5, 6, UInt8(number * 4), 0])
            run.beginInMemory(isStart: true, above: 0)
            return run.leap
        }
        #expect(zip(leaps, leaps.dropFirst()).allSatisfy { $1 - $0 > 50_000_000 })
        #expect(leaps.allSatisfy { (10_000..<1 << 33).contains($0) })
    }

    /// The disk may have stored the rows of the commit that it calls failed, in the quarantine too (seed 870497).
    @Test(.bug(id: 11)) func theRowsOfACommitThatFailsKeepTheirNumbers() throws {
        try Outbox.open(scratch).append(0..<5)
        let outbox = try Outbox.open(scratch, worksWithoutDisk: true)
        try outbox.beginInMemory(OutboxError(.io, path: scratch.path, message: "made up"))
        let commit = Commit(rows: [NewRow(.sample(5))])
        #expect(try outbox.keep(commit).lastSeq == 5 + testLeap + 1)
        // The next run begins here as well, should the disk take none of this (seed 1116196).
        let far = try outbox.keep(commit).lastSeq
        #expect(far > 1 << 20)
        #expect(try outbox.keep(commit).lastSeq == far + 1)
    }

    /// The next run does not know how many numbers this one gives to rows that never come to the disk.
    @Test(.bug(id: 11)) func aLifeThatLosesItsDiskLeavesTheNextItsNumbers() throws {
        let outbox = try Outbox.open(scratch, rows: 5, worksWithoutDisk: true)
        try outbox.beginInMemory(OutboxError(.readOnly, path: scratch.path, message: "made up"))
        func keep(_ count: Int) throws -> Int64 {
            try outbox.keep(Commit(rows: NewRow.samples(0..<count))).lastSeq
        }
        #expect(try keep(5000) == 5005)
        #expect(try keep(5000) == 10_005)
        let far = try keep(1)
        #expect(far > 1 << 21)
        #expect(try keep(5000) == far + 5000)
    }

    /// Two of them may form other batches of the same rows, after one that has a high generation already (seed 900724).
    @Test(.bug(id: 11)) func batchesOfTwoLivesWithoutADiskHaveOtherGenerations() {
        let lives = [UInt8(3), 4].map { number in
            var run = ProcessRun(bootID: nil, random: [0, 0, 0, 0, 0, number, 0, 0])
            run.beginInMemory(isStart: false, above: 9_878_129)
            return run.memoryGeneration
        }
        #expect(lives[0] != lives[1] && lives.allSatisfy { $0 > 10_000_000 })
    }

    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func numbersLeapAtTheFirstRowOfEachLife() throws {
        for _ in 0..<3 {
            let outbox = try Outbox.open(scratch, rows: 2)
            try outbox.append(2..<3)
            outbox.close()
        }
        let outbox = try Outbox.open(scratch)
        let (second, third) = (3 + testLeap, 6 + 2 * testLeap)
        #expect(try outbox.form(9)?.rows.map(\.seq) == [1, 2, 3] + (second + 1...second + 3) + (third + 1...third + 3))
        #expect(outbox.current.rows == 9)
    }

    /// Not even once the queue was empty, and none is given twice.
    @Test func aLifeWithoutRowsTakesNoNumbers() throws {
        try Outbox.open(scratch).append(0..<2)
        for boot in ["second", "third", "fourth"] {
            let outbox = try Outbox.open(scratch, bootID: boot)
            if let batch = try outbox.form(1) { try outbox.acknowledge(batch) }
            #expect(outbox.current.lastSeq == 2)
            outbox.close()
        }
        #expect(try Outbox.open(scratch).append(2..<3).lastSeq == 3 + testLeap)
    }

    /// An older copy of the queue is put back, or its log is deleted, while the host runs on.
    @Test func noNumberIsGivenTwiceWhenACopyIsPutBack() throws {
        try Outbox.open(scratch, rows: 5).close()
        let image = CrashImage(of: scratch.path)
        let lost = try Outbox.open(scratch)
        let given = try lost.append(5..<10).lastSeq
        lost.close()
        image.write(to: scratch.path)
        let outbox = try Outbox.open(scratch, random: [0x11] + testUUID.dropFirst())
        let reply = try outbox.append(10..<15)
        #expect(!(given - 4...given).overlaps(reply.lastSeq - 4...reply.lastSeq))
    }

    /// Flash that confirms what it does not keep: after each boot the queue is what it was before.
    @Test func noNumberIsGivenTwiceWhenWholeBootsAreLost() throws {
        try Outbox.open(scratch, rows: 5).close()
        let image = CrashImage(of: scratch.path)
        var given: Set<Int64> = [1, 2, 3, 4, 5]
        for run in 0..<20 {
            image.write(to: scratch.path)
            let outbox = try Outbox.open(
                scratch, bootID: "boot \(run)", random: [UInt8(run * 11), 0x50] + testUUID.dropFirst(2))
            let reply = try outbox.append(0..<600)
            outbox.close()
            let seqs = reply.lastSeq - 599...reply.lastSeq
            #expect(given.isDisjoint(with: seqs), "boot \(run)")
            given.formUnion(seqs)
        }
    }

    @Test func forgetsBootsWhoseRowsHaveLeft() throws {
        for boot in 0..<100 {
            let outbox = try Outbox.open(scratch, rows: 1, bootID: "boot \(boot)")
            if boot > 0, let batch = try outbox.form(1) { try outbox.acknowledge(batch) }
            outbox.close()
        }
        let rows = try #require(try Outbox.open(scratch, bootID: nil).form(9)?.rows)
        #expect(rows.map(\.bootID) == ["boot 99"])
        let connection = try Connection(path: scratch.path, access: .readOnly)
        let known = try connection.integer("SELECT count(*) FROM boot")
        #expect((1...70).contains(known))
    }
}
