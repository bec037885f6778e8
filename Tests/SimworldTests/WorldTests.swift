import Testing

@testable import Simworld

extension SimulatedDiskTests {
    /// The disk is one for the process, so these run in the same row.
    @Suite(.serialized) struct WorldTests {
        @Test func theSameSeedIsTheSameRun() {
            let (first, second) = (World(seed: 26).run(), World(seed: 26).run())
            #expect(first.violations.isEmpty && first.events > 100 && first.recorded > 10)
            #expect(first.events == second.events && first.recorded == second.recorded)
            #expect(first.accepted == second.accepted && first.simulated == second.simulated)
            #expect(first.answers == second.answers)
        }

        /// What others got as a gap comes out of a quarantine as it was refused.
        @Test func theQuarantineKeepsWhatTheQueueMadeAGap() {
            #expect(World(seed: 40_007_433).run().violations.isEmpty)
        }

        @Test func aWorldWithoutFaultsIsGood() {
            // None of these has an endpoint that wants the newest row alone.
            for seed in [5, 6, 8] as [UInt64] {
                let report = World(seed: seed, leftOut: Set(0..<100)).run()
                #expect(report.violations.isEmpty, "\(report.violations)")
                #expect(report.processes == 1)
                #expect(report.accepted >= report.recorded / 2)
            }
        }

        @Test func onlyWorldsThatMayBeLiveAreLive() {
            let isLive = (0..<160 as Range<UInt64>).map { seed in
                let text = World(seed: seed).configurationText
                let isLive = text.contains("[[channel]]") || text.contains("mqtts://")
                #expect(!isLive || World.isLive(seed), "\(seed)")
                return isLive
            }
            #expect(isLive.count { $0 } > 30)
        }

        @Test func settingsAndCommandsComeFromAfar() {
            let report = World(seed: 1_000_000_021).run()
            #expect(report.violations.isEmpty, "\(report.violations)")
            #expect(report.remoteChanges > 1 && report.remoteCommands > 4)
        }

        @Test func startsWhileTheFileHasAMistake() {
            let report = World(seed: 61).run()
            #expect(report.violations.isEmpty, "\(report.violations)")
            #expect(report.faults["mistake", default: 0] > 0)
            #expect(report.faults["start on the last good configuration", default: 0] > 0)
        }
    }
}
