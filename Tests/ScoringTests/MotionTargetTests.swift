import DriveSimulation
import Scoring
import Testing
import Tracking

@Suite struct MotionTargetTests {
    private func missed(_ change: (inout MotionScore) -> Void, column: ScoreColumn = .openStreet) -> [String] {
        var score = MotionScore()
        score.parkedSeconds = 86_400
        score.trips = 10
        score.metres = 10_000
        score.odometer = 10_000
        score.startMetres = .init(repeating: 30, count: 10)
        score.startSeconds = .init(repeating: 6, count: 10)
        score.stopDelays = .init(repeating: 1, count: 10)
        change(&score)
        var columnScore = ColumnScore()
        columnScore.add(score, scenario: "city")
        return MotionTable(tracker: [column: columnScore], baseline: [:]).missed()
    }

    @Test func goodScoreMissesNothing() {
        #expect(missed { _ in } == [])
        #expect(missed({ _ in }, column: .canyon) == [])
    }

    @Test func eachFaultMissesItsTarget() {
        #expect(missed { $0.falseTrips = 1 } == ["false trips / parked day (open, street)"])
        #expect(missed({ $0.falseTrips = 1 }, column: .canyon) == [])
        #expect(missed({ $0.falseTrips = 2 }, column: .canyon) == ["false trips / parked day (canyon)"])
        #expect(missed { $0.phantomParked = 1 } == ["phantom / parked day after the stop (open, street)"])
        #expect(missed { $0.phantomStopping = 11 } == ["phantom / stop while stopping (open, street)"])
        #expect(missed { $0.missed = 1 } == ["missed trips ≥ 300 m (open, street)"])
        #expect(missed { $0.merged = 1 } == ["merged trips (open, street)"])
        #expect(missed { $0.unseenStops = 1 } == ["stops not seen (open, street)"])
        #expect(missed { $0.falseStops = 1 } == ["false stops (open, street)"])
        #expect(missed { $0.odometer = 10_160 } == ["odometer (open, street)"])
        #expect(missed { $0.stopDelays.append(-2.5) } == ["stop delay, farthest (open, street)"])
        #expect(missed { $0.blindStopDelays.append(3) } == ["of a blind end, after it could be known (open, street)"])
        #expect(missed { $0.departedErrors = [16] } == ["departed error, p95 (open, street)"])
        #expect(
            missed {
                ($0.trueStops, $0.announcedStops, $0.matchedStops) = (100, 100, 97)
            } == ["stop F1 (open, street)"])
    }

    @Test func startIsLateOnlyInMetresAndSeconds() {
        #expect(missed { $0.startMetres = .init(repeating: 45, count: 10) } == [])
        #expect(
            missed {
                $0.startMetres = .init(repeating: 45, count: 10)
                $0.startSeconds = .init(repeating: 11, count: 10)
            } == ["start latency, median (open, street)"])
    }

    @Test func jamIsApart() {
        var score = MotionScore()
        score.stopDelays = [100]
        score.metres = 100
        score.odometer = 102.5
        var column = ColumnScore()
        column.add(score, scenario: "jam")
        let missed = MotionTable(tracker: [.openStreet: column], baseline: [:]).missed()
        #expect(missed == ["stop delay, median (open, street)"])
    }

    @Test func quantilesAreByNearestRank() {
        #expect(MotionScore.quantile(0.5, of: [3, 1, 2]) == 2)
        #expect(MotionScore.quantile(0.95, of: (1...100).map(Double.init)) == 95)
        #expect(MotionScore.quantile(0.95, of: []) == nil)
    }

    @Test func rareTargetsAreNotJudgedByFewDrives() {
        var score = MotionScore()
        score.startMetres = [500]
        score.startSeconds = [100]
        score.missed = 1
        var column = ColumnScore()
        column.add(score, scenario: "city")
        let table = MotionTable(tracker: [.openStreet: column], baseline: [:])
        #expect(table.missed(robust: true) == ["missed trips ≥ 300 m (open, street)"])
        #expect(table.text.contains("MISS") && table.text.contains("≤ 80 m or 20 s"))
    }

    @Test func demoDriveIsScoredAgainstItsTruth() throws {
        let scenario = try #require(Scenario.named("demo"))
        let drive = SimulatedDrive(scenario, settings: .init(seed: 7, preset: .open))
        let run = SimulatedRun(drive)
        let score = MotionScore(of: run.tracker, against: drive.truth)
        #expect(score.trips == 2 && score.missed == 0 && score.merged == 0 && score.falseTrips == 0)
        #expect(abs(score.odometerError ?? 1) < 0.05)
        // The plain filter needs 200 m to believe a start.
        let plain = MotionScore(of: run.baseline, against: drive.truth)
        #expect(plain.startMetres.allSatisfy { $0 > 190 })
        #expect(run.sentences > 5000)
    }
}
