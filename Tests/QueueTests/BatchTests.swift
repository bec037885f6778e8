import Profiles
import Testing
import WaypostCore

@testable import Queue

/// What becomes of batches, and under which names.
@Suite struct BatchTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func splitsIntoHalvesThatOutliveARestart() throws {
        let outbox = try Outbox.open(scratch, rows: 5)
        let halves = try outbox.acknowledge(try #require(try outbox.form(9)), .split).formed
        #expect(halves.map(\.id) == ["7f3a91c2-main-1-3", "7f3a91c2-main-4-5"])
        #expect(halves.map(\.outboxName) == ["7f3a91c2", "7f3a91c2"])
        outbox.close()
        let second = try Outbox.open(scratch)
        #expect(second.inFlight() == halves)
        // The younger half first: what is before it is still to come.
        let reply = try second.acknowledge(halves[1])
        #expect(reply.depths[0].ackedThrough == 0 && reply.depths[0].inFlight == 3)
        #expect(reply.rows == 5)
        #expect(try second.acknowledge(halves[0]).rows == 0)
        #expect(second.current.depths[0].ackedThrough == 5)
    }

    /// Found by the simulated world: the second of two endpoints that began with the same row got the rows of the first.
    @Test(.bug(id: 11)) func sendsEachEndpointItsOwnRowsWhereBothBeginWithTheSameOne() throws {
        var latest = EndpointSettings.test("latest", feed: .engine)
        latest.delivery = .latest
        let outbox = try Outbox.open(scratch, [.test(), latest])
        var rows = (0..<4).map { Location.sample($0, event: $0 % 2 == 0 ? .motionchange : .none) }
        rows[2].published = false
        _ = try outbox.commit(Commit(rows: rows.map { NewRow($0) }))
        let asked = [FormRequest.of(9), .of(9, "latest")]
        let formed = try outbox.commit(Commit(forms: asked)).formed
        #expect(formed.map { $0.rows.map(\.seq) } == [[1, 2, 4], [1, 3, 4]])
    }

    @Test func leavesASingleRowAsItIsWhenItIsToBeSplit() throws {
        let outbox = try Outbox.open(scratch, rows: 1)
        let batch = try #require(try outbox.form(9))
        #expect(try outbox.acknowledge(batch, .split).formed == [batch])
        #expect(outbox.inFlight() == [batch])
    }

    @Test func repeatsRowsOfAPartlyAcceptedBatchUnderAnotherID() throws {
        let outbox = try Outbox.open(scratch, rows: 5)
        let refusal = Refusal(reason: "bad", status: 200, attempts: 1)
        let batch = try #require(try outbox.form(9))
        let again = try outbox.acknowledge(batch, .partly(refused: [3: refusal], again: [1, 5])).formed
        #expect(again.map(\.id) == ["7f3a91c2-main-1-5-g2"])
        #expect(again.first?.rows.map(\.seq) == [1, 5])
        #expect(try OutboxReader(path: scratch.path).quarantined(limit: 9).map(\.row.seq) == [3])
        outbox.close()
        let second = try Outbox.open(scratch)
        #expect(second.inFlight() == again)
        #expect(try second.acknowledge(again[0]).rows == 0)
    }

    @Test func givesABatchThatIsRenderedOtherwiseAnotherID() throws {
        let first = try Outbox.open(scratch, rows: 2)
        let before = try #require(try first.form(9))
        first.close()
        var settings = EndpointSettings.test()
        settings.profile.rendering = "other/1"
        let second = try Outbox.open(scratch, [settings])
        let after = try #require(second.inFlight().first)
        #expect(after.id == before.id + "-g2")
        #expect(after.rows == before.rows)
        second.close()
        #expect(try Outbox.open(scratch, [settings]).inFlight() == [after])
    }

    /// A body bears it, or it goes ahead: it changes nothing, and comes again in its turn.
    @Test(arguments: [true, false]) func aBatchOfABacklogKnowsTheNewestRow(isInTheBody: Bool) throws {
        var settings = EndpointSettings.test()
        if isInTheBody { settings.profile.usesNewest = true } else { settings.freshHead = true }
        let first = try Outbox.open(scratch, [settings], rows: 5)
        let batch = try #require(try first.form(2))
        #expect(batch.newest?.seq == 5)
        try first.append(5..<6)
        first.close()
        let second = try Outbox.open(scratch, [settings])
        #expect(second.inFlight() == [batch])
        try second.acknowledge(batch)
        let rest = try #require(try second.form(9))
        #expect(rest.newest == nil && rest.rows.map(\.location) == samples(2..<6))
    }

    @Test func formsBehindWhatIsInFlightOnlyToTryTheRowThere() throws {
        let outbox = try Outbox.open(scratch, rows: 5)
        let head = try #require(try outbox.form(2))
        func form(isProbe: Bool) throws -> [Batch] {
            let request = FormRequest(endpoint: "main", limit: 1, isProbe: isProbe, sentMs: nil)
            return try outbox.commit(Commit(forms: [request])).formed
        }
        #expect(try form(isProbe: false) == [head])
        let both = try form(isProbe: true)
        #expect(both.map(\.id) == [head.id, "7f3a91c2-main-3-3"])
        // Accepted ahead of its turn, it keeps the rows before it in the queue, and is not sent again.
        let reply = try outbox.acknowledge(both[1])
        #expect(reply.depths[0].ackedThrough == 0 && reply.rows == 5)
        try outbox.acknowledge(head)
        #expect(try outbox.form(9)?.rows.map(\.seq) == [4, 5])
    }

    @Test func gathersRowsOfEachTrackable() throws {
        var settings = EndpointSettings.test()
        settings.profile.gathersTrackables = true
        let outbox = try Outbox.open(scratch, [settings])
        let rows: [NewRow] = (0..<8).map { NewRow(.sample($0, trackable: $0 % 2 == 0 ? "a" : "b")) }
        _ = try outbox.commit(Commit(rows: rows))
        let formed = try outbox.commit(Commit(forms: [.of(4)])).formed
        #expect(formed.first?.rows.map(\.seq) == [1, 3, 5, 7])
        #expect(formed.allSatisfy { Set($0.rows.map(\.location.trackable)).count == 1 })
        outbox.close()
        let second = try Outbox.open(scratch, [settings])
        #expect(second.inFlight() == formed)
        #expect(Set(formed.map(\.id)).count == formed.count)
        for batch in formed { try second.acknowledge(batch) }
        while let batch = try second.form(4) { try second.acknowledge(batch) }
        #expect(second.current.rows == 0)
    }

    @Test func passesALongBacklogThatNobodyWantsInFewCommits() throws {
        var settings = EndpointSettings.test("live")
        settings.delivery = .latest
        let outbox = try Outbox.open(scratch, [.test(), settings])
        // More than are read for one request.
        for start in stride(from: 0, to: 52_000, by: 13_000) { try outbox.append(start..<start + 13_000) }
        var batches: [Batch] = []
        for _ in 0..<4 where batches.isEmpty {
            if let batch = try outbox.form(100, endpoint: "live") { batches = [batch] }
        }
        #expect(batches.first?.rows.map(\.seq) == [52_000])
        #expect(outbox.current.depths[1].finishedUnsent == ["superseded": 51_999])
        #expect(outbox.current.depths.map(\.waiting) == [52_000, 0])
        outbox.close()
        let second = try Outbox.open(scratch, [.test(), settings])
        #expect(second.inFlight() == batches)
        #expect(second.current.depths.map(\.waiting) == [52_000, 0])
    }

    @Test func sendsWhatThePrimaryDidNotBringHomeByItsSpare() throws {
        let outbox = try Outbox.open(scratch, [.test(), .spare], rows: 4)
        let first = try #require(try outbox.form(2))
        let request = FormRequest.of(2, route: "spare")
        let routed = try #require(try outbox.commit(Commit(forms: [request])).formed.first)
        #expect(routed.endpoint == "spare")
        #expect(routed.id == "7f3a91c2-spare-1-2-g2")
        #expect(routed.rows == first.rows)
        // Its answer to the old batch comes too late to count.
        #expect(try outbox.acknowledge(first).depths[0].inFlight == 2)
        outbox.close()
        let second = try Outbox.open(scratch, [.test(), .spare])
        #expect(second.inFlight() == [routed])
        let reply = try second.acknowledge(routed)
        #expect(reply.rows == 2)
        #expect(reply.depths.map(\.acceptedBefore) == [false, true])
        #expect(reply.depths.map(\.waiting) == [2, 0])
        #expect(try second.form(9, endpoint: "spare") == nil)
        second.close()
        // Without the spare the primary sends what the spare has not.
        let third = try Outbox.open(scratch, [.test(), .spare])
        let again = try #require(try third.commit(Commit(forms: [request])).formed.first)
        third.close()
        let back = try #require(try Outbox.open(scratch).inFlight().first)
        #expect(back.endpoint == "main")
        #expect(back.rows == again.rows)
    }

    /// The commit with the answer to a batch may remove rows from the queue, and the newest one becomes a gap (seed 1105073).
    @Test(.bug(id: 11)) func theNewestRowIsSentAsItIsStored() throws {
        var settings = EndpointSettings.test()
        settings.freshHead = true
        let before = try Outbox.open(scratch, [settings], rows: 20)
        let first = try #require(try before.form(1))
        #expect(first.newest?.seq == 20)
        before.close()
        let outbox = try Outbox.open(scratch, [settings], maxRecords: 10, onFull: .dropNewest)
        #expect(outbox.inFlight() == [first])
        let accepted = BatchAnswer(endpoint: "main", batchID: first.id)
        let reply = try outbox.commit(Commit(answers: [accepted], forms: [.of(1)]))
        let second = try #require(reply.formed.first)
        #expect(reply.dropped.newest > 0 && second.newest?.location.event == .gap)
        outbox.close()
        #expect(try Outbox.open(scratch, [settings]).inFlight() == [second])
    }

    /// An endpoint that had sent rows before it was a backup for another sends these once more, with what the other still has.
    @Test(.bug(id: 11)) func aSpareRepeatsNoIDOfWhenItWasNone() throws {
        let before = try Outbox.open(scratch, [.test(), .test("spare")], rows: 4)
        let own = try #require(try before.form(2, endpoint: "spare"))
        try before.acknowledge(own)
        before.close()
        let outbox = try Outbox.open(scratch, [.test(), .spare])
        let request = FormRequest.of(2, route: "spare")
        let routed = try #require(try outbox.commit(Commit(forms: [request])).formed.first)
        #expect(routed.endpoint == "spare" && routed.rows == own.rows)
        #expect(routed.id != own.id)
    }

    /// The rows of today do not wait for what an operator wants sent again to a server that is away.
    @Test(.bug(id: 11)) func whatIsRetriedKeepsNoSpareWaiting() throws {
        let outbox = try Outbox.open(scratch, [.test(), .spare])
        let retried = try outbox.retried()
        try outbox.append(2..<3)
        let request = FormRequest.of(2, route: "spare")
        let routed = try #require(try outbox.commit(Commit(forms: [request])).formed.first)
        #expect(routed.endpoint == "spare" && routed.rows.map(\.location) == [.sample(2)])
        try outbox.acknowledge(routed)
        // Once the endpoint itself is back. A record that was not in the first batch may be among them.
        let again = try #require(try outbox.form(2))
        #expect(again.rows == retried.rows && again.id != retried.id)
        try outbox.acknowledge(again)
        #expect(outbox.current.depths[0].quarantined == 0)
    }

    /// What was left of its batches had other bytes under higher generations, which nothing remembers.
    @Test(.bug(id: 11)) func anEndpointThatComesBackHasIDsOfItsOwn() throws {
        var ids: Set<String> = []
        let first = try Outbox.open(scratch, [.test(), .test("x")], rows: 4)
        let whole = try #require(try first.form(4, endpoint: "x"))
        try first.acknowledge(whole, .partly(refused: [:], again: [1, 4]))
        let rest = try #require(first.inFlight().first)
        try first.acknowledge(rest)
        ids = [whole.id, rest.id]
        first.close()
        let second = try Outbox.open(scratch)
        try second.forget(endpoint: "x")
        second.close()
        let third = try Outbox.open(scratch, [.test(), .test("x", backfill: true)])
        #expect(ids.insert(try #require(try third.form(4, endpoint: "x")).id).inserted)
    }

    /// What a reload has changed holds at once, for what the queue itself decides too.
    @Test(.bug(id: 11), arguments: [true, false]) func aReloadReachesTheQueue(refuses: Bool) throws {
        var settings = EndpointSettings.test()
        settings.onCollision = .clear
        let outbox = try Outbox.open(scratch, [settings], rows: 3, worksWithoutDisk: true)
        if refuses { try outbox.beginInMemory(OutboxError(.io, path: "", message: "")) }
        settings.onCollision = .keep
        settings.freshHead = true
        var commit = Commit(states: [.init(endpoint: "main", state: .taken)])
        commit.reloaded = [settings]
        #expect(try outbox.commit(commit).depths[0].waiting == 3)
        _ = try outbox.commit(Commit(states: [.init(endpoint: "main", state: .active)]))
        #expect(try outbox.form(1)?.newest != nil)
    }

    @Test(arguments: [[1, 2, 3], [5, 9, 1000], [7], [1, 300, 70_000, 1 << 61]] as [[Int64]])
    func readsListsOfRowsAsWritten(seqs: [Int64]) {
        let bytes = SequenceList.encode(seqs, from: seqs[0])
        #expect(SequenceList.decode(bytes, from: seqs[0], through: seqs.last!) == seqs)
        #expect(SequenceList.decode(bytes + [0x80], from: seqs[0], through: seqs.last!) == nil)
        #expect(SequenceList.decode(bytes, from: seqs[0], through: seqs.last! - 1) == nil)
        let noise = [UInt8](repeating: 0xFF, count: 40)
        #expect(SequenceList.decode(noise, from: 1, through: .max) == nil)
    }

    /// Nothing that the small tables say is believed with a wrong byte: the queue is set aside, and all comes back, some of it twice.
    @Test(arguments: [
        ("batch", "rows = 9223372036854775807"), ("batch", "first = -9223372036854775808"), ("batch", "last = 5"),
        ("batch", "picked = x'FF'"), ("batch", "origin = 7"), ("batch", "through = 5"), ("batch", "rows = 2"),
        ("batch", "feed = 9"), ("batch", "newest_seq = 2"), ("endpoint", "formed = 5"),
        ("endpoint", "formed = 1 << 40"),
        ("endpoint", "unsettled = 1"), ("endpoint", "accepted = 1"), ("endpoint", "name = 'mail'"),
        ("endpoint", "feed = 1"),
        ("state", "value = 2 WHERE name = 'rows'"), ("state", "value = 7 WHERE name = 'mark'"),
        ("boot", "name = 'b0ot'"),
    ])
    func aWrongByteOfTheSmallTablesCostsNoRow(table: String, change: String) throws {
        let first = try Outbox.open(scratch, rows: 6)
        let batch = try #require(try first.form(3))
        first.close()
        try scratch.execute("UPDATE \(table) SET \(change)")
        #expect(try OutboxReader(path: scratch.path).verify() == ["its table \(table) is damaged"])
        let second = try Outbox.open(scratch)
        #expect(second.current.recovery.corruptRecovered == 1)
        _ = try second.append(6..<8)
        var delivered: [Location] = []
        for _ in 0..<20 {
            for found in second.inFlight() {
                #expect(found.id != batch.id || found.rows == batch.rows)
                delivered += found.rows.map(\.location)
                try second.acknowledge(found)
            }
            _ = try second.form(100)
        }
        #expect(samples(0..<8).allSatisfy(delivered.contains) && delivered.count < 13, "\(delivered.count)")
        #expect(second.current.recovery.lostRows == 0 && second.current.recovery.missing == 0)
    }

    /// The others lose nothing, and what they had does not come back.
    @Test func aWrongByteOfOneEndpointRepeatsNothingForTheOthers() throws {
        let settings = EndpointSettings.both
        let first = try Outbox.open(scratch, settings, rows: 20)
        try first.acknowledge(try #require(try first.form(15, endpoint: "b")))
        first.close()
        try scratch.execute("UPDATE endpoint SET formed = 15 WHERE name = 'a'")
        let second = try Outbox.open(scratch, settings)
        for _ in 0..<10 { _ = try second.commit(Commit(parts: .init(tracker: [1]))) }
        #expect(second.current.depths.map(\.waiting) == [20, 5])
    }

    /// A cell that its page no longer counts is a row that is gone.
    @Test func aRowThatIsGoneFromASmallTableIsMissed() throws {
        let first = try Outbox.open(scratch, rows: 6)
        _ = try first.form(3)
        let root = try #require(first.database).connection.integer(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'batch'")
        first.close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        var bytes = Scratch.read(scratch.path)
        let count = Int(root - 1) * DatabaseFile.pageSize + 4
        #expect(bytes[count] == 1)
        bytes[count] = 0
        Scratch.write(bytes, to: scratch.path)
        let second = try Outbox.open(scratch)
        for _ in 0..<10 { _ = try second.commit(Commit(parts: .init(tracker: [1]))) }
        #expect(second.current.recovery.corruptRecovered == 1 && second.current.depths[0].waiting == 6)
    }
}
