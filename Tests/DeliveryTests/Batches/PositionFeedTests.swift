import ProfilesTestSupport
import TestSupport
import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

@Suite struct PositionFeedTests {
    private static let plain: Tree = ["record": ["s": "$seq"]]
    private static let named: Tree = ["record": ["s": "$seq", "t": "$trackable"]]
    private static let gathered: Tree = ["url": "${base_url}/${trackable}", "record": ["s": "$seq"]]

    private func position(_ second: Int64, east: Int32 = 0, _ trackable: String = "a") -> Location {
        var location = Sample.bare(seq: 1).location
        location.time = UTCTime(milliseconds: second * 1000)
        location.coordinate = Coordinate(latitudeE7: 1, longitudeE7: east)
        location.trackable = trackable
        return location
    }

    @Test func onlyNewsGoesOutAndOnlyAnAcceptedPositionCounts() throws {
        let settings = try Sample.settings(Self.plain)
        var feed = PositionFeed()
        func next(_ positions: [Location]) -> Batch? { feed.next(positions, settings, outbox: [], sentMs: 9).batch }
        #expect(next([]) == nil)
        let first = try #require(next([position(5), position(5, "b")]))
        #expect(first.rows.map(\.seq) == [5000] && feed.shown.isEmpty)
        // The same fix is not sent twice, nor is a later one at the same place once it was accepted.
        #expect(next([position(5)]) == nil)
        feed.accepted("another")
        feed.accepted(first.id)
        #expect(feed.shown == [nil: UTCTime(milliseconds: 5000)])
        #expect(next([position(6)]) == nil)
        let second = try #require(next([position(7, east: 9)]))
        #expect(second.id != first.id && second.rows[0].seq == 7000)
        // The date of the receiver was set back: the former one holds nothing up.
        let third = try #require(next([position(2, east: 3)]))
        #expect(feed.shown.isEmpty && third.rows[0].location.time.milliseconds == 2000 && third.rows[0].seq > 7000)
    }

    @Test func eachTrackableThatIsNamedHasAPositionOfItsOwn() throws {
        let both = [position(5), position(5, "b")]
        var feed = PositionFeed()
        let one = feed.next(both, try Sample.settings(Self.named), outbox: [], sentMs: 9)
        #expect(one.batch?.rows.map(\.location.trackable) == ["a", "b"] && !one.hasMore)
        #expect(Set(one.batch?.rows.map(\.seq) ?? []).count == 2)
        feed = PositionFeed()
        let first = feed.next(both, try Sample.settings(Self.gathered), outbox: [], sentMs: 9)
        let second = feed.next(both, try Sample.settings(Self.gathered), outbox: [], sentMs: 9)
        #expect(first.batch?.rows.map(\.location.trackable) == ["a"] && first.hasMore)
        #expect(second.batch?.rows.map(\.location.trackable) == ["b"] && !second.hasMore)
    }
}
