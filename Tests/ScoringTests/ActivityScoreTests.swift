import DriveSimulation
import Positioning
import Scoring
import Testing

@Suite struct ActivityScoreTests {
    /// A few ways, in a street: what `waypost-score activity` does with many. In a queue that crawls, and on a short slow ride, the
    /// movement of ten minutes may be that of a ride, or of a run; the weights are those of recorded drives.
    @Test(arguments: [
        ("walk", 0.93, 0.9), ("run", 0.93, 0.9), ("ride", 0.93, 0.9), ("ride-and-walk", 0.84, 0.7), ("jam", 0.85, 0.75),
        ("dense-traffic", 0.92, 0.6), ("walk-drive-walk", 0.93, 0.9),
    ])
    func eachWayIsDistinguishedFromTheOthers(name: String, together: Double, each: Double) throws {
        let scenario = try #require(Scenario.named(name))
        var score = ActivityScore()
        score.add(ActivityScore(of: SimulatedDrive(scenario, settings: .init(seed: 3, preset: .street))))
        #expect(Double(score.totalRight) >= together * Double(score.total), "\n\(ActivityTable(score).text)")
        for (truth, answers) in score.counts where truth != .parked {
            let total = Double(answers.values.reduce(0, +))
            #expect(Double(score.right[truth] ?? 0) >= each * total, "\n\(ActivityTable(score).text)")
        }
    }

    @Test func theTableSharesOutTheTimeAfterTheFirstHalfMinute() throws {
        let scenario = Scenario(name: "walk", summary: "") { _ in
            [.park(seconds: 90), .walk(metres: 180, pace: 1.5), .park(seconds: 60)]
        }
        let score = ActivityScore(of: SimulatedDrive(scenario, settings: .init(seed: 1, preset: .open)))
        // 60 of 90 s, 92 of about 122 s, 30 of 60 s.
        #expect((180_000...184_000).contains(score.total), "\(score.total)")
        #expect(score.counts.keys.count == 2 && score.counts[.onFoot]?[.onFoot] != nil)
        let table = ActivityTable(score)
        #expect(table.isMet && table.text.hasPrefix("truth     hours"))
        #expect(table.text.contains("on foot     0.0") && table.text.contains("together"))
    }

    @Test func aLogIsScoredByWhatItsReceiverDid() {
        let scenario = Scenario(name: "drive", summary: "") { _ in
            [.park(seconds: 60), .drive(metres: 2000, limit: 13), .halt(seconds: 40), .drive(metres: 500, limit: 13)]
        }
        var drive = SimulatedDrive(scenario, settings: .init(seed: 1, preset: .open))
        let log = drive.allBytes()
        let asDrive = ActivityScore(of: log, travelling: .inVehicle)
        #expect(asDrive.right[.inVehicle] == asDrive.counts[.inVehicle]?[.inVehicle])
        #expect((30_000...45_000).contains(asDrive.counts[.vehicleStanding]?[.inVehicle] ?? 0))
        let asWalk = ActivityScore(of: log, travelling: .onFoot)
        #expect(asWalk.right[.onFoot] == nil)
    }
}
