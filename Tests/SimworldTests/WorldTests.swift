import Testing

@testable import Simworld

extension SimulatedDiskTests {
    /// The disk is one for the process, so these run in the same row.
    @Suite(.serialized) struct WorldTests {
        @Test func theSameSeedIsTheSameRun() {
            for seed in [3, 12] as [UInt64] {
                let (first, second) = (World(seed: seed).run(), World(seed: seed).run())
                #expect(first.events == second.events && first.events > 100)
                #expect(first.recorded == second.recorded && first.recorded > 10)
                #expect(first.accepted == second.accepted)
                #expect(first.answers == second.answers)
                #expect(first.simulated == second.simulated)
            }
        }

        /// What others got as a gap comes out of a quarantine as it was refused.
        @Test func theQuarantineKeepsWhatTheQueueMadeAGap() {
            #expect(World(seed: 40_007_433).run().violations.isEmpty)
        }

        @Test func aWorldWithoutFaultsIsGood() {
            // None of these has an endpoint that wants the newest row alone.
            for seed in 1...5 as ClosedRange<UInt64> {
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
            var (changes, commands) = (0, 0)
            for seed in 1_000_000_000...1_000_000_005 as ClosedRange<UInt64> {
                let report = World(seed: seed).run()
                #expect(report.violations.isEmpty, "\(report.violations)")
                changes += report.remoteChanges
                commands += report.remoteCommands
            }
            #expect(changes > 3 && commands > 10)
        }

        @Test func startsWhileTheFileHasAMistake() {
            var starts = 0
            for seed in [13, 29, 45] as [UInt64] {
                let report = World(seed: seed).run()
                #expect(report.violations.isEmpty, "\(report.violations)")
                #expect(report.faults["mistake", default: 0] > 0)
                starts += report.faults["start on the last good configuration", default: 0]
            }
            #expect(starts > 0)
        }
    }
}
