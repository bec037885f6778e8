import Delivery
import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// The queue while the disk refuses, and what the disk takes over afterwards.
@Suite struct MemoryQueueTests {
    private let scratch: Scratch
    private static let error = OutboxError(.io, path: "/outbox.db", message: "made up")

    init() throws { scratch = try Scratch() }

    private func open(
        _ endpoints: [EndpointSettings] = [.test()], rows: Int = 0, random: [UInt8] = testUUID
    ) throws -> Outbox {
        try Outbox.open(scratch, endpoints, rows: rows, random: random, worksWithoutDisk: true)
    }

    private func form(_ outbox: Outbox, _ limit: Int, endpoint: String = "main") throws -> [Batch] {
        try outbox.keep(Commit(forms: [.of(limit, endpoint)])).formed
    }

    private func acknowledge(_ outbox: Outbox, _ batch: Batch, _ how: BatchAnswer.Outcome = .accepted) throws
        -> CommitReply
    {
        try outbox.keep(Commit(answers: [BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how)]))
    }

    @Test func aCommitThatTheDiskRefusesIsCarriedOutInMemory() throws {
        let outbox = try open(rows: 10)
        try breakDescriptors(of: scratch.path + "-wal")
        let request = FormRequest.of(20)
        let reply = try outbox.commit(Commit(rows: NewRow.samples(10..<15), forms: [request]))
        #expect(reply.refusal?.cause == .io)
        #expect(reply.unstored == 5 && reply.lastSeq == 15 && reply.rows == 15)
        // The batch of the commit that failed is there, with what is on disk and what is not.
        let batch = try #require(reply.formed.first)
        #expect(batch.rows.map(\.location) == samples(0..<15))
        #expect(reply.depths[0].waiting == 0 && reply.depths[0].inFlight == 15)
        // The disk is back.
        let stored = try outbox.append(15..<16)
        #expect(stored.refusal == nil && stored.unstored == 0 && stored.rows == 16)
        #expect(outbox.inFlight() == [batch])
        outbox.close()
        let second = try open()
        #expect(second.inFlight() == [batch])
        #expect(try second.acknowledge(batch).rows == 1)
    }

    @Test func theDiskTakesOverWhatBecameOfTheRows() throws {
        let outbox = try open(EndpointSettings.both, rows: 10)
        try outbox.beginInMemory(Self.error)
        try outbox.keep(Commit(rows: NewRow.samples(10..<20)))
        for _ in 0..<3 {
            let batch = try #require(try form(outbox, 4, endpoint: "a").first)
            _ = try acknowledge(outbox, batch)
        }
        let open = try #require(try form(outbox, 4, endpoint: "a").first)
        #expect(open.rows.map(\.seq) == [13, 14, 15, 16])
        let other = try #require(try form(outbox, 7, endpoint: "b").first)
        #expect(try acknowledge(outbox, other).depths.map(\.ackedThrough) == [12, 7])
        let reply = try outbox.commit(Commit(rows: NewRow.samples(20..<21)))
        #expect(reply.refusal == nil)
        #expect(reply.depths.map(\.waiting) == [5, 14])
        #expect(reply.rows == 14)
        outbox.close()
        let second = try self.open(EndpointSettings.both)
        #expect(second.inFlight() == [open])
        #expect(try second.form(99, endpoint: "b")?.rows.map(\.location) == samples(7..<21))
    }

    /// Another run does not know what this one sent, so that its batches have other ids.
    @Test func batchesThatNoDiskKnowsHaveIdsOfTheirOwn() throws {
        let outbox = try open(rows: 4)
        try outbox.beginInMemory(Self.error)
        let sent = try #require(try form(outbox, 4).first)
        try outbox.keep(Commit(rows: NewRow.samples(4..<8)))
        outbox.close()
        let second = try open(random: testUUID.reversed())
        let again = try #require(try second.form(4))
        #expect(again.rows == sent.rows && again.id != sent.id)
        // The rows that were in memory are lost, their numbers are not given again.
        #expect(try second.append(9..<10).lastSeq > 10_000)
    }

    /// Found by the simulated world: a server that had seen the id would have confirmed rows that it never had.
    @Test(.bug(id: 11)) func whatIsLeftOfABatchHasAnIDOfItsOwnWhileTheDiskRefuses() throws {
        let first = try open(rows: 4)
        let batch = try #require(try first.form(4))
        try first.beginInMemory(Self.error)
        _ = try acknowledge(first, batch, .partly(refused: [:], again: [1, 4]))
        let inMemory = try #require(first.inFlight().first)
        // It ends before the disk stores it.
        first.close()
        let second = try open(random: testUUID.reversed())
        try second.acknowledge(batch, .partly(refused: [:], again: [1, 2, 4]))
        let onDisk = try #require(second.inFlight().first)
        #expect(inMemory.rows.map(\.seq) == [1, 4] && onDisk.rows.map(\.seq) == [1, 2, 4])
        #expect(inMemory.id != onDisk.id)
    }

    @Test func namesThatAreNewWhileTheDiskRefusesStayThoseOfTheirRows() throws {
        let outbox = try open(rows: 2)
        try outbox.beginInMemory(Self.error)
        let trackables = ["van-9", "van-7", "van-8"]
        let new = trackables.enumerated().map { Location.sample(2 + $0.offset, trackable: $0.element) }
        try outbox.keep(Commit(rows: new.map { NewRow($0) }))
        try outbox.append(5..<6)
        let rows = try #require(try outbox.form(9)?.rows)
        #expect(rows.map(\.location) == [.sample(0), .sample(1)] + new + [.sample(5)])
        #expect(Set(rows.map(\.bootID)) == [testBoot])
    }

    @Test func rowsThatAllHaveNeverComeToDisk() throws {
        let outbox = try open()
        try outbox.beginInMemory(Self.error)
        try outbox.keep(Commit(rows: NewRow.samples(0..<6)))
        let batch = try #require(try form(outbox, 4).first)
        let reply = try acknowledge(outbox, batch)
        #expect(reply.unstored == 2 && reply.sentUnstored == 4)
        #expect(try outbox.append(6..<7).rows == 3)
    }

    /// When rows were recorded is known on both sides of a disk that refuses and comes back.
    @Test func agesAreThoseOfTheBootClockOverAnEpisode() throws {
        let outbox = try Outbox.open(scratch, maxAge: .seconds(1000), worksWithoutDisk: true)
        func rows(_ numbers: Range<Int>) -> [NewRow] {
            numbers.map { NewRow(.sample($0), recordedAt: EventTime(nanoseconds: Int64($0) * 1_000_000_000)) }
        }
        func commit(_ rows: [NewRow], now: Int64, asksDisk: Bool = true) throws -> Int {
            let ages = AgeReference(
                now: EventTime(nanoseconds: now * 1_000_000_000), started: .zero,
                trusted: UTCTime(milliseconds: Location.sample(0).time.milliseconds + 86_400_000 * 4000))
            var commit = Commit(rows: rows, parts: .init(tracker: [1]), ages: ages)
            commit.asksDisk = asksDisk
            return try outbox.commit(commit).dropped.expired
        }
        #expect(try commit(rows(0..<500), now: 500) == 0)
        try outbox.beginInMemory(Self.error)
        #expect(try commit(rows(500..<1000), now: 1000, asksDisk: false) == 0)
        #expect(try commit(rows(1000..<1001), now: 1000) == 0)
        #expect(try commit([], now: 1100) == 100)
        // One look takes no more than half.
        #expect(try (400...451).contains(commit([], now: 1600)))
    }

    /// What is on a disk that refuses from the start is of an earlier process, also once it is back.
    @Test(arguments: [true, false])
    func rowsOfBeforeTheStartAgeByTheirDate(isReadable: Bool) throws {
        try open(rows: 10).close()
        var blocker: Connection?
        if isReadable {
            blocker = try Connection(path: scratch.path, access: .readWrite)
            try blocker?.execute("BEGIN IMMEDIATE")
        } else {
            scratch.hide(isBlocked: true)
        }
        let outbox = try Outbox.open(
            scratch, maxAge: .seconds(1000), random: testUUID.reversed(), worksWithoutDisk: true)
        #expect(outbox.refusal != nil)
        try outbox.keep(Commit(rows: [NewRow(.sample(10), recordedAt: .zero)]))
        if isReadable { try blocker?.execute("ROLLBACK") } else { scratch.show() }
        let trusted = UTCTime(milliseconds: Location.sample(3).time.milliseconds + 1_000_000)
        let ages = AgeReference(now: .zero, started: .zero, trusted: trusted)
        #expect(try outbox.commit(Commit(parts: .init(tracker: [1]), ages: ages)).refusal == nil)
        #expect(try outbox.commit(Commit(parts: .init(tracker: [2]), ages: ages)).dropped.expired == 3)
    }

    @Test func refusedRowsGoToTheQuarantineOfTheDisk() throws {
        let outbox = try open(rows: 3)
        try outbox.beginInMemory(Self.error)
        try outbox.keep(Commit(rows: NewRow.samples(3..<6)))
        let batch = try #require(try form(outbox, 6).first)
        let refusal = Refusal(reason: "bad", status: 422, reply: [1], attempts: 2)
        let reply = try acknowledge(outbox, batch, .partly(refused: [2: refusal, 5: refusal], again: [6]))
        #expect(reply.depths[0].quarantined == 2)
        try outbox.append(6..<7)
        let reader = try OutboxReader(path: scratch.path)
        let records = try reader.quarantined(limit: 9)
        #expect(records.map(\.row.location) == [.sample(1), .sample(4)])
        #expect(records.map(\.refusal) == [refusal, refusal])
        #expect(try reader.oldest(9).map(\.seq) == [6, 7])
        #expect(outbox.current.depths[0].quarantined == 2)
    }

    /// A commit that was stored, although it failed, had set rows aside that memory gave up later (seed 1313906).
    @Test(.bug(id: 11)) func whatMemoryGaveUpIsCountedOnce() throws {
        var settings = EndpointSettings.test()
        settings.onCollision = .quarantine
        let outbox = try Outbox.open(scratch, [settings], rows: 5, maxRecords: 5, worksWithoutDisk: true)
        let taken = try outbox.commit(Commit(states: [.init(endpoint: "main", state: .taken)]))
        #expect(taken.depths[0].quarantined == 5)
        try outbox.beginInMemory(Self.error, afterStoring: Commit(rows: NewRow.samples(5..<8)))
        try outbox.keep(Commit(rows: NewRow.samples(5..<8)))
        try outbox.keep(Commit(rows: NewRow.samples(8..<14)))
        let depth = try outbox.append(14..<15).depths[0]
        #expect(depth.quarantined + depth.waiting + (depth.finishedUnsent["evicted"] ?? 0) == 15)
    }

    /// What rows have in tables of their own is replaced with them.
    @Test func whatADiskHasStoredAlthoughItFailedIsNoObstacle() throws {
        var around = Location.sample(1)
        around.network = NetworkContext(ssid: "yard", bssid: nil, ip: nil)
        var change = Location.sample(2, event: .settings)
        change.removePlace()
        change.settings = "{}"
        let rows = [NewRow(around), NewRow(change)]
        let outbox = try open()
        try outbox.beginInMemory(Self.error, afterStoring: Commit(rows: rows))
        try outbox.keep(Commit(rows: rows))
        let reply = try outbox.append(3..<4)
        #expect(reply.refusal == nil && reply.unstored == 0 && reply.rows == 3)
        outbox.close()
        #expect(try open().form(9)?.rows.map(\.location) == [around, change, .sample(3)])
    }

    /// A flush that failed may have stored the commit all the same.
    @Test(.bug(id: 11)) func aRecordThatTheDiskHasAlreadyCountsOnce() throws {
        let answer = BatchAnswer.Outcome.partly(refused: [2: Refusal(reason: "bad")], again: [])
        let first = try open(rows: 3)
        let batch = try #require(try first.form(3))
        first.close()
        let stored = try scratch.image(after: {
            let second = try open()
            try second.acknowledge(batch, answer)
            return second
        })
        let outbox = try open()
        try outbox.beginInMemory(Self.error)
        #expect(try acknowledge(outbox, batch, answer).depths[0].quarantined == 1)
        stored.write(to: scratch.path)
        #expect(try outbox.append(3..<4).depths[0].quarantined == 1)
        #expect(try OutboxReader(path: scratch.path).quarantined(limit: 9).count == 1)
    }

    /// What a commit that failed and was stored all the same did with the rows of a taken asset.
    @Test(.bug(id: 11), arguments: [0, 2]) func whatWasSetAsideAlreadyDoesNotWaitAsWell(inFlight: Int) throws {
        var settings = EndpointSettings.test()
        settings.onCollision = .quarantine
        let taken = Commit(states: [.init(endpoint: "main", state: .taken)])
        try open([settings], rows: 3).close()
        let stored = try scratch.image(after: {
            let second = try open([settings])
            _ = try second.commit(taken)
            return second
        })
        let outbox = try open([settings])
        try outbox.beginInMemory(Self.error)
        if inFlight > 0 { _ = try form(outbox, inFlight) }
        #expect(try outbox.keep(taken).depths[0].waiting == 3 - inFlight)
        stored.write(to: scratch.path)
        let depth = try outbox.append(3..<4).depths[0]
        #expect(depth.waiting == 0 && depth.inFlight == 0 && depth.quarantined == 4)
        #expect(depth.finishedUnsent["evicted"] == nil)
    }

    /// Another file takes its place, in which its rows are not.
    @Test(.bug(id: 11)) func aBatchOnAFileThatTurnsOutDamagedIsKept() throws {
        let outbox = try open(rows: 5)
        let batch = try #require(try outbox.form(5))
        try outbox.beginInMemory(Self.error)
        try outbox.keep(Commit(rows: NewRow.samples(5..<6)))
        unlink(scratch.path + "-wal")
        Scratch.write([UInt8](repeating: 0x41, count: 5000), to: scratch.path)
        let reply = try outbox.append(6..<7)
        #expect(reply.refusal == nil && reply.recovery.corruptRecovered == 1)
        #expect(reply.dissolved == [])
        #expect(reply.depths[0].inFlight == 5 && reply.depths[0].waiting == 2)
        #expect(try outbox.form(5) == batch)
    }

    @Test func anAnswerAboutTheQuarantineIsPassedOnToTheDisk() throws {
        let outbox = try open()
        let retried = try outbox.retried()
        try outbox.beginInMemory(Self.error)
        #expect(try form(outbox, 9) == [retried])
        let depth = try acknowledge(outbox, retried).depths[0]
        #expect(depth.inFlight == 0 && depth.quarantined == 0)
        #expect(try outbox.append(2..<3).depths[0].quarantined == 0)
        #expect(try OutboxReader(path: scratch.path).quarantined(limit: 9).isEmpty)
    }

    /// They are the endpoint's own, and cannot go back to where they were.
    @Test(.bug(id: 11)) func recordsOfTheQuarantineHoldNothingUpThatGoesAnotherWay() throws {
        let outbox = try open([.test(), .spare])
        let retried = try outbox.retried()
        try outbox.beginInMemory(Self.error)
        let request = FormRequest.of(9, route: "spare")
        #expect(try outbox.keep(Commit(rows: NewRow.samples(2..<4), forms: [request])).formed.map(\.rows.count) == [2])
        #expect(try form(outbox, 0).contains(retried))
        // With the disk there is a quarantine again.
        _ = try outbox.commit(Commit())
        let reply = try outbox.commit(Commit(forms: [request]))
        #expect(reply.formed.map(\.endpoint) == ["spare"])
        #expect(reply.depths[0].waiting == 2 && reply.depths[0].inFlight == 2)
    }

    /// The records are on disk, where they are split later; nothing new waits for that.
    @Test(.bug(id: 11)) func aSplitOfTheQuarantineHoldsNothingBack() throws {
        let outbox = try open()
        let retried = try outbox.retried()
        try outbox.beginInMemory(Self.error)
        _ = try acknowledge(outbox, retried, .split)
        try outbox.keep(Commit(rows: NewRow.samples(2..<3)))
        let new = try #require(try form(outbox, 9).first)
        #expect(new.rows.map(\.location) == [.sample(2)])
        _ = try acknowledge(outbox, new)
        try outbox.append(3..<4)
        #expect(outbox.inFlight().map(\.rows.count) == [1, 1])
    }

    @Test(.bug(id: 11)) func aBatchOfAnotherThatCannotBeReadStays() throws {
        let first = try open([.test(), .spare], rows: 3)
        let request = FormRequest.of(2, route: "spare")
        let routed = try #require(try first.commit(Commit(forms: [request])).formed.first)
        first.close()
        let outbox = try open([.test(), .spare])
        try outbox.beginInMemory(Self.error)
        scratch.hide()
        #expect(try form(outbox, 9).isEmpty)
        #expect(outbox.current.depths[0].inFlight == 2 && outbox.current.depths[0].waiting == 1)
        scratch.show()
        try outbox.append(3..<4)
        #expect(outbox.inFlight() == [routed])
    }

    @Test(.bug(id: 11)) func batchesOfTheQuarantineAreInFlightAgainOnceTheDiskIsBack() throws {
        let first = try open()
        let retried = try first.retried()
        first.close()
        let outbox = try open()
        try outbox.beginInMemory(Self.error)
        let kept = try outbox.keep(Commit(rows: NewRow.samples(2..<3)))
        #expect(!kept.hasReturned)
        let reply = try outbox.append(3..<4)
        #expect(reply.hasReturned && reply.depths[0].inFlight == 2)
        #expect(outbox.inFlight() == [retried])
    }

    /// A body bears the newest row of the queue, which may lie on a disk that cannot be read.
    @Test(.bug(id: 11)) func aPartBearsTheNewestRowOfItsBatch() throws {
        var settings = EndpointSettings.test()
        settings.profile.usesNewest = true
        let outbox = try open([settings], rows: 9)
        let batch = try #require(try outbox.form(4))
        #expect(batch.newest != nil)
        try outbox.beginInMemory(Self.error)
        scratch.hide()
        let split = Commit(
            rows: NewRow.samples(9..<10), answers: [BatchAnswer(endpoint: "main", batchID: batch.id, outcome: .split)],
            forms: [.of(4)])
        let reply = try outbox.keep(split)
        #expect(reply.formed.map(\.rows.count) == [2, 2])
        #expect(reply.formed.allSatisfy { $0.newest == batch.newest })
        #expect(reply.depths[0].inFlight == 4 && reply.depths[0].waiting == 6)
    }

    /// A batch whose rows lie on a disk that cannot be read holds back what memory has, and is the same one afterwards.
    @Test(.bug(id: 11)) func aBatchThatCannotBeReadWaits() throws {
        let first = try open(rows: 8)
        let whole = try #require(try first.form(8))
        first.close()
        let outbox = try open()
        try outbox.beginInMemory(Self.error)
        scratch.hide()
        #expect(try outbox.keep(Commit(rows: NewRow.samples(8..<9))).depths[0].inFlight == 8)
        #expect(try form(outbox, 8).isEmpty)
        // Not even what is formed to try the server goes before it.
        let probe = FormRequest(endpoint: "main", limit: 1, isProbe: true, sentMs: nil)
        let reply = try outbox.keep(Commit(forms: [probe]))
        #expect(reply.formed.isEmpty && reply.depths[0].inFlight == 9)
        scratch.show()
        #expect(try form(outbox, 8).map(\.rows.count) == [8, 1])
        #expect(outbox.inFlight().first == whole)
    }

    /// What is new is kept, and other endpoints go on.
    @Test(.bug(id: 11)) func rowsThatCannotBeReadFailNoCommit() throws {
        let outbox = try open(EndpointSettings.both, rows: 2)
        let batch = try #require(try outbox.form(9, endpoint: "b"))
        _ = try outbox.commit(Commit(rows: [.crossing(2, "depot", .enter)]))
        try outbox.beginInMemory(Self.error)
        try scratch.execute("DROP TABLE geofence")
        let answer = BatchAnswer(endpoint: "b", batchID: batch.id, outcome: .accepted)
        let requests = ["a", "b"].map { FormRequest.of(9, $0) }
        let reply = try outbox.keep(Commit(rows: NewRow.samples(3..<4), answers: [answer], forms: requests))
        #expect(reply.formed.isEmpty && reply.unstored == 1)
        #expect(reply.depths.map(\.waiting) == [4, 2] && reply.depths.map(\.inFlight) == [0, 0])
    }

    /// What a server refused before is not what a failed commit has set aside.
    @Test(.bug(id: 11)) func rowsThatAreMissingCountAsEvicted() throws {
        let outbox = try open(rows: 10)
        let batch = try #require(try outbox.form(10))
        try outbox.acknowledge(batch, .partly(refused: [3: Refusal(reason: "bad")], again: [2, 5]))
        try outbox.beginInMemory(Self.error)
        try scratch.removeRows([2, 5])
        let depth = try outbox.append(10..<11).depths[0]
        #expect(depth.inFlight == 0 && depth.waiting == 1 && depth.quarantined == 1)
        #expect(depth.finishedUnsent["evicted"] == 2)
    }

    @Test func ordersWaitForTheDisk() throws {
        let outbox = try open(rows: 2)
        try outbox.beginInMemory(Self.error)
        let reply = try outbox.keep(Commit(orders: [.clear(endpoint: "main")]))
        #expect(reply.orders == [.refused(Self.error.description)])
        #expect(reply.depths[0].waiting == 2)
    }

    @Test func memoryIsBounded() throws {
        let outbox = try open()
        try outbox.beginInMemory(Self.error)
        #expect(try outbox.keep(Commit(rows: NewRow.samples(0..<9_990))).dropped == DropCounts())
        let reply = try outbox.keep(Commit(rows: NewRow.samples(9_990..<10_100)))
        #expect(reply.unstored == 10_000 && reply.dropped.oldest >= 100)
        #expect(reply.depths[0].finishedUnsent["evicted"] ?? 0 >= 100)
        let stored = try outbox.append(10_100..<10_101)
        #expect(stored.refusal == nil && stored.rows == 10_000)
    }

    /// No one can open the disk at first, and holds another queue.
    @Test func aQueueThatIsFoundLateGetsTheRows() throws {
        try open(EndpointSettings.both, rows: 3).close()
        scratch.hide(isBlocked: true)
        let outbox = try open(EndpointSettings.both, random: testUUID.reversed())
        #expect(outbox.refusal != nil && outbox.current.rows == 0)
        try outbox.keep(Commit(rows: NewRow.samples(10..<14)))
        let sent = try #require(try form(outbox, 2, endpoint: "a").first)
        #expect(sent.outbox != testUUID)
        _ = try acknowledge(outbox, sent)
        let again = try #require(try form(outbox, 2, endpoint: "a").first)
        scratch.show()
        let reply = try outbox.append(14..<15)
        #expect(reply.refusal == nil && reply.wasFoundLate)
        #expect(outbox.uuid == testUUID)
        let numbers = try outbox.form(99, endpoint: "b")?.rows.map(\.location)
        #expect(numbers == samples(0, 1, 2, 10, 11, 12, 13, 14))
        // The answer to a batch that was on its way comes after its rows have got other numbers.
        #expect(try outbox.acknowledge(again).depths[0].waiting == 4)
        let rest = try outbox.form(99, endpoint: "a")?.rows.map(\.location)
        #expect(rest == samples(0, 1, 2, 14))
    }

    /// The commit that appended the rows in memory was stored, although the disk called it failed. Some were sent since.
    @Test(.bug(id: 11)) func aQueueThatIsFoundLateGetsTheRowsOnce() throws {
        let settings = [EndpointSettings.test("a"), .test("b")]
        try open(settings, rows: 3).close()
        let before = CrashImage(of: scratch.path)

        func startBlind() throws -> Outbox {
            for part in ["", "-wal", "-shm"] { unlink(scratch.path + part) }
            mkdir(scratch.path, 0o700)
            let outbox = try open(settings, random: testUUID.reversed())
            try outbox.keep(Commit(rows: NewRow.samples(10..<13)))
            rmdir(scratch.path)
            before.write(to: scratch.path)
            return outbox
        }
        let first = try startBlind()
        #expect(try first.append(13..<14).wasFoundLate)
        first.close()
        let stored = CrashImage(of: scratch.path)

        let outbox = try startBlind()
        let refusal = "CREATE UNIQUE INDEX refusal ON segment (rows > 0)"
        try scratch.execute(refusal)
        #expect(try outbox.append(13..<14).refusal != nil)
        _ = try acknowledge(outbox, try #require(try form(outbox, 2, endpoint: "a").first))
        stored.write(to: scratch.path)
        #expect(try outbox.append(14..<15).wasFoundLate)
        let a = try outbox.form(99, endpoint: "a")?.rows.map(\.location)
        #expect(a == samples(0, 1, 2, 12, 13, 14))
        let b = try outbox.form(99, endpoint: "b")?.rows.map(\.location)
        #expect(b == samples(0, 1, 2, 10, 11, 12, 13, 14))
        #expect(outbox.current.rows == 8)
    }

    /// Rows that a server refused one after the other do not go out again, and others have them in their order.
    @Test func aQueueThatIsFoundLateGetsWhatAServerRefused() throws {
        try open(EndpointSettings.both, rows: 3).close()
        scratch.hide(isBlocked: true)
        let outbox = try open(EndpointSettings.both, random: testUUID.reversed())
        try outbox.keep(Commit(rows: NewRow.samples(10..<14)))
        let batch = try #require(try form(outbox, 3, endpoint: "a").first)
        let seqs = batch.rows.map(\.seq)
        let bad = BatchAnswer.Outcome.partly(refused: [seqs[0]: Refusal(reason: "bad")], again: [seqs[1]])
        var depth = try acknowledge(outbox, batch, bad).depths[0]
        #expect(depth.quarantined == 1 && depth.inFlight == 1 && depth.waiting == 1)
        let alone = try #require(outbox.inFlight().first)
        depth = try acknowledge(outbox, alone, .refused(Refusal(reason: "worse"))).depths[0]
        #expect(depth.quarantined == 2 && depth.inFlight == 0 && depth.waiting == 1)
        scratch.show()
        let reply = try outbox.append(14..<15)
        #expect(reply.wasFoundLate && reply.depths.map(\.quarantined) == [2, 0])
        #expect(try outbox.form(99, endpoint: "a")?.rows.map(\.location) == samples(0, 1, 2, 13, 14))
        #expect(try outbox.form(99, endpoint: "b")?.rows.map(\.location) == samples(0, 1, 2, 10, 11, 12, 13, 14))
        outbox.close()
        let kept = try OutboxReader(path: scratch.path).quarantined(limit: 9)
        #expect(kept.map(\.row.location) == samples(10, 11) && kept.map(\.refusal.reason) == ["bad", "worse"])
    }

    /// What a profile refuses is in the quarantine in memory, although its row was removed.
    @Test(.bug(id: 11)) func aQueueThatIsFoundLateGetsWhatAProfileRefused() throws {
        var strict = EndpointSettings.test()
        // No location is as small as that.
        strict.profile.maxBytes = 1
        try open([strict]).close()
        scratch.hide(isBlocked: true)
        let outbox = try open([strict], random: testUUID.reversed())
        try outbox.keep(Commit(rows: NewRow.samples(0..<3)))
        #expect(try form(outbox, 9).isEmpty)
        #expect(outbox.current.depths[0].quarantined == 3 && outbox.current.depths[0].waiting == 0)
        scratch.show()
        let reply = try outbox.append(3..<4)
        #expect(reply.wasFoundLate && reply.depths[0].quarantined == 3 && reply.depths[0].waiting == 1)
        outbox.close()
        let kept = try OutboxReader(path: scratch.path).quarantined(limit: 9).map(\.row.location)
        #expect(kept == samples(0..<3))
    }

    /// A disk that may only be read from the start: what is on it goes out.
    @Test func aQueueThatCanBeReadFromTheStartIsSent() throws {
        let before = try open(rows: 5)
        let formed = try #require(try before.form(2))
        before.close()
        // A second writer keeps this one from writing.
        let blocker = try Connection(path: scratch.path, access: .readWrite)
        try blocker.execute("BEGIN IMMEDIATE")
        let outbox = try open([.test(), .test("late", backfill: true)], random: testUUID.reversed())
        #expect(outbox.refusal != nil && outbox.uuid == testUUID && outbox.current.rows == 5)
        #expect(outbox.inFlight() == [formed])
        #expect(try acknowledge(outbox, formed).depths.map(\.waiting) == [3, 5])
        try outbox.keep(Commit(rows: NewRow.samples(5..<6)))
        let rest = try #require(try form(outbox, 9).first)
        #expect(rest.rows.map(\.location) == samples(2..<6))
        _ = try acknowledge(outbox, rest)
        try blocker.execute("ROLLBACK")
        let reply = try outbox.append(6..<7)
        #expect(reply.refusal == nil && reply.depths.map(\.waiting) == [1, 7])
    }

    /// What it sends then may never be stored on disk: a third start must not give the id to other bytes.
    @Test(.bug(id: 11)) func aBatchThatIsOtherThanOnDiskHasAnIDOfThisStart() throws {
        let before = try open(rows: 2)
        let formed = try #require(try before.form(2))
        before.close()
        let blocker = try Connection(path: scratch.path, access: .readWrite)
        try blocker.execute("BEGIN IMMEDIATE")
        var settings = EndpointSettings.test()
        settings.profile.rendering = "another"
        var ids: Set<String> = [formed.id]
        for start in 1...2 {
            let outbox = try open([settings], random: testUUID.map { $0 &+ UInt8(start) })
            #expect(outbox.refusal != nil)
            #expect(ids.insert(try #require(outbox.inFlight().first).id).inserted)
            outbox.close()
        }
    }

    @Test func newerRowsPassThoseThatCannotBeReadAfterAWhile() throws {
        let outbox = try open(rows: 5)
        try outbox.beginInMemory(Self.error)
        scratch.hide()
        try outbox.keep(Commit(rows: NewRow.samples(5..<8)))
        #expect(try form(outbox, 9).isEmpty)
        var commit = Commit(forms: [.of(9)])
        commit.passesUnreadable = true
        let batch = try #require(try outbox.keep(commit).formed.first)
        #expect(batch.rows.map(\.seq) == [6, 7, 8])
        let reply = try acknowledge(outbox, batch)
        #expect(reply.depths[0].waiting == 5 && reply.unstored == 3)
        scratch.show()
        try outbox.append(8..<9)
        #expect(try outbox.form(9)?.rows.map(\.seq) == [1, 2, 3, 4, 5, 9])
    }

    @Test func nothingOvertakesRowsThatTheDiskDoesNotShow() throws {
        let outbox = try open(rows: 5)
        try outbox.beginInMemory(Self.error)
        try scratch.removeRows([1, 2, 3])
        try outbox.keep(Commit(rows: NewRow.samples(5..<8)))
        #expect(try form(outbox, 9).isEmpty)
    }

    /// The count would reach zero too early, and the last rows in memory be removed as delivered (seed 6003979).
    @Test(.bug(id: 14)) func rowsOnDiskThatWereNotCountedAtTheStartDelayNoOthers() throws {
        try open(rows: 5).close()
        let blocker = try Connection(path: scratch.path, access: .readWrite)
        try blocker.execute("CREATE TEMP TABLE unseen AS SELECT * FROM segment")
        try scratch.removeRows([1, 2, 3])
        try blocker.execute("BEGIN IMMEDIATE")
        let outbox = try open(random: testUUID.reversed())
        try #require(outbox.refusal != nil && outbox.current.depths[0].waiting == 2)
        try blocker.execute("DELETE FROM segment; INSERT INTO segment SELECT * FROM unseen")
        try blocker.execute("COMMIT")
        try blocker.execute("BEGIN IMMEDIATE")
        // The disk refuses again, and is read anew.
        try #require(try outbox.append(5..<15).refusal != nil)
        var delivered: [Location] = []
        while let batch = try form(outbox, 4).first {
            delivered += batch.rows.map(\.location)
            _ = try acknowledge(outbox, batch)
        }
        try blocker.execute("ROLLBACK")
        try outbox.append(15..<16)
        delivered += try outbox.form(99)?.rows.map(\.location) ?? []
        #expect(delivered == samples(0..<16))
    }

    /// A program that reads the queue and never ends keeps the log from being copied back.
    @Test func aReaderThatStaysDoesNotLetTheLogGrowWithoutBound() throws {
        try open().append(0..<10)
        let reader = try Connection(path: scratch.path, access: .readOnly)
        try reader.execute("BEGIN")
        _ = try reader.integer("SELECT count(*) FROM segment")
        // The bound counts from 64 MiB with the default limits; these are smaller.
        let outbox = try Outbox.open(scratch, maxBytes: 16 << 20, worksWithoutDisk: true)
        var last = CommitReply(lastSeq: 0)
        for round in 0..<100 where last.refusal == nil {
            // What is replaced each time makes the log grow as fast as many rows do.
            let state = [UInt8](repeating: UInt8(round), count: 200_000)
            last = try outbox.commit(
                Commit(rows: NewRow.samples(round * 10..<round * 10 + 10), parts: .init(tracker: state)))
        }
        #expect(last.refusal?.cause == .full)
        #expect(last.refusal?.message.contains("another program") == true)
        #expect(CrashImage(of: scratch.path).log.count < 6 << 20)
        try reader.execute("ROLLBACK")
        #expect(try outbox.append(0..<1).refusal == nil)
    }
}
