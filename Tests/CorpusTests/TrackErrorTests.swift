import DriveSimulation
import Scoring
import Testing

/// The rule `track-error` on recorded drives: what it promises, and what it saves.
@Suite struct TrackErrorTests {
    @Test(arguments: Corpus.logs)
    func everyFixLiesWithinTheBound(log: String) throws {
        let bytes = try Corpus.bytes(of: log)
        for bound in TrackErrorTable.bounds {
            for delay in TrackErrorTable.delays {
                let score = TrackErrorScore(bytes, bound: bound, maxDelay: delay, countsPoints: false)
                #expect(
                    score.keepsItsPromise,
                    "\(bound) m, \(delay) s: \(score.worst) m at \(score.worstTime?.iso8601 ?? "–")")
            }
        }
    }

    /// At 5 m, over the recorded car drives and simulated ones of fixed seeds.
    @Test(arguments: [(30, 1.10, 0.65), (120, 1.25, 0.60)])
    func carDrivesNeedFewPoints(delay: Int, overLeast: Double, overPlain: Double) throws {
        var drives = [
            try Corpus.bytes(of: "drive_mtv_f9k_ublox.nmea"), try Corpus.bytes(of: "drive_z205_switzerland_sirf.nmea"),
        ]
        for entry in TrackErrorScenario.all where entry.isCar {
            var drive = SimulatedDrive(entry.scenario, settings: .init(seed: 3, preset: .street))
            drives.append(drive.allBytes())
        }
        let scores = drives.map { TrackErrorScore($0, bound: 5, maxDelay: delay) }
        let kept = scores.reduce(0) { $0 + $1.kept }
        let least = scores.reduce(0) { $0 + $1.least }
        let plain = scores.reduce(0) { $0 + $1.baseline }
        #expect(Double(kept) <= overLeast * Double(least))
        #expect(Double(kept) <= overPlain * Double(plain))
        #expect(scores.allSatisfy { $0.keepsItsPromise })
    }
}
