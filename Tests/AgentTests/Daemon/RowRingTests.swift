import Delivery
import Outbox
import Positioning
import Testing

@testable import Agent

@Suite struct RowRingTests {
    private let main = EndpointSettings(name: "main", baseURL: "http://a", device: "d")
    private let spare = EndpointSettings(name: "spare", baseURL: "http://b", device: "d")
    private let extra = EndpointSettings(name: "extra", baseURL: "http://c", device: "d", required: false)

    private func row(_ number: Int, _ event: LocationEvent = .none, latitude: Int32 = 0) -> NewRow {
        NewRow(
            Location(
                trackable: "van", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), at: .zero,
                coordinate: Coordinate(latitudeE7: latitude, longitudeE7: Int32(number) * 1000), moving: true,
                event: event, odometer: Double(number)))
    }

    private func ring(_ count: Int) -> RowRing {
        var ring = RowRing()
        for number in 0..<count { ring.append(row(number, number == 2 ? .power : .none)) }
        return ring
    }

    private func numbers(_ ring: RowRing) -> [Int] { ring.rows.map { Int($0.location.odometer) } }

    @Test(arguments: [
        (OutboxSettings.OnFull.dropOldest, [2, 5, 6, 7, 8, 9]), (.dropNewest, [0, 1, 2, 3, 4, 5]),
        // On a straight line at an even pace nothing lies off it.
        (.thin, [0, 2, 9]),
    ])
    func givesUpWhatAFullQueueWould(onFull: OutboxSettings.OnFull, kept: [Int]) {
        var ring = ring(10)
        ring.limit(to: 6, onFull: onFull, bound: 5)
        #expect(numbers(ring) == kept)
        #expect(ring.dropped == 10 - kept.count)
    }

    @Test func dropsWhatCannotBeThinned() {
        var ring = RowRing()
        for number in 0..<10 { ring.append(row(number, latitude: number % 2 == 0 ? 500_000_000 : -500_000_000)) }
        ring.limit(to: 6, onFull: .thin, bound: 5)
        #expect(numbers(ring) == [4, 5, 6, 7, 8, 9])
    }

    @Test func lostRowsLeaveOnceEveryRequiredEndpointHasThem() {
        var ring = ring(4)
        let all = [main, spare, extra]
        #expect(ring.waiting(for: main).map(\.number) == [1, 2, 3, 4])
        ring.send([1, 2, 3], to: "main")
        ring.send([1, 2], to: "spare")
        #expect(ring.isSending && ring.isSending(to: "main"))
        ring.settle("main", had: [1, 2, 3], among: all)
        #expect(ring.count == 4 && ring.count(for: main) == 1)
        ring.settle("spare", had: [1, 2], among: all)
        #expect(ring.sent == 2)
        #expect(numbers(ring) == [2, 3])
        #expect(ring.rows.map(\.settledFor) == [["main"], []])
        ring.send([4], to: "main")
        ring.settle("main", had: [], among: all)
        #expect(!ring.isSending && ring.waiting(for: main).map(\.number) == [4])
        // The number of a row never changes, nor is it given to another.
        ring.append(row(4))
        #expect(ring.waiting(for: main).map(\.number) == [4, 5])
    }

    /// A spare stands in for its primary; nothing has to reach both.
    @Test func aRowNeedNotReachTheSpareToo() {
        var ring = ring(2)
        let standIn = EndpointSettings(name: "spare", baseURL: "http://b", device: "d", backupFor: "main")
        ring.send([1], to: "main")
        ring.settle("main", had: [1], among: [main, standIn])
        #expect(ring.sent == 1 && ring.count == 1)
    }
}

@Suite struct DiskRetryTests {
    @Test(arguments: [
        (OutboxError.Cause.full, [10.0, 10, 10]), (.readOnly, [10, 60, 60]), (.cannotOpen, [10, 60, 60]),
        (.io, [0.1, 1, 2, 4, 8, 16, 32, 60, 60]),
    ])
    func asksAgainInItsOwnTime(cause: OutboxError.Cause, pauses: [Double]) {
        var retry = DiskRetry()
        #expect(pauses.map { _ in retry.failed(cause, window: .seconds(10)).inSeconds } == pauses)
    }

    @Test func tellsOfDroppedRowsOnceAMinute() {
        var log = DropLog()
        #expect(log.dropped(DropCounts(), at: .zero) == nil)
        #expect(log.dropped(DropCounts(oldest: 1), at: .zero) == DropCounts(oldest: 1))
        #expect(log.dropped(DropCounts(oldest: 2), at: .zero + .seconds(59)) == nil)
        #expect(log.dropped(DropCounts(expired: 3), at: .zero + .seconds(60)) == DropCounts(oldest: 2, expired: 3))
    }
}
