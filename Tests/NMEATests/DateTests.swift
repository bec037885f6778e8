import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

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
            gga("101502") + zda("101504.5", "23,03,1994,,") + gga("101505"), "dateless", "1994-03-23T10:15:05"),
        Dated(
            "but not behind a void epoch",
            gga("101502") + zda("101504.5", "23,03,1994,,") + gga("101505", quality: "0") + gga("101506"), "dateless",
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

/// Dates that are not those to which the time before leads.
@Suite("Dates that jump") struct DateJumpTests {
    private static let build = CivilDate(year: 2026, month: 11, day: 1)!
    private static let repair = NMEADecoder.Settings(live: true, rollover: .repair(buildDate: build))

    /// Fixes at a time of day from 10:00:00 on, with what the receiver says about the date.
    private func line(
        _ dates: [String], every seconds: Int = 1, _ settings: NMEADecoder.Settings = .init(live: true),
        host: String? = nil
    ) -> Line {
        var line = Line(settings)
        if let host {
            let time = UTCTime(milliseconds: UTCTime.milliseconds(iso8601: host)!)
            line.decoder.hostTime = HostTime(time: time, at: Line.instant(0))
        }
        for (number, date) in dates.enumerated() {
            let clock = UTCTime.clock(36_000_000 + number * seconds * 1000).replacing(":", with: "")
            line.receive(date == "-" ? gga(clock) : rmc(clock, date: date), at: number * seconds * 1000)
        }
        line.wait(until: 100_000_000)
        return line
    }

    private func days(_ line: Line) -> [String] {
        line.fixes.map { $0.time.map { String($0.iso8601.prefix(10)) } ?? "-" }
    }

    private func days(_ day: String, _ count: Int) -> [String] { [String](repeating: day, count: count) }

    @Test func oneWrongDateDatesNothing() {
        let told = ["020326", "020326", "050134", "020326", "010326", "030326", "020326"]
        let line = line(told)
        #expect(days(line) == days("2026-03-02", 7))
        #expect(line.decoder.counters.datesRefused == 3 && line.decoder.receiverDates.fault == nil)
        let text = told.enumerated().map { rmc("10000\($0)", date: $1) }.joined()
        #expect(decode(text).times.allSatisfy { $0.hasPrefix("2026-03-02") })
    }

    @Test func fiveFixesOverTenSecondsAreBelieved() {
        let line = line(["-", "020326"] + days("050134", 14))
        #expect(days(line) == ["-"] + days("2026-03-02", 11) + days("2034-01-05", 4))
        // Where fixes are rare, two.
        #expect(
            days(self.line(["020326", "050134", "050134"], every: 90)) == ["2026-03-02", "2026-03-02", "2034-01-05"])
    }

    @Test func aLogWithASecondRecordingIsDatedAsItSays() {
        for count in [3, 5, 12, 40] {
            let second = (0..<count).map { rmc("0915\($0 < 10 ? "0" : "")\($0)", date: "090326") }.joined()
            let times = decode(rmc("180000", date: "020326") + rmc("180001", date: "020326") + second).times
            #expect(times.count == count + 2 && times.dropFirst(2).allSatisfy { $0.hasPrefix("2026-03-09") })
        }
    }

    /// A log of few times and dates, in any order: recordings within others, wrong dates, and none.
    @Test(arguments: testSeeds(1...200)) func whoGoesOnWithinATrialDecidesTheSame(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let times = ["235959", "101502", "101503", "101512", "101630", "011504", "000001"]
        let dates = ["230394", "230394", "240394", "050134", ""]
        let text = (0..<12).map { _ in
            rmc(times.randomElement(using: &generator)!, date: dates.randomElement(using: &generator)!)
        }.joined()
        let whole = decode(text)
        for (i, place) in whole.resumes.enumerated() {
            #expect(decode(text, resume: place).times == Array(whole.times[(i + 1)...]), "seed \(seed), epoch \(i)")
        }
    }

    @Test func theSynchronisedHostCorrectsWholeWeeks() {
        let host = "2026-11-28T10:03:00Z"
        let dates: [(String, String)] = [
            // 1024, 512 and 1 weeks behind, 1 week ahead; right; cold starts whose time of week is right.
            ("140407", "2026-11-28"), ("040217", "2026-11-28"), ("211126", "2026-11-28"), ("051226", "2026-11-28"),
            ("281126", "2026-11-28"), ("280899", "2026-11-28"),
            // Not by whole weeks.
            ("271126", "-"), ("060180", "-"),
        ]
        for (date, day) in dates {
            let line = line(days(date, 2), Self.repair, host: host)
            #expect(days(line) == days(day, 2), "\(date)")
            #expect((line.decoder.receiverDates.fault != nil) == (day == "-"), "\(date)")
            #expect((line.decoder.receiverDates.repairedWeeks != nil) == (day != "-" && date != "281126"), "\(date)")
        }
        #expect(line(["140407"], Self.repair, host: host).decoder.receiverDates.repairedWeeks == 1024)
        #expect(line(["140407"], Self.repair, host: host).fixes[0].rollover)
    }

    @Test func withoutTheHostARepairLeadsToThreeYearsAtMost() {
        let dates: [(String, known: String?, day: String)] = [
            // 1024 weeks behind a day of 2027, of 2029-10 and of 2030; 512 weeks behind 2026, which would be 2036.
            ("170507", nil, "2026-12-31"), ("010210", nil, "2029-09-17"), ("010410", nil, "-"), ("130217", nil, "-"),
            ("010410", "2027-01-10T00:00:00Z", "2029-11-15"),
            // What receivers show before they know the date.
            ("060180", nil, "-"), ("220899", nil, "-"), ("280899", nil, "-"), ("070419", nil, "-"),
            ("130419", nil, "-"),
            ("011226", nil, "2026-12-01"),
        ]
        for (date, known, day) in dates {
            var settings = Self.repair
            settings.latestKnownTime = known.map { UTCTime(milliseconds: UTCTime.milliseconds(iso8601: $0)!) }
            let line = line(days(date, 2), settings)
            #expect(days(line) == days(day, 2), "\(date)")
            #expect(line.decoder.counters.dateless == (day == "-" ? 2 : 0))
        }
    }
}
