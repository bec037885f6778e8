import Testing
import WaypostCore

@testable import Scoring

@Suite struct LineScoreTests {
    private func point(_ time: Int, _ north: Double) -> DriveRecord.Point {
        DriveRecord.Point(time: time, at: time, place: PlanePoint(east: 0, north: north), moving: true)
    }

    private func seen(_ time: Int, _ north: Double, east: Double = 0, accuracy: Double? = 4) -> DriveRecord.Seen {
        DriveRecord.Seen(time: time, place: PlanePoint(east: east, north: north), accuracy: accuracy)
    }

    @Test func eachFixIsHeldAgainstTheLineAtItsOwnTime() {
        let kept = [point(0, 0), point(10_000, 100), point(20_000, 100)]
        let score = LineScore(of: [seen(5000, 50, east: 3), seen(8000, 60), seen(15_000, 100)], along: kept)
        #expect(score.worst == 20)
        #expect(score.excess == 11 && score.excessAt == 8000)
    }

    @Test func whatLiesBetweenNoTwoLocationsIsNotJudged() {
        let score = LineScore(of: [seen(-1000, 500), seen(30_000, 500)], along: [point(0, 0), point(10_000, 100)])
        #expect(score.worst == nil && score.excess == nil)
    }
}
