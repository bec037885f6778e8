import Configuration
import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostCore

@testable import Inspect

/// Who passes a page on does not want to show where trips begin and end.
@Suite struct HiddenEndsTests {
    private static let whole = ReportLogTests.data
    private static let hidden = Result { try AlteredDrive().data(report(200)) }

    private static func report(_ metres: Double, _ loaded: LoadedConfiguration? = nil) -> ReportLog {
        var options = ReportOptions()
        options.hideEnds = metres
        return ReportLog(loaded, options: options)
    }

    private static func places(_ table: EpochTable) -> [Coordinate] { (0..<table.count).map(table.coordinate) }

    @Test func theEndsOfTripsAreHidden() throws {
        let (whole, data) = (try Self.whole.get(), try Self.hidden.get())
        let times = whole.journey.trips.flatMap { [$0.start, $0.end] }
        let ends: [Coordinate] = times.compactMap { whole.table.row(at: $0).map(whole.table.coordinate) }
        #expect(ends.count == 4)
        #expect(data.table.count < whole.table.count && data.table.count > 100)
        let places = Self.places(data.table)
        #expect(places.allSatisfy { place in ends.allSatisfy { $0.distance(to: place) > 200 } })
        #expect(data.journey.stops.allSatisfy { $0.place == nil })
    }

    /// The last fix of an open trip is no place to hide when it lies far away: that before it is.
    @Test func anOutlierAtTheEndDoesNotShowTheEnd() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 500)
        let whole = try drive.data()
        let end = try #require(Self.places(whole.table).last)
        #expect(whole.journey.trips.last?.isOpen == true)
        drive.append([
            "GNRMC,070820.00,A,5331.00000,N,01324.00000,E,20.0,90.0,020326,,,A",
            "GNGGA,070820.00,5331.00000,N,01324.00000,E,1,09,1.00,39.0,M,39.6,M,,",
        ])
        let data = try drive.data(Self.report(200))
        #expect(data.tracked.rejected == 1)
        #expect(data.table.count > 100)
        #expect(Self.places(data.table).allSatisfy { $0.distance(to: end) > 200 && $0.latitude < 53 })
    }

    /// Outside of the hours no end of a trip is known.
    @Test func nothingOutsideOfTheHoursIsShown() throws {
        let text = smallest + "[schedule]\ntimezone = \"UTC\"\ntrack = \"mon 07:00-07:08\"\n"
        var drive = try AlteredDrive()
        drive.cut(after: 700)
        let data = try drive.data(Self.report(200, try loaded(text)))
        #expect(data.table.count > 50)
        #expect((data.table.times.last ?? 0) < data.first + 8 * 60_000)
    }

    /// No line may be drawn over what is hidden.
    @Test func saysWhereItWasCut() throws {
        let data = try Self.hidden.get()
        #expect(!data.table.cuts.isEmpty)
        for row in data.table.cuts { #expect(data.table.times[row] - data.table.times[row - 1] > 1000) }
        #expect(try head(data)["cuts"] as? [Int] == data.table.cuts)
        #expect(try Self.whole.get().table.cuts.isEmpty)
    }

    @Test func theHeadingStillSaysWhenTheLogWas() throws {
        let (whole, data) = (try Self.whole.get(), try Self.hidden.get())
        #expect(data.table.times.first != whole.first)
        #expect((data.first, data.last) == (whole.first, whole.last))
        // The part that is hidden is no silence of the receiver.
        #expect(data.silence?.length == 1000)
        let head = try head(data)
        #expect((head["summary"] as? [String: Any])?["first_ms"] as? Int64 == whole.first)
        #expect(HealthTables.html(of: data, made: 0).contains("<td>longest silence</td><td class=\"n\">1 s at"))
        #expect(ReportTables.html(of: data).contains("07:00:00 to 2026-03-02 07:31:16"))
    }

    @Test func aPageWithoutPositionsIsNotMade() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 300)
        #expect {
            try drive.data(Self.report(100_000))
        } throws: { error in
            "\(error)".contains("every position of the log lies within 100.0 km")
        }
    }

    @Test func stopsAreNamedWithoutTheirPlace() throws {
        let stops = try #require(try head(Self.hidden.get())["stops"] as? [[String: Any]])
        #expect(stops.count == 3)
        #expect(stops.allSatisfy { $0["lat"] is NSNull && $0["lon"] is NSNull })
    }

    @Test func placesAreFoundAcrossTheirLatitudes() {
        func place(_ latitude: Double, _ longitude: Double) -> Coordinate {
            Coordinate(latitudeE7: Int32(latitude * 1e7), longitudeE7: Int32(longitude * 1e7))
        }
        let hidden = HiddenPlaces([place(52, 13), place(52, 13), place(-10, 179.9999), place(89.9999, 0)], 200)
        #expect(hidden.contains(place(52.0017, 13)))
        #expect(!hidden.contains(place(52.0019, 13)))
        #expect(hidden.contains(place(52, 13.002)))
        #expect(!hidden.contains(place(52, 13.003)))
        #expect(hidden.contains(place(-10, -179.9999)))
        #expect(hidden.contains(place(89.9999, 180)))
        #expect(!HiddenPlaces([], 200).contains(place(52, 13)))
    }
}
