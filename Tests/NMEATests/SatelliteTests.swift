import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@Suite("Satellites in view") struct SatelliteViewTests {
    /// Seven GPS satellites, of which the last is not received, and two of GLONASS, of which one is weak.
    private static let cycle =
        sentence("GPGSV,2,1,07,04,60,120,45,05,10,200,28,07,33,050,38,09,70,300,47")
        + sentence("GPGSV,2,2,07,11,20,090,31,16,05,010,30,20,02,350,")
        + sentence("GLGSV,1,1,02,66,40,100,35,67,12,220,19")

    @Test func countsOneCycleOverAllConstellations() {
        #expect(decode(Self.cycle).satellites == nil, "the cycle may go on")
        let view = SatelliteView(inView: 9, strong: 6, best: 47, median: 31)
        #expect(decode(Self.cycle + Self.cycle).satellites == view)
        let others = rmc("101502") + gsa(mode: "3") + gga("101502")
        #expect(decode(others + Self.cycle + others + Self.cycle + others).satellites == view)
    }

    /// Every list is read only where somebody wants to know what was in view at each moment.
    @Test(arguments: [(false, [nil, nil, nil, nil]), (true, [nil, 1, 1, 3])])
    func aVoidEpochHasTheListBeforeIt(isThorough: Bool, inView: [Int?]) {
        var settings = NMEADecoder.Settings()
        settings.readsEverySurvey = isThorough
        var decoder = NMEADecoder(settings: settings)
        var found: [Int?] = []
        var text = ""
        for (second, count) in [1, 1, 3, 3, 3].enumerated() {
            text += rmc("10150\(second)", "V") + sentence("GPGSV,1,1,0\(count),21,00,000,32")
        }
        let bytes = Array(text.utf8)
        decoder.decode(bytes.span, at: .zero) { epoch, _ in
            if case .void(let void) = epoch { found.append(void.satellitesInView) }
        }
        #expect(found == inView)
    }

    @Test(arguments: ["GP", "GL", "GA", "GB", "GQ", "GN"]) func takesEveryTalker(_ talker: String) {
        let line = sentence("\(talker)GSV,1,1,01,21,00,000,32")
        #expect(decode(line + line).satellites == SatelliteView(inView: 1, strong: 1, best: 32, median: 32))
    }

    /// An antenna that is cut off: the receiver lists nothing.
    @Test func knowsAnEmptySky() {
        let line = sentence("GPGSV,1,1,00") + sentence("GLGSV,1,1,00")
        #expect(decode(line + line).satellites == SatelliteView(inView: 0, strong: 0))
    }

    /// The same four satellites on L1 and L5, and two that are above the horizon and not received.
    @Test func countsASatelliteOfSeveralSignalsOnce() {
        let cycle =
            sentence("GPGSV,1,1,04,04,60,120,45,05,10,200,41,07,33,050,38,09,70,300,47,1")
            + sentence("GPGSV,1,1,04,04,60,120,35,05,10,200,31,07,33,050,28,09,70,300,37,8")
            + sentence("GPGSV,1,1,02,11,20,090,,16,05,010,,0")
        #expect(decode(cycle + cycle).satellites == SatelliteView(inView: 6, strong: 4, best: 47, median: 41))
    }

    /// A survey may begin with the list of any signal; a receiver that pauses moves its start on, too.
    @Test(.bug(id: 13)) func countsTheSignalThatIsReceivedBestWhereverTheCycleBegins() {
        var groups = [
            sentence("GPGSV,2,1,05,04,60,120,45,05,10,200,41,07,33,050,38,09,70,300,44,1")
                + sentence("GPGSV,2,2,05,11,20,090,31,1"),
            sentence("GLGSV,1,1,03,66,40,100,35,67,12,220,32,68,12,220,30,1"),
            sentence("GPGSV,1,1,03,04,60,120,28,05,10,200,21,07,33,050,,8"),
            sentence("GPGSV,1,1,02,21,20,090,,26,05,010,,0"),
        ]
        let view = SatelliteView(inView: 10, strong: 8, best: 45, median: 35)
        for _ in groups {
            #expect(decode(groups.joined() + groups[0]).satellites == view, "beginning with \(groups[0])")
            groups.append(groups.removeFirst())
        }
    }

    /// In a garage no signal is received: the longest list counts.
    @Test func countsTheLongestListOfSatellitesThatAreNotReceived() {
        let long = sentence("GPGSV,1,1,03,04,60,120,,05,10,200,,07,33,050,,1")
        let short = sentence("GPGSV,1,1,01,04,60,120,,8")
        #expect(decode(long + short + long).satellites?.inView == 3)
        #expect(decode(short + long + short).satellites?.inView == 3)
    }

    /// A stream is joined in the middle of a group, and a line loses sentences.
    @Test func beginsAndLosesSentencesAnywhere() {
        let second = sentence("GPGSV,2,2,07,11,20,090,31,16,05,010,30,20,02,350,")
        #expect(decode(second + Self.cycle + Self.cycle).satellites?.inView == 9)
        let cut = Self.cycle.replacing(second, with: "$GPGSV,2,2,07,11,2\r\n")
        #expect(decode(cut + cut).satellites == SatelliteView(inView: 9, strong: 4, best: 47, median: 35))
    }

    @Test(arguments: [
        "GPGSV", "GPGSV,", "GPGSV,1", "GPGSV,1,1", "GPGSV,1,1,", "GPGSV,0,1,01,21,00,000,32",
        "GPGSV,1,2,01,21,00,000,32",
        "GPGSV,1,1,05,21,00,000,32", "GPGSV,1,1,999999999,21", "GPGSV,99,1,01,21,00,000,32", "GPGSV,1,0,01",
        "GPGSV,-1,1,01",
        "GPGSV,1,1,x,21,00,000,32", "GPGSV,,,,,,,",
    ]) func dropsASentenceWhoseCountsCannotBe(_ body: String) {
        let line = sentence(body)
        #expect(decode(line + line).satellites == nil)
        #expect(decode(line).counters.badFields == 0)
    }

    @Test(arguments: ["21,00,000,", "21,00,000,00", "21,00,000,999", "21,00,000,-5", "21,00,000,x", "21", ",,,"])
    func dropsAStrengthThatCannotBe(_ satellite: String) {
        let line = sentence("GPGSV,1,1,01,\(satellite)")
        #expect(decode(line + line).satellites == SatelliteView(inView: 1, strong: 0))
    }

    @Test func boundsWhatAnyTalkersSay() {
        var flood = ""
        for letter in "ABCDEFGHIJKLMNOQRSTUVWXYZ" {
            flood += sentence("\(letter)XGSV,4,1,16,1,2,3,40,2,2,3,40,3,2,3,40,4,2,3,40")
        }
        #expect(decode(flood + flood).satellites?.inView == 256)
    }

    @Test func readsOneCycleOfManyAndThenTheNewest() {
        let empty = sentence("GPGSV,1,1,00") + sentence("GLGSV,1,1,00")
        let pause = String(repeating: rmc("101502"), count: 300)
        let twice = Self.cycle + Self.cycle
        #expect(decode(twice + empty + empty).satellites?.inView == 9)
        #expect(decode(twice + pause + empty + empty).satellites?.inView == 0)
    }

    /// Fixes, their times and all counters are those of the same log without what was reported beside them.
    @Test(.bug(id: 13)) func noFixDependsOnReports() {
        let reports =
            Self.cycle + sentence("GPTXT,01,01,02,ANTSTATUS=OPEN") + sentence("GPGSV,9,9,9,x") + sentence("GPTXT")
        var plain = ""
        var full = ""
        for second in 10...59 {
            let (a, b) = (rmc("1015\(second)"), gga("1015\(second)"))
            plain += a + b
            full += a + reports + b + reports
        }
        let (without, with) = (decode(plain), decode(full))
        #expect(without.epochs == with.epochs && with.fixes.count == 50)
        #expect(with.counters.badFields == 0 && with.counters.late == 0)
    }

    /// Live, an epoch ends with its learnt last sentence whatever is sent after it.
    @Test func endsEpochsInTheSameInstant() {
        var line = Line()
        for second in 10...29 {
            line.receive(rmc("1015\(second)") + gga("1015\(second)"), at: second * 1000)
            line.receive(Self.cycle + sentence("GPTXT,01,01,01,ANTENNA OPEN"), at: second * 1000 + 100)
        }
        let expected: [Int] = (20...29).map { $0 * 1000 }
        #expect(Array(line.instants.suffix(10)) == expected)
        #expect(line.decoder.satellites?.inView == 9 && line.decoder.antenna == .open)
        line.decoder.reset(at: Line.instant(60_000))
        #expect(line.decoder.satellites == nil && line.decoder.antenna == nil)
    }
}

@Suite("Antenna reports") struct AntennaTests {
    @Test(arguments: [
        ("01,01,02,ANTSTATUS=OK", AntennaState.ok), ("01,01,02,ANTSTATUS=OPEN", .open),
        ("01,01,02,ANTSTATUS=SHORT", .short), ("01,01,01,ANTENNA OK", .ok), ("01,01,01,ANTENNA OPEN", .open),
        ("01,01,01,ANTENNA SHORT", .short),
    ]) func readsTheState(_ text: String, _ state: AntennaState) {
        #expect(decode(sentence("GPTXT,\(text)")).antenna == state)
        #expect(decode(sentence("GNTXT,\(text)")).antenna == state)
    }

    @Test(arguments: [
        "", "01", "01,01,02", "01,01,02,", "01,01,02,ANTSTATUS", "01,01,02,ANTSTATUS=", "01,01,02,ANTSTATUS=O",
        "01,01,02,ANTSTATUS=INIT", "01,01,02,ANTENNA", "01,01,02,ANTSUPERV=AC SD PDoS SR", "DEFAULT PVT CONFIGURATION",
        "ANTSTATUS=OPEN",
    ]) func ignoresEverythingElse(_ text: String) {
        let before = sentence("GPTXT,01,01,02,ANTSTATUS=OK")
        #expect(decode(before + sentence("GPTXT,\(text)")).antenna == .ok)
        #expect(decode(sentence("GPTXT,\(text)")).antenna == nil)
    }

    @Test func needsAGoodChecksum() {
        #expect(decode("$GPTXT,01,01,02,ANTSTATUS=OPEN*00\r\n").antenna == nil)
        #expect(decode("$GPTXT,01,01,02,ANTSTATUS=OPEN\r\n").antenna == nil)
    }
}
