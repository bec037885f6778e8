import DriveSimulation
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Scoring

/// The judge must see what is wrong, before its praise is worth anything.
@Suite struct TrackErrorVerifierTests {
    private static let plane = LocalPlane(origin: SimulatedDrive.Settings.defaultOrigin)

    private static func point(_ second: Int64, east: Double, north: Double) -> TrackErrorVerifier.Point {
        TrackErrorVerifier.Point(
            time: UTCTime(milliseconds: second * 1000),
            coordinate: plane.coordinate(PlanePoint(east: east, north: north)))
    }

    /// 10 m/s to the north for ten seconds, then to the east for ten.
    private static let corner = (Int64(0)...20).map { second in
        point(second, east: 10 * Double(max(0, second - 10)), north: 10 * Double(min(10, second)))
    }

    private static func records(_ seconds: [Int64], reasons: [Int64: String] = [:]) -> [Location] {
        seconds.map { second in
            Location(
                trackable: "asset", time: UTCTime(milliseconds: second * 1000), at: .zero,
                coordinate: corner[Int(second)].coordinate, moving: true, reason: reasons[second] ?? "track-error")
        }
    }

    @Test func aCornerThatWasCutIsSeen() {
        let right = TrackErrorVerifier(records: Self.records([0, 10, 20]), taken: Self.corner)
        #expect(right.worst < 0.02 && right.uncovered == 0)
        let wrong = TrackErrorVerifier(records: Self.records([0, 20]), taken: Self.corner)
        #expect(abs(wrong.worst - 50 * 2.0.squareRoot()) < 0.1)
        #expect(wrong.worstTime == UTCTime(milliseconds: 10_000))
        // In the right place at the wrong time is wrong.
        var late = Self.records([0, 10, 20])
        late[1].time = UTCTime(milliseconds: 12_000)
        #expect(TrackErrorVerifier(records: late, taken: Self.corner).worst > 15)
    }

    @Test func whatNoRecordCoversIsSeen() {
        #expect(TrackErrorVerifier(records: Self.records([5, 20]), taken: Self.corner).uncovered == 5)
        #expect(TrackErrorVerifier(records: [], taken: Self.corner).uncovered == 21)
        #expect(TrackErrorVerifier(records: Self.records([0, 10]), taken: Self.corner).worst > 99)
    }

    @Test func aNewSegmentCoversNothingBeforeIt() {
        let gap = TrackErrorVerifier(
            records: Self.records([0, 10, 15, 20], reasons: [15: "gap"]),
            taken: Array(Self.corner[...10]) + Array(Self.corner[15...]))
        #expect(gap.worst < 0.02)
        #expect(gap.spans.map(\.kept) == [1, 1])
    }

    @Test func theLeastNumberIsTheLeast() throws {
        let verifier = TrackErrorVerifier(records: Self.records([0, 5, 10, 15, 20]), taken: Self.corner)
        let span = try #require(verifier.spans.first)
        #expect(verifier.spans.count == 1 && span.kept == 4)
        #expect(span.least(bound: 5, delay: 60_000) == 2)
        #expect(span.least(bound: 100, delay: 60_000) == 1)
        #expect(span.least(bound: 5, delay: 5000) == 4)
        #expect(span.least(bound: 5, delay: 500) == 20)
    }

    @Test func theWaysAcrossTheAntimeridianAreShort() {
        let longitudes: [Int32] = [1_799_990_000, 1_800_000_000, -1_799_990_000]
        let points: [TrackErrorVerifier.Point] = longitudes.enumerated().map {
            let place = Coordinate(latitudeE7: 0, longitudeE7: $0.element)
            return TrackErrorVerifier.Point(time: UTCTime(milliseconds: Int64($0.offset) * 1000), coordinate: place)
        }
        #expect(TrackErrorVerifier.distance(points[1], points[0], points[2]) < 0.02)
    }

    /// Under the noise of the canyon; that of the street is a part of it.
    @Test(arguments: Scenario.all.filter { !["parked-day", "day"].contains($0.name) })
    func everySimulatedDriveKeepsItsPromise(scenario: Scenario) {
        let seed = testSeed(1)
        var drive = SimulatedDrive(
            scenario, settings: .init(seed: seed, preset: .canyon, sentences: [.rmc, .gga]))
        let score = TrackErrorScore(drive.allBytes(), bound: 5, maxDelay: 30, countsPoints: false)
        #expect(
            score.keepsItsPromise,
            "\(scenario.name) seed \(seed): \(score.worst) m at \(score.worstTime?.iso8601 ?? "")")
        #expect(score.kept > 10)
    }
}
