import DriveSimulation
import Scoring
import Testing
import WaypostCore

@Suite struct ActivityScoreTests {
    /// A few ways, in a street: what `waypost-score activity` does with many.
    @Test(arguments: ["walk", "run", "ride", "ride-and-walk", "jam", "dense-traffic", "walk-drive-walk"])
    func eachWayIsDistinguishedFromTheOthers(name: String) throws {
        let scenario = try #require(Scenario.named(name))
        var score = ActivityScore()
        score.add(ActivityScore(of: SimulatedDrive(scenario, settings: .init(seed: 3, preset: .street))))
        #expect(Double(score.totalRight) >= 0.93 * Double(score.total), "\n\(ActivityTable(score).text)")
        for (truth, answers) in score.counts where truth != .parked {
            let total = Double(answers.values.reduce(0, +))
            #expect(Double(score.right[truth] ?? 0) >= 0.9 * total, "\n\(ActivityTable(score).text)")
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
        #expect((35_000...45_000).contains(asDrive.counts[.vehicleStanding]?[.inVehicle] ?? 0))
        let asWalk = ActivityScore(of: log, travelling: .onFoot)
        #expect(asWalk.right[.onFoot] == nil)
    }
}
