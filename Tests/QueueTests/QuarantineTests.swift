import Profiles
import Testing
import WaypostCore

@testable import Queue

@Suite struct QuarantineTests {
    private let scratch: Scratch
    private let refusal = Refusal(reason: "latitude", status: 422, reply: Array("no".utf8), attempts: 2)

    init() throws { scratch = try Scratch() }

    private func records() throws -> [QuarantinedLocation] {
        try OutboxReader(path: scratch.path).quarantined(limit: 10_000)
    }

    @Test func keepsTheWholeRecordWithItsReason() throws {
        var settings = EndpointSettings.test()
        settings.assetID = "asset-1"
        let outbox = try Outbox.open(scratch, [settings])
        let (crossing, trip) = (Location.awkward[0], Location.awkward[1])
        _ = try outbox.commit(Commit(rows: [NewRow(crossing, receivedMs: 7), NewRow(trip)]))
        let batch = try #require(try outbox.form(9))
        #expect(try outbox.acknowledge(batch, .refused(refusal)).rows == 0)
        outbox.close()
        _ = try Outbox.open(scratch, [settings])
        #expect(try records().map(\.row) == batch.rows)
        #expect(try records().map(\.refusal) == [refusal, refusal])
        #expect(try records().map(\.assetID) == ["asset-1", "asset-1"])
        #expect(try OutboxReader(path: scratch.path).quarantined(endpoint: "other", limit: 9).isEmpty)
        #expect(try OutboxReader(path: scratch.path).quarantined(after: 1, limit: 9).map(\.row.seq) == [2])
    }

    @Test func givesUpTheOldestAboveTheCap() throws {
        let outbox = try Outbox.open(scratch, rows: 1005)
        let reply = try outbox.acknowledge(try #require(try outbox.form(2000)), .refused(refusal))
        #expect(reply.depths[0].quarantined == 1000 && reply.depths[0].finishedUnsent == ["overflow": 5])
        #expect(try records().first?.row.seq == 6)
    }

    @Test func sendsAgainBehindWhatWaits() throws {
        let outbox = try Outbox.open(scratch, [.test(), .test("other")], rows: 3)
        let refused = try #require(try outbox.form(2))
        try outbox.acknowledge(refused, .refused(refusal))
        let reply = try outbox.commit(Commit(orders: [.retryQuarantined(endpoint: "main", ids: [])]))
        #expect(reply.orders == [.done(rows: 2, first: 1, last: 2)])
        #expect(reply.depths[0].waiting == 3)
        let fresh = try #require(try outbox.form(9))
        #expect(fresh.rows.map(\.seq) == [3])
        try outbox.acknowledge(fresh)
        let again = try #require(try outbox.form(9))
        #expect(again.rows == refused.rows)
        #expect(again.id == refused.id + "-g2")
        outbox.close()
        let second = try Outbox.open(scratch, [.test(), .test("other")])
        #expect(second.inFlight() == [again])
        try second.acknowledge(again, .refused(Refusal(reason: "still", status: 400, attempts: 1)))
        #expect(try records().map(\.refusal.attempts) == [3, 3])
        #expect(try second.form(9) == nil)
        let id = try #require(try records().last?.id)
        _ = try second.commit(Commit(orders: [.retryQuarantined(endpoint: nil, ids: [id])]))
        let third = try #require(try second.form(9))
        #expect(third.rows.map(\.seq) == [2])
        #expect(try second.acknowledge(third).depths[0].quarantined == 1)
        #expect(
            try second.commit(Commit(orders: [.dropQuarantined(endpoint: "main", ids: [])])).orders
                == [.done(rows: 1, first: 1, last: 1)])
        #expect(try records().isEmpty)
    }

    @Test func marksTheExitWhoseEnterWasRefused() throws {
        let outbox = try Outbox.open(scratch)
        _ = try outbox.commit(Commit(rows: [.crossing(0, "f-1", .enter)]))
        try outbox.acknowledge(try #require(try outbox.form(1)), .refused(refusal))
        let rows: [NewRow] = [
            .crossing(1, "f-1", .exit), .crossing(2, "f-1", .enter), .crossing(3, "f-1", .exit), NewRow(.sample(4)),
        ]
        _ = try outbox.commit(Commit(rows: rows))
        let batch = try #require(try outbox.form(9))
        #expect(batch.rows.map(\.location.reason) == ["pair broken", "displacement", "displacement", "displacement"])
        outbox.close()
        let second = try Outbox.open(scratch)
        #expect(second.inFlight() == [batch])
        let halves = try second.acknowledge(batch, .split).formed
        #expect(
            halves.map { $0.rows.map(\.location.reason) }
                == [["pair broken", "displacement"], ["displacement", "displacement"]])
        // The record has the reason for which it was kept.
        try second.acknowledge(halves[0], .refused(refusal))
        #expect(try records().first { $0.row.seq == 2 }?.row.location.reason == "displacement")
    }

    @Test func bindsWaitingRowsToTheNewAddress() throws {
        let first = try Outbox.open(scratch, rows: 4)
        try first.acknowledge(try #require(try first.form(1)))
        let before = try #require(try first.form(2))
        first.close()
        let moved = EndpointSettings.test(baseURL: "http://elsewhere")
        let second = try Outbox.open(scratch, [moved])
        #expect(second.current.depths[0].boundTo == EndpointSettings.test().fingerprint)
        let reply = try second.commit(Commit(orders: [.bind(endpoint: "main")]))
        #expect(reply.orders == [.done(rows: 3, first: 2, last: 4)])
        #expect(reply.depths[0].state == .active && reply.depths[0].boundTo == nil && !reply.depths[0].isMoved)
        second.close()
        let third = try Outbox.open(scratch, [moved])
        #expect(third.current.depths[0].state == .active)
        #expect(third.inFlight().map(\.id) == [before.id + "-g2"])
    }

    /// The address was mistyped, say.
    @Test func movesToAnotherAddressWhereNothingWasAcceptedBefore() throws {
        let first = try Outbox.open(scratch, rows: 3)
        let before = try #require(try first.form(2))
        _ = try first.commit(Commit(states: [.init(endpoint: "main", state: .paused(reason: "not found"))]))
        first.close()
        var moved = EndpointSettings.test(baseURL: "http://elsewhere")
        let second = try Outbox.open(scratch, [moved])
        let depth = second.current.depths[0]
        #expect(depth.state == .active && depth.boundTo == nil && depth.isMoved && depth.waiting + depth.inFlight == 3)
        let again = try #require(second.inFlight().first)
        #expect(again.id == before.id + "-g2" && again.rows == before.rows)
        second.close()
        // Nothing is said of it once more.
        let third = try Outbox.open(scratch, [moved])
        #expect(!third.current.depths[0].isMoved && third.inFlight() == [again])
        third.close()
        // Rows of another device are an operator's to judge, whatever was accepted.
        moved.device = "van-8"
        #expect(try Outbox.open(scratch, [moved]).current.depths[0].state == .rebind)
    }

    @Test func dropsOnlyRowsOfTheOldBinding() throws {
        let first = try Outbox.open(scratch, rows: 3)
        _ = try first.form(2)
        first.close()
        var settings = EndpointSettings.test()
        settings.device = "van-8"
        let second = try Outbox.open(scratch, [settings])
        try second.append(3..<5)
        second.close()
        let third = try Outbox.open(scratch, [settings])
        let reply = try third.commit(Commit(orders: [.drop(endpoint: "main"), .drop(endpoint: "main")]))
        #expect(reply.orders.first == .done(rows: 3, first: 1, last: 3))
        #expect(reply.depths[0].finishedUnsent == ["dropped": 3])
        #expect(try third.form(9)?.rows.map(\.location) == [.sample(3), .sample(4)])
        guard case .refused = reply.orders.last else { return _ = Issue.record("dropped twice") }
    }

    @Test func refusesToQuarantineWhatDoesNotFitAndWhatComesBehind() throws {
        let outbox = try Outbox.open(scratch, rows: 1001)
        let reply = try outbox.commit(
            Commit(orders: [.quarantine(endpoint: "main", Refusal(reason: "rebound")), .clear(endpoint: "main")]))
        for result in reply.orders {
            if case .done = result { Issue.record("\(result)") }
        }
        #expect(reply.depths[0].waiting == 1001)
    }

    @Test(arguments: [EndpointSettings.OnCollision.keep, .quarantine, .clear])
    func treatsRowsOfATakenAssetByItsRule(rule: EndpointSettings.OnCollision) throws {
        var settings = EndpointSettings.test()
        settings.onCollision = rule
        let outbox = try Outbox.open(scratch, [settings], rows: 3)
        let batch = try #require(try outbox.form(2))
        let reply = try outbox.commit(Commit(states: [.init(endpoint: "main", state: .taken)]))
        // The reply says to the sender that it was given up.
        #expect(reply.dissolved == (rule == .keep ? [] : [batch.id]))
        let depth = try outbox.append(3..<5).depths[0]
        #expect(depth.waiting + depth.inFlight == (rule == .keep ? 5 : 0))
        #expect(depth.quarantined == (rule == .quarantine ? 5 : 0))
        #expect(depth.finishedUnsent == (rule == .clear ? ["dropped": 5] : [:]))
    }

    @Test func doesNotTakeRefusalsForAnAcceptance() throws {
        let outbox = try Outbox.open(scratch, rows: 2)
        let batch = try #require(try outbox.form(9))
        #expect(try outbox.acknowledge(batch, .partly(refused: [1: refusal, 2: refusal], again: [])).rows == 0)
        #expect(outbox.current.depths[0].acceptedBefore == false)
        #expect(try records().count == 2)
    }

    @Test func quarantinesWhatAProfileRefusesWithoutSendingIt() throws {
        var settings = EndpointSettings.test()
        settings.profile.maxBytes = 10
        let outbox = try Outbox.open(scratch, [settings], rows: 3)
        #expect(try outbox.form(2) == nil)
        #expect(outbox.current.depths[0].finishedUnsent == ["refused": 3] && outbox.current.depths[0].waiting == 0)
        #expect(try records().map(\.refusal) == Array(repeating: Refusal(reason: "max_bytes"), count: 3))
        outbox.close()
        #expect(try Outbox.open(scratch).current.depths[0].waiting == 0)
    }
}
