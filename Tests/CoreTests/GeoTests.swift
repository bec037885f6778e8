import Testing
import WaypostCore

@Suite struct UTCTimeTests {
    @Test(
        arguments: [
            ("2020-02-06T18:14:34.000Z", 1_581_012_874_000), ("1970-01-01T00:00:00.000Z", 0),
            ("1969-12-31T23:59:59.999Z", -1), ("2000-02-29T12:00:00.001Z", 951_825_600_001),
        ] as [(String, Int64)])
    func formatsISO8601(_ text: String, _ milliseconds: Int64) {
        #expect(UTCTime(milliseconds: milliseconds).iso8601 == text)
    }

    @Test func civilDatesRoundTrip() {
        let wrong = stride(from: -800_000, through: 800_000, by: 37).first { days in
            let date = CivilDate(daysSince1970: days)
            return date.daysSince1970 != days || CivilDate(year: date.year, month: date.month, day: date.day) != date
        }
        #expect(wrong == nil)
    }

    @Test func rejectsDaysThatDoNotExist() {
        let days: [(Int, Int, Int)] = [(2023, 2, 29), (2024, 2, 29), (1900, 2, 29), (2024, 13, 1), (2024, 4, 31)]
        let exist: [Bool] = days.map { CivilDate(year: $0.0, month: $0.1, day: $0.2) != nil }
        #expect(exist == [false, true, false, false, false])
    }
}

@Suite struct CoordinateTests {
    @Test func measuresAQuarterOfTheMeridian() throws {
        let equator = try #require(Coordinate(latitude: 0, longitude: 0))
        let pole = try #require(Coordinate(latitude: 90, longitude: 0))
        #expect(abs(equator.distance(to: pole) - Coordinate.earthRadius * .pi / 2) < 0.01)
        #expect(equator.distance(to: equator) == 0)
    }

    @Test func boundsOfADistanceHoldEverywhere() {
        for latitude in stride(from: Int32(-890_000_000), through: 890_000_000, by: 17_800_000) {
            for (north, east) in [
                (0, 0), (3, 0), (0, 7), (900, -40_000), (-999_999, 999_999), (-5_000_000, 20), (0, 3_599_999_990),
            ] {
                let from = Coordinate(latitudeE7: latitude, longitudeE7: -1_799_999_995)
                let to = Coordinate(latitudeE7: latitude + Int32(north), longitudeE7: Int32(-1_799_999_995 + east))
                let metres = from.distance(to: to)
                #expect(from.distanceMax(to: to) >= metres)
                #expect(!from.isSurelyAtLeast(metres * 1.0001 + 0.001, from: to))
                if abs(latitude) < 700_000_000, abs(north) < 1_000_000, abs(east) < 1_000_000 {
                    #expect(from.isSurelyAtLeast(metres / 2, from: to))
                }
            }
        }
    }

    @Test func bearingsPointTheRightWay() throws {
        let here = try #require(Coordinate(latitude: 52.5, longitude: 13.4))
        let ways: [(latitude: Double, longitude: Double, bearing: Double, tolerance: Double)] = [
            (52.6, 13.4, 0, 0), (52.5, 13.5, 90, 0.1), (52.4, 13.4, 180, 1e-9), (52.5, 13.4, 0, 0),
        ]
        for way in ways {
            let there = try #require(Coordinate(latitude: way.latitude, longitude: way.longitude))
            #expect(abs(here.bearing(to: there) - way.bearing) <= way.tolerance, "\(way)")
        }
    }

    @Test(arguments: [(91, 0), (0, 181), (.nan, 0), (0, .infinity)] as [(Double, Double)])
    func refusesImpossibleDegrees(_ latitude: Double, _ longitude: Double) {
        #expect(Coordinate(latitude: latitude, longitude: longitude) == nil)
    }

    @Test func planeCrossesTheAntimeridian() throws {
        let east = try #require(Coordinate(latitude: 10, longitude: 179.9999))
        let west = try #require(Coordinate(latitude: 10, longitude: -179.9999))
        let point = LocalPlane(origin: east).point(west)
        #expect(abs(point.east - east.distance(to: west)) < 0.01)
        #expect(LocalPlane(origin: east).coordinate(point) == west)
    }
}

@Suite struct EventTimeTests {
    @Test func saturatesInsteadOfOverflowing() {
        let late = EventTime(nanoseconds: .max - 5)
        #expect((late + .seconds(1)).nanoseconds == .max)
        #expect(Duration.seconds(Int64.max).nanoseconds == .max)
        #expect((EventTime.zero + .milliseconds(1500)).seconds(since: .zero) == 1.5)
    }
}
