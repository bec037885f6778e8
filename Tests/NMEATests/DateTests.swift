import NMEA
import Positioning
import Testing

@Suite("Dates") struct DateTests {
    struct Dated: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        /// Day and clock, or dateless.
        var times: [String]

        init(_ description: String, _ text: String, _ times: String...) {
            (testDescription, self.text, self.times) = (description, text, times)
        }
    }

    private static func zda(_ time: String, _ date: String) -> String { sentence("GPZDA,\(time),\(date)") }

    static let dated: [Dated] = [
        Dated("two digits: 94", rmc("101502", date: "230394"), "1994-03-23T10:15:02"),
        Dated("two digits: 80", rmc("101502", date: "010180"), "1980-01-01T10:15:02"),
        Dated("two digits: 99", rmc("101502", date: "311299"), "1999-12-31T10:15:02"),
        Dated("two digits: 00", rmc("101502", date: "010100"), "2000-01-01T10:15:02"),
        Dated("two digits: 79", rmc("101502", date: "311279"), "2079-12-31T10:15:02"),
        Dated("a leap day", rmc("101502", date: "290220"), "2020-02-29T10:15:02"),
        Dated("four digits", gga("101502") + zda("101502", "23,03,2020,00,00"), "2020-03-23T10:15:02"),
        Dated("31 February", gga("101502") + zda("101502", "31,02,2020,00,00"), "dateless"),
        Dated("the year 0", gga("101502") + zda("101502", "01,01,0000,00,00"), "dateless"),
        Dated("the first date counts", rmc("101502") + rmc("101502", date: "240394"), "1994-03-23T10:15:02"),
        Dated("no date, then one", rmc("101502", date: "") + rmc("101502"), "1994-03-23T10:15:02"),
        Dated(
            "a date that came alone is that of the next fix",
            gga("101502") + zda("101502.5", "23,03,1994,,") + gga("101503"), "dateless", "1994-03-23T10:15:03"),
        Dated(
            "but not behind a void epoch",
            gga("101502") + zda("101502.5", "23,03,1994,,") + gga("101503", quality: "0") + gga("101504"), "dateless",
            "dateless"),
        Dated(
            "GGA at midnight before its RMC",
            rmc("235959") + gga("235959") + gga("000000") + rmc("000000", date: "240394") + gga("000001")
                + rmc("000001", date: ""), "1994-03-23T23:59:59", "1994-03-24T00:00:00", "1994-03-24T00:00:01"),
        Dated(
            "days are counted without any date",
            rmc("230000") + gga("110000") + gga("105900") + gga("235959") + gga("000001"), "1994-03-23T23:00:00",
            "1994-03-23T11:00:00", "1994-03-23T10:59:00", "1994-03-23T23:59:59", "1994-03-24T00:00:01"),
        Dated(
            "a small step back is no midnight", rmc("101505") + gga("101504") + rmc("101505") + gga("091500"),
            "1994-03-23T10:15:05", "1994-03-23T10:15:04", "1994-03-23T10:15:05", "1994-03-23T09:15:00"),
    ]

    @Test(arguments: dated) func dates(_ dated: Dated) {
        #expect(decode(dated.text).times == dated.times.map { $0 == "dateless" ? $0 : "\($0).000Z" })
    }

    @Test(arguments: [
        "", "23039", "2303944", "23-394", "2303 4", "320194", "310494", "290221", "001394", "010094", "abcdef",
    ])
    func ignoresOtherDatesAndKeepsTheTime(_ text: String) {
        let result = decode(rmc("101501") + rmc("101502", date: text))
        #expect(result.times == ["1994-03-23T10:15:01.000Z", "1994-03-23T10:15:02.000Z"])
        #expect(decode(rmc("101502", date: text)).times == ["dateless"])
    }

    @Test func countsFixesBeforeTheFirstDateAndNeverDatesThemAfterwards() {
        let result = decode(gga("101501") + gga("101502") + rmc("101503") + gga("101504"))
        #expect(result.times == ["dateless", "dateless", "1994-03-23T10:15:03.000Z", "1994-03-23T10:15:04.000Z"])
        #expect(result.counters.dateless == 2)
        #expect(result.counters.fixes == 4)
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

    @Test func slowEpochsWithAGapRollTheDayOnce() {
        let evening: [Int] = Array(stride(from: 85_260, through: 85_800, by: 2))
        let morning: [Int] = Array(stride(from: 600, to: 1200, by: 2))
        var text = rmc("234000")
        for second in evening + morning { text += gga(UTCTime.clock(second * 1000).replacing(":", with: "")) }
        let times = decode(text).times
        #expect(times.count { $0.hasPrefix("1994-03-23") } == 272)
        #expect(times.count { $0.hasPrefix("1994-03-24") } == 300)
        #expect(times.sorted() == times)
    }

    @Test func aLeapSecondCountsOneDay() {
        var text = rmc("235959.5", date: "311216")
        for time in ["235960.0", "235960.5", "000000.0", "000000.5"] { text += gga(time) }
        let result = decode(text)
        #expect(
            result.times == [
                "2016-12-31T23:59:59.500Z", "2017-01-01T00:00:00.000Z", "2017-01-01T00:00:00.500Z",
                "2017-01-01T00:00:00.000Z", "2017-01-01T00:00:00.500Z",
            ])
        for (i, place) in result.resumes.enumerated() {
            #expect(decode(text, resume: place).times == Array(result.times[(i + 1)...]))
        }
    }

    private static let build = CivilDate(year: 2026, month: 1, day: 1)!

    /// What the receiver says, and what is made of it by a build of 2026 and without a repair.
    @Test(arguments: [false, true]) func repairsTheRolloverOfOldReceivers(isLive: Bool) {
        let dates: [(String, repaired: String, isRollover: Bool, plain: String)] = [
            ("080207", "2026-09-24", true, "2007-02-08"), ("080226", "2026-02-08", false, "2026-02-08"),
            ("050187", "2026-04-06", true, "1987-01-05"),
            // Far after the build it is held back.
            ("010145", "dateless", false, "2045-01-01"),
        ]
        for (date, repaired, isRollover, plain) in dates {
            let text = rmc("101502", date: date) + gga("101503")
            func times(_ day: String) -> [String] {
                ["02", "03"].map { day == "dateless" ? day : "\(day)T10:15:\($0).000Z" }
            }
            let result = decode(text, settings: .init(live: isLive, rollover: .repair(buildDate: Self.build)))
            #expect(result.times == times(repaired) && result.fixes.map(\.rollover) == [isRollover, isRollover])
            let asked = decode(text, settings: .init(live: isLive))
            #expect(asked.times == times(plain) && asked.fixes.map(\.rollover) == [false, false])
        }
    }

}

@Suite("Horizontal accuracy") struct AccuracyTests {
    private let gst = sentence("GPGST,101502,1.0,9,9,9,3.0,4.0,5.0")
    private let gbs = sentence("GPGBS,101502,6.0,8.0,1.0,,,,")
    private let pgrme = sentence("PGRME,12.5,M,20.0,M,25.0,M")
    private let pubx = sentence("PUBX,00,101502.00,4807.0,N,01131.0,E,500.0,G3,2.1,3.0,0.0,0.0,0.0,,0.9,1.2,0.8,8,0,0")

    private func accuracy(_ text: String) -> Double? { decode(text).fixes[0].horizontalAccuracy }

    @Test func takesTheFirstUsableSource() {
        let position = gga("101502")
        #expect(accuracy(position + gbs + pgrme + gst) == 5)
        #expect(accuracy(position + gbs + pgrme) == 12.5)
        #expect(accuracy(pubx + position + gbs) == 2.1)
        #expect(accuracy(position + gbs) == 10)
        #expect(accuracy(gga("101502", hdop: "1.2")) == 6)
        // It is never zero.
        for text in [rmc("101502"), gga("101502", hdop: "0.0"), gga("101502", hdop: "")] {
            #expect(accuracy(text) == nil)
        }
    }

    @Test(arguments: [
        "GPGST,101502,,,,,0.0,0.0,", "GPGST,101502,,,,,,4.0,", "GPGST,101502,,,,,,,", "GPGST,101502,,,,,x,y,",
    ])
    func skipsUnusableEstimates(_ body: String) {
        #expect(decode(gga("101502", hdop: "1.2") + sentence(body)).fixes[0].horizontalAccuracy == 6)
    }

    @Test(
        arguments: [("1", 10.0), ("2", 5), ("3", 5), ("4", 0.1), ("5", 0.6), ("6", nil), ("7", nil), ("8", nil)]
            as [(String, Double?)])
    func scalesHDOPByQuality(_ quality: String, accuracy: Double?) {
        let result = decode(gga("101502", quality: quality, hdop: "2.0")).fixes[0]
        #expect(result.horizontalAccuracy == accuracy)
    }

    @Test func growsWithTheTimeOfDeadReckoning() {
        var text = gga("235958", hdop: "1.0")
        text += gga("235959", quality: "6", hdop: "1.0")
        text += gga("000008", quality: "6", hdop: "2.0")
        #expect(decode(text).fixes.map(\.horizontalAccuracy) == [5, 11, 40])
        #expect(decode(rmc("235957") + text).fixes.map(\.horizontalAccuracy) == [nil, 5, 11, 40])
    }

    @Test func takesItsTableFromTheSettings() {
        var settings = NMEADecoder.Settings()
        settings.rangeErrors.gps = 3
        #expect(decode(gga("101502", hdop: "2.0"), settings: settings).fixes[0].horizontalAccuracy == 6)
    }
}
