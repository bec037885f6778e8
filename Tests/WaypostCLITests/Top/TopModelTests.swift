import Testing
import WaypostControl
import WaypostCore

@testable import WaypostCLI

@Suite struct TopModelTests {
    private func key(_ character: Unicode.Scalar) -> Terminal.Key { .character(character) }

    @Test func ratesAreOverTheLastTenSeconds() throws {
        var model = TopModel()
        #expect(model.fixRate == nil)
        for second in 0..<30 {
            var status = TopFixture.status()
            status.motion.admitted = second < 20 ? 0 : (second - 19) * 4
            status.motion.rejected = Named([("age", second < 20 ? 0 : second - 19)])
            model.answered(status, nil, at: Double(second))
        }
        #expect(model.fixRate == 5)
        #expect(model.keptRate == 0)
    }

    @Test func aDaemonThatWasStartedAgainBeginsWithNewRates() {
        var model = TopModel()
        var status = TopFixture.status()
        model.answered(status, nil, at: 0)
        status.motion.admitted = 3
        model.answered(status, nil, at: 1)
        #expect(model.fixRate == nil)
        status.motion.admitted = 5
        model.answered(status, nil, at: 2)
        #expect(model.fixRate == 2)
    }

    @Test func numbersOfAStrangeDaemonDoNotTrap() {
        var model = TopModel()
        var status = TopFixture.status()
        (status.motion.admitted, status.motion.kept) = (.min, .min)
        model.answered(status, nil, at: 0)
        (status.motion.admitted, status.motion.kept) = (.max, .max)
        status.motion.rejected = Named([("age", .max)])
        status.endpointsMore = .max
        status.uptime = .infinity
        status.motion.odometer = -.infinity
        status.motion.engine.resolution.displacement = 1e300
        status.queue.bytes = .min
        var look = TopFixture.look()
        look.fix?.speed = .nan
        look.fix?.age = .nan
        status.source.rate = RateStatus()
        status.source.rate?.measured = .max
        look.motion.evidence = 1e300
        look.motion.evidenceNeeded = 0
        look.motion.parksIn = 1e300
        look.motion.stands = -1e300
        look.motion.parksBecause = "x"
        model.answered(status, look, at: 1)
        for columns in [0, 1, 52, 80, 400] {
            for rows in [nil, 0, 1, 5, 24] as [Int?] {
                let page = TopPage(
                    model: model, columns: columns, rows: rows, isASCII: false, now: UTCTime(milliseconds: .max),
                    seconds: 1)
                #expect(page.lines.allSatisfy { $0.columns <= columns })
                if let rows { #expect(page.lines.count == rows) }
            }
        }
    }

    @Test func anAbsenceCountsFromItsBeginning() {
        var model = TopFixture.model()
        let later = UTCTime(milliseconds: TopFixture.now.milliseconds + 5000)
        model.failed("no daemon answers: connect /x: No such file", at: TopFixture.now)
        model.failed("no daemon answers: connect /x: Connection refused", at: later)
        #expect(model.absence?.since == TopFixture.now)
        #expect(model.absence?.problem.hasSuffix("refused") == true)
        model.answered(TopFixture.status(), nil, at: 20)
        #expect(model.absence == nil && model.message(at: 20) == "the daemon answers again")
        #expect(model.message(at: 60) == nil)
    }

    @Test func aFlushIsAskedForFirst() {
        var model = TopFixture.model()
        #expect(model.pressed(key("f")) == nil && model.message(at: 0)?.hasPrefix("flush: ") == true)
        #expect(model.pressed(key("n")) == nil && model.message(at: 0) == nil)
        #expect(model.pressed(key("f")) == nil)
        // No key does two things at once.
        #expect(model.pressed(key("q")) == nil)
        #expect(model.pressed(key("y")) == nil)
        #expect(model.pressed(key("f")) == nil && model.pressed(key("y")) == .flush)
    }

    @Test func keysSwitchAndOthersDoNothing() {
        var model = TopFixture.model()
        _ = model.pressed(key("p"))
        #expect(model.isPaused)
        _ = model.pressed(key(" "))
        #expect(!model.isPaused)
        _ = model.pressed(key("e"))
        #expect(model.showsAllEndpoints)
        for other in [key("\0"), key("\t"), key("\u{c8}"), key("x"), key("Q"), .up, .pageDown] {
            #expect(model.pressed(other) == nil)
        }
        #expect(model.pressed(key("q")) == .quit)
    }

    @Test func newDecisionsComeBeforeTheOnesThatAreKnown() {
        var model = TopFixture.model()
        #expect(model.decisions.map(\.number) == [4, 3, 2, 1] && model.lastDecision == 4)
        var look = TopFixture.look()
        look.decisions = [DecisionLook()]
        look.decisions[0].number = 5
        model.answered(TopFixture.status(), look, at: 11)
        #expect(model.decisions.map(\.number) == [5, 4, 3, 2, 1])
        model.connected()
        model.answered(TopFixture.status(), look, at: 12)
        #expect(model.decisions.map(\.number) == [5])
    }

    @Test func memoryIsBounded() {
        var model = TopModel()
        for second in 0..<2000 { model.answered(TopFixture.status(), TopFixture.look(), at: Double(second)) }
        #expect(model.speeds.count == 240 && model.decisions.count == 20)
    }

    static let locales: [([String: String], Bool)] = [
        (["LANG": "en_GB.UTF-8"], true), (["LANG": "C.utf8"], true), (["LANG": "C"], false), ([:], false),
        (["LC_ALL": "C", "LANG": "de_DE.UTF-8"], false),
        (["LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"], true),
    ]

    @Test(arguments: locales)
    func theLocaleSaysWhetherUnicodeIsShown(_ environment: [String: String], _ isUTF8: Bool) {
        #expect(TopCommand.isUTF8(environment) == isUTF8)
    }
}
