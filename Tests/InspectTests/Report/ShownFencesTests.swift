import Testing
import WaypostCore
import WaypostTracking

@testable import Inspect

@Suite struct ShownFencesTests {
    private static func table(_ places: [(Double, Double)]) -> EpochTable {
        var table = EpochTable()
        for (index, place) in places.enumerated() {
            let fix = Fix(
                time: UTCTime(milliseconds: Int64(index) * 1000), timeOfDay: 0, at: .zero,
                coordinate: coordinate(place.0, place.1), mode: .threeD, quality: .gps)
            _ = table.append(.fix(fix))
        }
        return table
    }

    private static func coordinate(_ latitude: Double, _ longitude: Double) -> Coordinate {
        Coordinate(latitudeE7: Int32((latitude * 1e7).rounded()), longitudeE7: Int32((longitude * 1e7).rounded()))
    }

    private static func circle(_ id: String, _ latitude: Double, _ longitude: Double) -> Geofence {
        Geofence(id: id, shape: .circle(centre: coordinate(latitude, longitude), radius: 1000))
    }

    @Test func thoseThatWereCrossedOrLieNear() {
        let table = Self.table([(52, 13), (52.1, 13.2)])
        let fences = [
            Self.circle("inside", 52.05, 13.1), Self.circle("edge", 52.108, 13.1), Self.circle("north", 52.2, 13.1),
            Self.circle("east", 52.05, 13.3), Self.circle("crossed", 10, 10),
            Geofence(
                id: "around", shape: .polygon([(50.0, 10.0), (50.0, 15.0), (55.0, 15.0)].map(Self.coordinate))),
        ]
        let crossing = Journey.Crossing(time: 0, fence: "crossed", action: "enter")
        #expect(ShownFences.of(fences, table, [crossing]).map(\.id) == ["inside", "edge", "crossed", "around"])
    }

    @Test func alsoOverTheAntimeridian() {
        let table = Self.table([(10, 179.9), (10.1, -179.9)])
        let fences = [
            Self.circle("west", 10.05, 179.95), Self.circle("east", 10.05, -179.95), Self.circle("far", 10.05, 0),
            Geofence(
                id: "across", shape: .polygon([(10.0, 179.0), (10.0, -179.0), (11.0, -179.0)].map(Self.coordinate))),
        ]
        #expect(ShownFences.of(fences, table, []).map(\.id) == ["west", "east", "across"])
    }

    @Test func whatWasRefusedIsNowhere() {
        var table = Self.table([(52, 13), (10, 10)])
        table.judge(1, EpochTable.Verdict(kind: .refused, reason: "implied-speed"))
        #expect(ShownFences.of([Self.circle("far", 10, 10)], table, []).isEmpty)
        #expect(ShownFences.of([Self.circle("far", 10, 10)], EpochTable(), []).isEmpty)
    }
}
