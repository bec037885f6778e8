import Testing
import WaypostCore

@testable import Inspect

/// Dates that a receiver got wrong, for a while.
@Suite struct WrongDateTests {
    private static let begin: Int64 = 1_772_434_800_000  // 2026-03-02 07:00:00

    @Test func aFirstDateInTheFutureIsForgotten() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 1000)
        drive.change(0..<1) { $0.replacing("020326", with: "020330") }
        let data = try drive.data()
        // Ten fixes pass before the tracker follows the date that is earlier.
        #expect(data.table.count == 1000 - 10 && data.table.leftOut == 10)
        #expect(data.first == Self.begin + 10_000)
        #expect(data.journey.trips.count == 1)
        #expect(data.journey.stops.allSatisfy { $0.start >= data.first && $0.end <= data.last })
        #expect(data.kept.allSatisfy { $0.time <= data.last })
    }

    @Test func aDateInTheFutureOnTheWayTakesNoFix() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 1000)
        drive.change(400..<401) { $0.replacing("020326", with: "020330") }
        let data = try drive.data()
        #expect(data.table.count == 1000 && data.table.leftOut == 0)
        #expect(data.first == Self.begin && data.last == Self.begin + 999_000)
        #expect(data.journey.trips.allSatisfy { $0.start >= data.first && $0.end <= data.last })
    }

    /// The fix is dated by its time of day.
    @Test func aDateInTheFutureAtTheEndTakesNoFix() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 300)
        drive.change(299..<300) { $0.replacing("020326", with: "020330") }
        let data = try drive.data()
        #expect(data.last == Self.begin + 299_000)
        #expect(data.table.leftOut == 0)
    }

    @Test func fixesOf1980BeforeTheDriveAreLeftOut() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 300)
        drive.change(0..<3) { $0.replacing("020326", with: "060180") }
        let data = try drive.data()
        #expect(data.first == Self.begin + 3000)
        #expect(data.table.leftOut == 3)
        #expect((data.silence?.length ?? 0) < 10_000)
        #expect(data.journey.gaps.allSatisfy { $0.start >= data.first })
    }

    @Test func aClockSetBackLeavesTheHourThatItSays() throws {
        let log = ReportLogTests.log("clock-set-back-an-hour")
        let data = try ReportLog(nil).data(of: [log])
        #expect(data.table.count == 15)
        #expect(data.table.leftOut == 15)
    }

    /// Two parts of a week are one log: nothing is left out.
    @Test func recordingsDaysApartStayTogether() throws {
        var drive = try AlteredDrive()
        drive.cut(after: 100)
        drive.change(50..<100) { $0.replacing("020326", with: "060326") }
        let data = try drive.data()
        #expect(data.table.count == 100)
        #expect(data.table.leftOut == 0)
    }
}
