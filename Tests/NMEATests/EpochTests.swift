import Testing
import WaypostCore
import WaypostNMEA

@Suite("Epochs") struct EpochTests {
    @Test func emitsTheFirstAndTheLastOfAStreamOnce() {
        let result = decode(gga("101502") + rmc("101502") + rmc("101503") + gga("101503") + rmc("101504"))
        #expect(result.fixes.map(\.timeOfDay) == [36_902_000, 36_903_000, 36_904_000])
        #expect(result.fixes.map(\.altitudeMSL) == [545.4, 545.4, nil])
        #expect(result.counters.fixes == 3)
    }

    @Test func givesNothingWithoutAPositionSentence() {
        let accessories = gsa(mode: "3") + sentence("GPZDA,101502,23,03,1994,,") + sentence("GPGST,101503,,,,,1,1,1")
        #expect(decode(accessories).epochs.isEmpty)
    }

    @Test func anRMCWithoutTimeClosesAndLosesNothing() {
        let result = decode(gga("101502") + rmc("", "V", ",,,", date: "") + gsa(mode: "1") + gga("101503"))
        #expect(result.fixes.map(\.timeOfDay) == [36_902_000, 36_903_000])
        #expect(result.voids.isEmpty)
    }

    @Test func tellsOneVoidEpochForEachCycleWithoutTime() {
        let untimed =
            rmc("", "V", ",,,", date: "") + gga("", quality: "0", ",,,") + gsa(mode: "1") + gll("", "V", ",,,")
        let result = decode(rmc("101502") + gga("101502") + untimed + untimed + untimed + rmc("101510") + gga("101510"))
        #expect(result.fixes.map(\.timeOfDay) == [36_902_000, 36_910_000])
        #expect(result.voids.count == 3)
        #expect(result.voids.allSatisfy { $0.timeOfDay == nil && $0.time == nil && $0.reason == .void })
    }

    @Test func aGGAWithoutTimeDoesNotVoidTheEpochBefore() {
        let result = decode(
            gga("101502") + rmc("101502") + gga("", quality: "0", ",,,") + rmc("", "V", ",,,", date: ""))
        #expect(result.fixes.count == 1)
        #expect(result.voids.count == 1)
    }

    struct Verdict: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var quality: FixQuality?

        init(_ description: String, _ text: String, _ quality: FixQuality?) {
            (testDescription, self.text, self.quality) = (description, text, quality)
        }
    }

    private static func gns(_ modes: String) -> String {
        sentence("GNGNS,101502,4807.0,N,01131.0,E,\(modes),05,1.2,,,,")
    }

    static let verdicts: [Verdict] = [
        Verdict("RMC alone", rmc("101502"), .gps), Verdict("RMC D", rmc("101502", "D"), .gps),
        Verdict("RMC V", rmc("101502", "V"), nil), Verdict("RMC A, mode N", rmc("101502", mode: "N"), nil),
        Verdict("RMC V beats GGA 1", gga("101502") + rmc("101502", "V"), nil),
        Verdict("one valid RMC suffices", rmc("101502", "V") + rmc("101502"), .gps),
        Verdict("GGA 2", gga("101502", quality: "2"), .dgps), Verdict("GGA 0", gga("101502", quality: "0"), nil),
        Verdict("GGA empty beside RMC A", rmc("101502") + gga("101502", quality: ""), .gps),
        Verdict("GGA empty alone", gga("101502", quality: ""), nil),
        Verdict("GGA 12 alone", gga("101502", quality: "12"), nil),
        Verdict("GGA 12 beside RMC A", gga("101502", quality: "12") + rmc("101502"), .gps),
        Verdict("GSA 1 of another talker", rmc("101502") + gsa(mode: "1", talker: "GL"), .gps),
        Verdict("GSA 1 of both", rmc("101502") + gsa(mode: "1") + gsa(mode: "1", talker: "GL"), nil),
        Verdict("no satellites, quality 2", gga("101502", quality: "2", satellites: "00"), .dgps),
        Verdict("GNS with one letter", gns("NNA"), .gps), Verdict("GNS best letter", gns("ARD"), .rtk),
        Verdict("GNS none", gns("NNN") + gll("101502"), nil), Verdict("GLL A", gll("101502"), .gps),
        Verdict("GLL V", gll("101502", "V"), nil), Verdict("GSA 1", rmc("101502") + gsa(mode: "1"), nil),
        Verdict(
            "largest GSA counts", rmc("101502") + gsa(mode: "1") + gsa(mode: "3") + gsa(mode: "1"), .gps),
        Verdict("nav status U", sentence("GPRMC,101502,A,4807.0,N,01131.0,E,,,230394,,,A,U"), .gps),
    ]

    @Test(arguments: verdicts) func judges(_ verdict: Verdict) {
        let result = decode(verdict.text)
        #expect(result.epochs.count == 1)
        #expect(result.fixes.first?.quality == verdict.quality)
    }

    @Test func takesThePositionOfGGABeforeAllOthers() {
        let result = decode(gll("101502") + rmc("101502") + gga("101502", "4807.0380,N,01132.0000,E"))
        #expect(result.fixes[0].coordinate.longitudeE7 == 115_333_333)
    }

    @Test func takesTheFirstValidPositionWithoutGGA() {
        let first = decode(gll("101502", "V", "1000.0,N,00000.0,E") + gll("101502") + rmc("101502")).fixes[0]
        #expect(first.coordinate.latitudeE7 == 481_173_167)
    }

    @Test func takesSpeedAndCourseFromRMCElseVTG() {
        let vtg = sentence("GPVTG,54.7,T,34.4,M,10.0,N,18.5,K")
        let knot: Double = 1852 / 3600.0
        let both = decode(rmc("101502", speed: "20", course: "90") + vtg).fixes[0]
        let alone = decode(gga("101502") + vtg).fixes[0]
        #expect((both.speed, both.course) == (20 * knot, 90))
        #expect((alone.speed, alone.course) == (10 * knot, 54.7))
    }

    static let modes: [(String, FixMode)] = [
        (rmc("101502"), .twoD), (gga("101502"), .threeD), (gga("101502", satellites: "03"), .twoD),
        (gga("101502", altitude: ""), .twoD), (gga("101502") + gsa(mode: "2"), .twoD),
        (rmc("101502") + gsa(mode: "3"), .threeD), (gga("101502") + gsa(mode: "2") + gsa(mode: "3"), .threeD),
    ]

    @Test(arguments: modes) func tellsTheMode(_ text: String, mode: FixMode) {
        #expect(decode(text).fixes.map(\.mode) == [mode])
    }

    @Test func takesHDOPFromGGAThenGNSThenGSA() {
        let gns = sentence("GNGNS,101502,4807.0,N,01131.0,E,AA,10,0.8,1.0,2.0,,")
        let (position, gsa) = (rmc("101502"), gsa(mode: "3"))
        let texts: [String] = [gsa + gns + gga("101502"), gns + gsa, position + gsa, position]
        #expect(texts.map { decode($0).fixes[0].hdop } == [0.9, 0.8, 1.1, nil])
    }

    @Test func aSecondConstellationsGGAChangesNothingButAVoidOne() {
        let glonass = "$GL" + gga("101502", satellites: "05").dropFirst(3)
        let fixed = sentence(String(glonass.dropFirst().prefix { $0 != "*" }))
        #expect(decode(gga("101502") + fixed).fixes[0].satellitesUsed == 8)
        #expect(decode(gga("101502", quality: "0") + fixed).fixes[0].satellitesUsed == 5)
    }

    @Test func fixesComeFromRMCWhenEveryGGAIsBroken() {
        let broken = gga("101502").replacing("545.4", with: "545.5")
        let fix = decode(rmc("101502") + broken + gsa(mode: "3")).fixes[0]
        #expect(fix.altitudeMSL == nil)
        #expect(fix.mode == .threeD)
    }

    @Test func altitudeIsNotCarriedIntoEpochsWithoutGGA() {
        var text = rmc("101502") + gga("101502")
        for time in ["101503", "101504", "101505", "101506"] { text += rmc(time) }
        #expect(decode(text + gga("101506")).fixes.map(\.altitudeMSL) == [545.4, nil, nil, nil, 545.4])
    }

    @Test func twoReceiversOnOneLineGiveBothWithoutADayRoll() {
        var text = ""
        for second in 10..<20 { text += rmc("1015\(second).000") + rmc("1015\(second).300") + gga("1015\(second).100") }
        let result = decode(text)
        #expect(result.fixes.count == 30)
        #expect(result.times.allSatisfy { $0.hasPrefix("1994-03-23") })
    }

    @Test func resumesBehindEachEpoch() {
        var text = "# header\n"
        text += rmc("235958") + gga("235958")
        text += gga("000001") + "noise" + gga("000002")
        text += rmc("000003", "V")
        let whole = decode(text)
        #expect(whole.epochs.count == 4)
        for i in whole.epochs.indices {
            #expect(decode(text, resume: whole.resumes[i]).epochs == Array(whole.epochs[(i + 1)...]))
        }
        #expect(whole.resumes.last?.offset == Int64(text.utf8.count))
    }

    @Test func resumesAtAnUnfinishedSentence() {
        let text = rmc("101502") + "$GPRMC,1015"
        let result = decode(text)
        #expect(result.resumes.map(\.offset) == [Int64(rmc("101502").utf8.count)])
    }
}
