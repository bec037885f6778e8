import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct GapWatchTests {
    private var watch = GapWatch(gapAfter: .seconds(60), heartbeat: .seconds(600), recorded: nil)
    private func at(_ seconds: Int64) -> EventTime { .zero + .seconds(seconds) }

    @Test func aSlowReceiverIsNotSilentBetweenItsFixes() {
        #expect(watch.isGap(60.1, interval: 1) && !watch.isGap(60, interval: 1) && !watch.isGap(61, interval: 25))
        #expect(watch.due(lastFix: at(0), woken: nil, interval: 1) == at(60))
        #expect(watch.due(lastFix: at(0), woken: nil, interval: 25) == at(75))
    }

    @Test func silenceCountsFromTheLatestOfFixWakingAndHours() {
        var watch = watch
        #expect(watch.due(lastFix: at(0), woken: at(10), interval: 1) == at(70))
        watch.hoursBegan(at: at(30))
        #expect(watch.due(lastFix: at(0), woken: at(10), interval: 1) == at(90))
        watch.began(since: UTCTime(milliseconds: 0), reason: .receiverLost)
        #expect(watch.due(lastFix: at(0), woken: nil, interval: 1) == nil)
        watch.fixReceived()
        #expect(!watch.isOpen)
    }

    @Test func recordsOneGapInAHeartbeatAlsoAcrossARestart() {
        var watch = watch
        let time = UTCTime(milliseconds: 1_000_000)
        #expect(watch.mayRecord(nil, at: at(0)))
        watch.recorded(time, at: at(0))
        #expect(!watch.mayRecord(nil, at: at(599)) && watch.mayRecord(nil, at: at(600)))
        let restarted = GapWatch(gapAfter: .seconds(60), heartbeat: .seconds(600), recorded: time)
        #expect(!restarted.mayRecord(time + .seconds(599), at: at(0)))
        #expect(restarted.mayRecord(time + .seconds(600), at: at(0)))
    }
}
