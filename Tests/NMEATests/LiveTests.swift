import Testing
import WaypostCore
import WaypostNMEA

@Suite("Live closing of epochs") struct LiveTests {
    private func cycle(_ second: Int) -> String { rmc("1015\(second)") + gga("1015\(second)") + gsa(mode: "3") }

    @Test func closesAfter300MillisecondsOfSilence() {
        var line = Line()
        line.receive(rmc("101510"), at: 1000)
        line.receive(gga("101510"), at: 1290)
        #expect(line.decoder.nextDeadline == Line.instant(1590))
        line.decoder.deadlineReached(at: Line.instant(1589)) { _, _ in Issue.record("too early") }
        line.wait(until: 1590)
        #expect(line.instants == [1590])
        #expect(line.fixes[0].at == Line.instant(1000))
        #expect(line.fixes[0].altitudeMSL == 545.4)
        #expect(line.decoder.nextDeadline == nil)
    }

    @Test func anyByteBreaksTheSilence() {
        var line = Line()
        line.receive(rmc("101510"), at: 1000)
        line.receive("x", at: 1250)
        line.wait(until: 1549)
        #expect(line.emitted.isEmpty)
        line.wait(until: 1550)
        #expect(line.fixes.count == 1)
    }

    @Test func theEpochBeginsAtTheDollarOfItsFirstSentence() {
        var line = Line()
        let text = rmc("101510")
        line.receive(String(text.prefix(10)), at: 1000)
        line.receive(String(text.dropFirst(10)), at: 1200)
        line.wait(until: 2000)
        #expect(line.fixes.map(\.at) == [Line.instant(1000)])
    }

    @Test func hasNoDeadlineWithoutAnOpenEpochOrForAFile() {
        var line = Line()
        #expect(line.decoder.nextDeadline == nil)
        line.receive("garbage" + gsa(mode: "3") + sentence("GPGSV,1,1,00"), at: 0)
        #expect(line.decoder.nextDeadline == nil)
        var file = NMEADecoder()
        file.decode(Array(rmc("101510").utf8).span, at: .zero) { _, _ in }
        #expect(file.nextDeadline == nil)
        file.deadlineReached(at: Line.instant(100_000)) { _, _ in Issue.record("a file has no silence") }
    }

    @Test func ignoresTheRestOfAnEpochThatSilenceClosed() {
        var line = Line()
        line.receive(rmc("101510"), at: 1000)
        line.receive(gga("101510"), at: 1400)
        line.receive(rmc("101511"), at: 2000)
        line.wait(until: 3000)
        #expect(line.instants == [1300, 2300])
        #expect(line.decoder.counters.late == 1)
    }

    @Test func takesTheSameTimeOfAnotherDay() {
        var line = Line()
        line.receive(rmc("101510"), at: 0)
        line.receive(rmc("101510", date: "240394"), at: 86_400_000)
        line.wait(until: 86_500_000)
        #expect(line.fixes.map { $0.time?.iso8601 } == ["1994-03-23T10:15:10.000Z", "1994-03-24T10:15:10.000Z"])
    }

    @Test func holdsGSABeforeItsRMCAfterSilence() {
        var line = Line()
        line.receive(rmc("101510"), at: 1000)
        line.receive(gsa(mode: "3") + rmc("101511"), at: 2000)
        line.receive(gsa(mode: "2") + rmc("101512"), at: 3000)
        line.wait(until: 4000)
        #expect(line.fixes.map(\.mode) == [.twoD, .threeD, .twoD])
        #expect(line.fixes.map(\.at) == [1000, 2000, 3000].map(Line.instant))
    }

    @Test func anEndOfInputEmitsTheOpenEpochOnce() {
        var line = Line()
        line.receive(rmc("101510"), at: 1000)
        var epochs = 0
        line.decoder.endOfInput { _, _ in epochs += 1 }
        line.decoder.endOfInput { _, _ in epochs += 1 }
        #expect(epochs == 1)
    }

    @Test func learnsTheLastSentenceInFiveEpochs() {
        var line = Line()
        for second in 10..<20 { line.receive(cycle(second), at: second * 1000) }
        let bySilence = (10..<15).map { $0 * 1000 + 300 }
        let atOnce = (15..<20).map { $0 * 1000 }
        #expect(line.instants == bySilence + atOnce)
        #expect(line.decoder.hasLearnedLastSentence)
        #expect(line.decoder.nextDeadline == nil)
        #expect(line.fixes.allSatisfy { $0.mode == .threeD && $0.altitudeMSL != nil })
        #expect(line.decoder.counters.late == 0)
    }

    @Test func learnsTheLastOfSeveralAlike() {
        var line = Line()
        for second in 10..<17 {
            line.receive(
                rmc("1015\(second)") + gsa(mode: "1", talker: "GN") + gsa(mode: "3", talker: "GN"), at: second * 1000)
        }
        #expect(line.instants.suffix(2) == [15000, 16000])
        #expect(line.fixes.allSatisfy { $0.mode == .threeD })
    }

    @Test func occasionalSatelliteListsDoNotDisturbLearning() {
        var line = Line()
        for second in 10..<20 {
            let list = second % 3 == 0 ? sentence("GPGSV,1,1,01,21,00,000,32") + sentence("GPTXT,01,01,02,hello") : ""
            line.receive(cycle(second) + list, at: second * 1000)
        }
        #expect(line.instants.suffix(5) == [15000, 16000, 17000, 18000, 19000])
        #expect(line.decoder.counters.late == 0)
    }

    @Test func aMissingLastSentenceFallsBackToSilence() {
        var line = Line()
        for second in 10..<16 { line.receive(cycle(second), at: second * 1000) }
        line.receive(rmc("101516") + gga("101516"), at: 16000)
        #expect(line.decoder.nextDeadline == Line.instant(16300))
        line.wait(until: 16300)
        #expect(line.instants.last == 16300)
        #expect(!line.decoder.hasLearnedLastSentence)
    }

    @Test func aSentenceAfterTheLearntLastOneIsLateAndTeachesAnew() {
        var line = Line()
        for second in 10..<16 { line.receive(cycle(second), at: second * 1000) }
        for second in 16..<23 { line.receive(cycle(second) + gll("1015\(second)"), at: second * 1000) }
        #expect(line.decoder.counters.late == 1)
        #expect(line.fixes.map(\.timeOfDay) == (10..<22).map { 36_900_000 + $0 * 1000 } + [36_922_000])
        #expect(line.instants.last == 22000)
    }

    @Test func aTrailingGSADoesNotSlipIntoTheNextEpoch() {
        var line = Line()
        for second in 10..<16 { line.receive(rmc("1015\(second)") + gga("1015\(second)"), at: second * 1000) }
        line.receive(rmc("101516") + gga("101516") + gsa(mode: "1"), at: 16000)
        line.receive(rmc("101517") + gga("101517"), at: 17000)
        line.wait(until: 18000)
        #expect(line.fixes.count == 8)
        #expect(line.decoder.counters.late == 1)
    }

    @Test func neverEmitsAnEpochTwiceAtAnyRate() {
        for interval in [100, 200, 500, 1000, 5000] {
            var line = Line()
            for i in 0..<50 {
                let time = UTCTime.clock(36_000_000 + i * interval).replacing(":", with: "")
                line.receive(rmc(time), at: i * interval)
                line.receive(gga(time) + gsa(mode: "3"), at: i * interval + 40)
            }
            line.wait(until: 1_000_000)
            #expect(line.fixes.map(\.timeOfDay) == (0..<50).map { 36_000_000 + $0 * interval }, "\(interval) ms")
            #expect(line.fixes.allSatisfy { $0.altitudeMSL != nil && $0.mode == .threeD }, "\(interval) ms")
            #expect(line.decoder.measuredInterval == .milliseconds(interval))
        }
    }

    @Test func measuresTheIntervalByItsMedian() {
        var line = Line()
        #expect(line.decoder.measuredInterval == nil)
        for second in [10, 11, 12, 13, 40, 41, 42] { line.receive(rmc("1015\(second)"), at: second * 1000) }
        line.wait(until: 60000)
        #expect(line.decoder.measuredInterval == .seconds(1))
    }

    @Test func anUnplugForgetsSentenceAndEpochButNotTheDate() {
        var line = Line()
        line.receive(rmc("101510") + "$GPRMC,1015", at: 0)
        line.wait(until: 1000)
        line.receive(rmc("101511") + "$GPRMC,1015", at: 2000)
        line.decoder.reset(at: Line.instant(3000))
        #expect(line.decoder.nextDeadline == nil)
        line.receive("12,A,x" + gga("101520"), at: 10000)
        line.wait(until: 11000)
        #expect(line.fixes.map { $0.time?.iso8601 } == ["1994-03-23T10:15:10.000Z", "1994-03-23T10:15:20.000Z"])
    }

    @Test(arguments: [(12 * 3_600_000 - 1, true), (12 * 3_600_000, false)])
    func keepsTheDateLessThanTwelveHours(gap: Int, kept: Bool) {
        var line = Line()
        line.receive(rmc("101510"), at: 0)
        line.wait(until: 1000)
        line.decoder.reset(at: Line.instant(gap))
        line.receive(gga("101520"), at: gap)
        line.wait(until: gap + 1000)
        #expect((line.fixes.last?.time != nil) == kept)
    }

}
