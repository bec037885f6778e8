import DriveSimulation
import Scoring
import Testing
import WaypostTracking

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

    private static let late = [Double](repeating: 45, count: 10)

    @Test func eachFaultMissesItsTarget() {
        /// A change of a good score, and the target that it misses.
        let faults: [((inout MotionScore) -> Void, String?)] = [
            ({ _ in }, nil), ({ $0.falseTrips = 1 }, "false trips / parked day"),
            ({ $0.phantomParked = 1 }, "phantom / parked day after the stop"),
            ({ $0.phantomStopping = 11 }, "phantom / stop while stopping"), ({ $0.missed = 1 }, "missed trips ≥ 300 m"),
            ({ $0.merged = 1 }, "merged trips"), ({ $0.unseenStops = 1 }, "stops not seen"),
            ({ $0.falseStops = 1 }, "false stops"), ({ $0.odometer = 10_160 }, "odometer"),
            ({ $0.stopDelays.append(-2.5) }, "stop delay, farthest"),
            ({ $0.blindStopDelays.append(3) }, "of a blind end, after it could be known"),
            ({ $0.departedErrors = [16] }, "departed error, p95"),
            ({ ($0.trueStops, $0.announcedStops, $0.matchedStops) = (100, 100, 97) }, "stop F1"),
            // The start is late only in metres and seconds.
            ({ $0.startMetres = Self.late }, nil),
            (
                { ($0.startMetres, $0.startSeconds) = (Self.late, [Double](repeating: 11, count: 10)) },
                "start latency, median"
            ),
        ]
        for (change, target) in faults {
            #expect(missed(change) == (target.map { ["\($0) (open, street)"] } ?? []))
        }
        for (trips, target) in [(0, []), (1, []), (2, ["false trips / parked day (canyon)"])] as [(Int, [String])] {
            #expect(missed({ $0.falseTrips = trips }, column: .canyon) == target)
        }
    }

    @Test func jamIsApart() {
        var score = MotionScore()
        (score.stopDelays, score.metres, score.odometer) = ([100], 100, 102.5)
        var column = ColumnScore()
        column.add(score, scenario: "jam")
        let missed = MotionTable(tracker: [.openStreet: column], baseline: [:]).missed()
        #expect(missed == ["stop delay, median (open, street)"])
    }

    @Test func quantilesAreByNearestRank() {
        let hundred: [Double] = (1...100).map { Double($0) }
        let found = [(0.5, [3, 1, 2]), (0.95, hundred), (0.95, [])].map { MotionScore.quantile($0.0, of: $0.1) }
        #expect(found == [2, 95, nil])
    }

    @Test func rareTargetsAreNotJudgedByFewDrives() {
        var score = MotionScore()
        (score.startMetres, score.startSeconds, score.missed) = ([500], [100], 1)
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
