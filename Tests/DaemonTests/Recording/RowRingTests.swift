import Queue
import Testing
import WaypostCore

@testable import Daemon

@Suite struct RowRingTests {
    private func row(_ number: Int, event: LocationEvent = .none) -> NewRow {
        NewRow(
            Location(
                trackable: "d", time: UTCTime(milliseconds: Int64(number)), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true, event: event))
    }

    private func numbers(_ ring: RowRing) -> [Int64] { ring.rows.map(\.location.time.milliseconds) }

    @Test func rowsThatWereNotStoredComeBackAheadOfThoseThatCameSince() {
        var ring = RowRing()
        for number in 1...3 { ring.append(row(number)) }
        let taken = ring.takeAll()
        ring.append(row(4))
        ring.putBack(taken)
        #expect(numbers(ring) == [1, 2, 3, 4])
    }

    @Test func plainFixesGiveWayToEvents() {
        for (onFull, kept) in [(.dropOldest, [2, 4, 5]), (.dropNewest, [1, 2, 4])] as [(OutboxSettings.OnFull, [Int64])]
        {
            var ring = RowRing()
            for number in 1...5 { ring.append(row(number, event: number == 2 || number == 4 ? .motionchange : .none)) }
            ring.limit(to: 3, onFull: onFull)
            #expect(numbers(ring) == kept && ring.dropped == 2)
        }
    }
}
