import NMEA
import Positioning
import Testing

@Suite("Dates") struct DateTests {
    @Test(arguments: [
        ("230394", "1994-03-23"), ("010180", "1980-01-01"), ("311299", "1999-12-31"), ("010100", "2000-01-01"),
        ("311279", "2079-12-31"), ("290220", "2020-02-29"),
    ])
    func readsTwoDigitYearsOfBothCenturies(_ text: String, day: String) {
        #expect(decode(rmc("101502", date: text)).times == ["\(day)T10:15:02.000Z"])
    }

    @Test(arguments: [
        "", "23039", "2303944", "23-394", "2303 4", "320194", "310494", "290221", "001394", "010094", "abcdef",
    ])
    func ignoresOtherDatesAndKeepsTheTime(_ text: String) {
        let result = decode(rmc("101501") + rmc("101502", date: text))
        #expect(result.times == ["1994-03-23T10:15:01.000Z", "1994-03-23T10:15:02.000Z"])
        #expect(decode(rmc("101502", date: text)).times == ["dateless"])
    }

    @Test func takesFourDigitYearsFromZDA() {
        #expect(decode(gga("101502") + sentence("GPZDA,101502,23,03,2020,00,00")).times == ["2020-03-23T10:15:02.000Z"])
        #expect(decode(gga("101502") + sentence("GPZDA,101502,31,02,2020,00,00")).times == ["dateless"])
        #expect(decode(gga("101502") + sentence("GPZDA,101502,01,01,0000,00,00")).times == ["dateless"])
    }

    @Test func takesTheFirstDateOfAnEpoch() {
        #expect(decode(rmc("101502") + rmc("101502", date: "240394")).times == ["1994-03-23T10:15:02.000Z"])
        #expect(decode(rmc("101502", date: "") + rmc("101502")).times == ["1994-03-23T10:15:02.000Z"])
    }

    @Test func countsFixesBeforeTheFirstDateAndNeverDatesThemAfterwards() {
        let result = decode(gga("101501") + gga("101502") + rmc("101503") + gga("101504"))
        #expect(result.times == ["dateless", "dateless", "1994-03-23T10:15:03.000Z", "1994-03-23T10:15:04.000Z"])
        #expect(result.counters.dateless == 2)
        #expect(result.counters.fixes == 4)
    }

    @Test func theNextFixBelievesADateThatCameAlone() {
        let zda = sentence("GPZDA,101502.5,23,03,1994,,")
        #expect(decode(gga("101502") + zda + gga("101503")).times == ["dateless", "1994-03-23T10:15:03.000Z"])
        let void = gga("101503", quality: "0")
        #expect(decode(gga("101502") + zda + void + gga("101504")).times == ["dateless", "dateless"])
    }

    @Test func aDateAtTheVeryEndDatesNothingBefore() {
        let result = decode(gga("101501") + gga("101502") + sentence("GPZDA,101503,23,03,1994,,"))
        #expect(result.times == ["dateless", "dateless"])
        #expect(result.resumes.allSatisfy { $0.time == nil })
    }

    @Test func neverBelievesTheDateOfAVoidSentence() {
        let result = decode(
            rmc("235948", "V", date: "161206") + rmc("235950", date: "161206", mode: "N") + gga("101501")
                + rmc("101502") + gsa(mode: "1", hdop: "") + gll("101503"))
        #expect(result.times == ["dateless", "dateless"])
        #expect(result.voids.allSatisfy { $0.time == nil })
    }

    @Test func neverBelievesTheDateOfAVoidEpoch() {
        let zda = sentence("GPZDA,000001,05,01,1980,,")
        let result = decode(rmc("101501") + rmc("000001", "V", date: "050180") + zda + gga("101503"))
        #expect(result.voids.map { $0.time?.iso8601 } == ["1994-03-23T00:00:01.000Z"])
        #expect(result.times == ["1994-03-23T10:15:01.000Z", "1994-03-23T10:15:03.000Z"])
    }

    @Test func midnightComesWithGGABeforeItsRMC() {
        let result = decode(
            rmc("235959") + gga("235959") + gga("000000") + rmc("000000", date: "240394") + gga("000001")
                + rmc("000001", date: ""))
        #expect(result.times == ["1994-03-23T23:59:59.000Z", "1994-03-24T00:00:00.000Z", "1994-03-24T00:00:01.000Z"])
    }

    @Test func slowEpochsWithAGapRollTheDayOnce() {
        var text = rmc("234000")
        for second in stride(from: 23 * 3600 + 41 * 60, to: 23 * 3600 + 50 * 60, by: 2) {
            text += gga(UTCTime.clock(second * 1000).replacing(":", with: ""))
        }
        for second in stride(from: 10 * 60, to: 20 * 60, by: 2) {
            text += gga(UTCTime.clock(second * 1000).replacing(":", with: ""))
        }
        let result = decode(text)
        #expect(result.times.count { $0.hasPrefix("1994-03-23") } == 271)
        #expect(result.times.count { $0.hasPrefix("1994-03-24") } == 300)
        #expect(result.times.sorted() == result.times)
    }

    @Test func countsDaysWithoutAnyDate() {
        #expect(
            decode(rmc("230000") + gga("110000") + gga("105900") + gga("235959") + gga("000001")).times == [
                "1994-03-23T23:00:00.000Z", "1994-03-23T11:00:00.000Z", "1994-03-23T10:59:00.000Z",
                "1994-03-23T23:59:59.000Z", "1994-03-24T00:00:01.000Z",
            ])
    }

    @Test func aSmallStepBackIsNoMidnight() {
        let result = decode(rmc("101505") + gga("101504") + gga("091500"))
        #expect(result.times == ["1994-03-23T10:15:05.000Z", "1994-03-23T10:15:04.000Z", "1994-03-23T09:15:00.000Z"])
    }

    @Test func aLeapSecondCountsOneDay() {
        let result = decode(
            rmc("235959.5", date: "311216") + gga("235960.0") + gga("235960.5") + gga("000000.0") + gga("000000.5"))
        #expect(
            result.times == [
                "2016-12-31T23:59:59.500Z", "2017-01-01T00:00:00.000Z", "2017-01-01T00:00:00.500Z",
                "2017-01-01T00:00:00.000Z", "2017-01-01T00:00:00.500Z",
            ])
        for (i, place) in result.resumes.enumerated() {
            let text =
                rmc("235959.5", date: "311216") + gga("235960.0") + gga("235960.5") + gga("000000.0") + gga("000000.5")
            #expect(decode(text, resume: place).times == Array(result.times[(i + 1)...]))
        }
    }

    @Test func repairsTheRolloverOfOldReceivers() {
        let build = CivilDate(year: 2026, month: 1, day: 1)!
        let settings = NMEADecoder.Settings(live: true, rollover: .repair(buildDate: build))
        let result = decode(rmc("101502", date: "080207") + gga("101503"), settings: settings)
        #expect(result.times == ["2026-09-24T10:15:02.000Z", "2026-09-24T10:15:03.000Z"])
        #expect(result.fixes.map(\.rollover) == [true, true])
        let good = decode(rmc("101502", date: "080226"), settings: settings)
        #expect(good.times == ["2026-02-08T10:15:02.000Z"])
        #expect(good.fixes.map(\.rollover) == [false])
        let twice = decode(rmc("101502", date: "050187"), settings: settings)
        #expect(twice.times == ["2026-04-06T10:15:02.000Z"])
    }

    @Test func holdsFixesFarAfterTheBuildDate() {
        let build = CivilDate(year: 2026, month: 1, day: 1)!
        let settings = NMEADecoder.Settings(rollover: .repair(buildDate: build))
        #expect(decode(rmc("101502", date: "010145"), settings: settings).times == ["dateless"])
        #expect(decode(rmc("101502", date: "010145")).times == ["2045-01-01T10:15:02.000Z"])
    }

    @Test func leavesOldLogsAloneUnlessAsked() {
        let result = decode(rmc("101502", date: "080207"))
        #expect(result.times == ["2007-02-08T10:15:02.000Z"])
        #expect(result.fixes.map(\.rollover) == [false])
    }
}

@Suite("Horizontal accuracy") struct AccuracyTests {
    private let gst = sentence("GPGST,101502,1.0,9,9,9,3.0,4.0,5.0")
    private let gbs = sentence("GPGBS,101502,6.0,8.0,1.0,,,,")
    private let pgrme = sentence("PGRME,12.5,M,20.0,M,25.0,M")
    private let pubx = sentence("PUBX,00,101502.00,4807.0,N,01131.0,E,500.0,G3,2.1,3.0,0.0,0.0,0.0,,0.9,1.2,0.8,8,0,0")

    @Test func takesTheFirstUsableSource() {
        #expect(decode(gga("101502") + gbs + pgrme + gst).fixes[0].horizontalAccuracy == 5)
        #expect(decode(gga("101502") + gbs + pgrme).fixes[0].horizontalAccuracy == 12.5)
        #expect(decode(pubx + gga("101502") + gbs).fixes[0].horizontalAccuracy == 2.1)
        #expect(decode(gga("101502") + gbs).fixes[0].horizontalAccuracy == 10)
        #expect(decode(gga("101502", hdop: "1.2")).fixes[0].horizontalAccuracy == 6)
        #expect(decode(rmc("101502")).fixes[0].horizontalAccuracy == nil)
    }

    @Test(arguments: [
        "GPGST,101502,,,,,0.0,0.0,", "GPGST,101502,,,,,,4.0,", "GPGST,101502,,,,,,,", "GPGST,101502,,,,,x,y,",
    ])
    func skipsUnusableEstimates(_ body: String) {
        #expect(decode(gga("101502", hdop: "1.2") + sentence(body)).fixes[0].horizontalAccuracy == 6)
    }

    @Test func isNeverZero() {
        #expect(decode(gga("101502", hdop: "0.0")).fixes[0].horizontalAccuracy == nil)
        #expect(decode(gga("101502", hdop: "")).fixes[0].horizontalAccuracy == nil)
    }

    @Test(
        arguments: [("1", 10.0), ("2", 5), ("3", 5), ("4", 0.1), ("5", 0.6), ("6", nil), ("7", nil), ("8", nil)]
            as [(String, Double?)])
    func scalesHDOPByQuality(_ quality: String, accuracy: Double?) {
        let result = decode(gga("101502", quality: quality, hdop: "2.0")).fixes[0]
        #expect(result.horizontalAccuracy == accuracy)
    }

    @Test func growsWithTheTimeOfDeadReckoning() {
        let text =
            gga("235958", hdop: "1.0") + gga("235959", quality: "6", hdop: "1.0")
            + gga("000008", quality: "6", hdop: "2.0")
        #expect(decode(text).fixes.map(\.horizontalAccuracy) == [5, 11, 40])
        #expect(decode(rmc("235957") + text).fixes.map(\.horizontalAccuracy) == [nil, 5, 11, 40])
    }

    @Test func takesItsTableFromTheSettings() {
        var settings = NMEADecoder.Settings()
        settings.rangeErrors.gps = 3
        #expect(decode(gga("101502", hdop: "2.0"), settings: settings).fixes[0].horizontalAccuracy == 6)
    }
}
