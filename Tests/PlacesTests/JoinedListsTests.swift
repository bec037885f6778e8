import Testing
import WaypostCore
import WaypostTracking

@testable import Places

@Suite struct JoinedListsTests {
    private func fences(_ ids: [String], radius: Double = 50) -> [Geofence] {
        ids.map { Geofence(id: $0, shape: .circle(centre: Coordinate(latitudeE7: 0, longitudeE7: 0), radius: radius)) }
    }

    private func many(_ count: Int, _ prefix: String) -> [Geofence] { fences((0..<count).map { "\(prefix)\($0)" }) }

    @Test func listsAreJoinedAndCompared() throws {
        var lists = JoinedLists<Geofence>(own: fences(["own"]), sources: ["a", "b"])
        #expect(lists.joined.map(\.id) == ["own"] && lists.count(of: "a") == nil)
        #expect(try lists.received(fences(["b/1"]), of: "b") == .init(added: 1))
        #expect(try lists.received(fences(["a/1", "a/2", "a/3"]), of: "a") == .init(added: 3))
        #expect(lists.joined.map(\.id) == ["own", "a/1", "a/2", "a/3", "b/1"])
        let next = fences(["a/2"]) + fences(["a/3"], radius: 60) + fences(["a/4", "a/5"])
        #expect(try lists.received(next, of: "a") == .init(added: 2, gone: 1, changed: 1))
        #expect(try lists.received(next, of: "a").isEmpty)
        #expect(try lists.received(fences(["x"]), of: "unknown").isEmpty && lists.joined.count == 6)
    }

    @Test func tenThousandTogetherAndNotOneMore() throws {
        var lists = JoinedLists<Geofence>(own: many(4000, "o"), sources: ["a", "b"])
        _ = try lists.received(many(5000, "a/"), of: "a")
        _ = try lists.received(many(1000, "b/"), of: "b")
        let before = lists.joined
        let problem = "found 1001 geofences beside 9000 others, expected at most 10000 together"
        #expect(throws: ListProblems(lines: [problem])) { _ = try lists.received(many(1001, "b/"), of: "b") }
        #expect(lists.joined == before)
        // Its own list does not count twice.
        _ = try lists.received(many(5000, "c/"), of: "a")
    }

    @Test func cornersOfAllListsAreLimitedTogether() throws {
        let corners = [Coordinate](repeating: Coordinate(latitudeE7: 0, longitudeE7: 0), count: 1000)
        func polygons(_ count: Int, _ prefix: String) -> [Geofence] {
            (0..<count).map { Geofence(id: "\(prefix)\($0)", shape: .polygon(corners)) }
        }
        var lists = JoinedLists<Geofence>(own: polygons(50, "o"), sources: ["a", "b"])
        _ = try lists.received(polygons(100, "a/"), of: "a")
        let problem =
            "found polygons with 51000 corners beside 150000 of others, expected at most 200000 together"
        #expect(throws: ListProblems(lines: [problem])) { _ = try lists.received(polygons(51, "b/"), of: "b") }
        _ = try lists.received(polygons(50, "b/"), of: "b")
        #expect(lists.reloaded(own: polygons(51, "o"), sources: ["a", "b"], kept: ["a", "b"]) == ["b"])
    }

    @Test func aReloadKeepsTheListsOfTheSame() throws {
        var lists = JoinedLists<Geofence>(own: [], sources: ["a", "b", "c"])
        for name in ["a", "b", "c"] { _ = try lists.received(fences(["\(name)/1"]), of: name) }
        #expect(lists.reloaded(own: fences(["own"]), sources: ["c", "a", "d"], kept: ["a"]).isEmpty)
        #expect(lists.joined.map(\.id) == ["own", "a/1"])
        #expect(lists.count(of: "a") == 1 && lists.count(of: "b") == nil && lists.count(of: "c") == nil)
        #expect(lists.reloaded(own: many(10_000, "o"), sources: ["a"], kept: ["a"]) == ["a"])
        #expect(lists.joined.count == 10_000 && lists.count(of: "a") == nil)
    }
}
