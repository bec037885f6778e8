import Testing
import WaypostControl
import WaypostCore

@testable import WaypostCLI

/// The screen, line by line.
@Suite struct TopPageTests {
    @Test func timesAreLocalAndSpeedsInTheUnitsOfThePerson() {
        var model = TopFixture.model()
        var status = TopFixture.status()
        status.units = "mph"
        model.answered(status, TopFixture.look(), at: 10)
        let page = TopPage(
            model: model, columns: 120, rows: 32, isASCII: false, now: TopFixture.now, seconds: 10,
            offset: 5 * 3600 + 1800)
        let text = page.lines.map(\.trimmedText).joined(separator: "\n")
        #expect(
            text.contains("12:59:47 +05:30") && text.contains("since 12:42:05") && text.contains("30 mph"), "\(text)")
        #expect(!text.contains("km/h") && !text.contains("UTC"))
    }

    /// One endpoint fails, the receiver sees little, and the van stands.
    private static var troubled: TopModel {
        var status = TopFixture.status(
            problems: [
                "van.example: status 503; retry in 43 s",
                "receiver: none of the last 60 fixes was believed: they have no valid position: give the antenna a view of "
                    + "the sky",
            ],
            endpoints: [
                TopFixture.endpoint("backup", waiting: 0),
                TopFixture.endpoint("van.example", waiting: 4711, problem: "status 503; retry in 43 s", failures: 7),
            ])
        status.motion.state = "stopping"
        return TopFixture.model(status, TopFixture.look(TopFixture.stopping))
    }

    private func lines(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test func aTripOn80By24() {
        #expect(
            TopFixture.page(TopFixture.model(), 80, 24)
                == lines(
                    """
                    waypost 1.0.0  ok                                       up 3 h 12   07:29:47 UTC

                    RECEIVER  receiving  1.0 fix/s  ±2.4 m  11 satellites  hdop 0.9  gps  0.3 s ago
                              at 52.52001, 13.40495  serial /dev/ttyACM0
                    MOTION    moving  since 07:12:05  48 km/h  course 47°  ▃▃▄▄▅▅▆▆▇▇█
                              halts below 1.8 km/h over 5 s, now 48 km/h
                              3 trips, 2 stops, 0 gaps, odometer 48.2 km
                    TRACK     kept 724, 11498 fixes  0.0/s  rule track-error
                              van: high, 1 s or 5 m: rule 2, a subscriber
                    QUEUE     12 locations  98 kB  2 in memory  slowest commit 12 ms

                    ENDPOINT            STATE      WAITING   OLDEST     SENT  LAST OK  B/FIX    NEXT
                    main                active          12     40 s      712      4 s     81       -

                    DECISIONS
                    07:12:31  departed (speed)  since 07:12:05  evidence 18 m  31 m away  15 km/h
                    06:58:10  parked (stop-timeout)  since 06:53:10  evidence 18 m  31 m away
                    06:51:02  geofence: enter depot (crossing)
                    06:40:00  receiver: asked for high, every 1 s or 5 m




                    q quit  p pause  f flush  e endpoints
                    """))
    }

    @Test func aHaltWithProblemsOn120By32() {
        #expect(
            TopFixture.page(Self.troubled, 120, 32)
                == lines(
                    """
                    waypost 1.0.0  degraded                                                                         up 3 h 12   07:29:47 UTC
                    ! van.example: status 503
                    ! receiver: none of the last 60 fixes was believed: they have no valid position: give the antenna a view of the sky

                    RECEIVER  receiving  1.0 fix/s  ±2.4 m  11 satellites  hdop 0.9  gps  0.3 s ago
                              at 52.52001, 13.40495  serial /dev/ttyACM0
                    MOTION    halted  since 07:12:05  48 km/h  ▃▃▄▄▅▅▆▆▇▇█
                              parks in 3 min 10 s  ━━━━━━━─────────────  stands for 1 min 50 s  (stop-timeout)
                              1 m of the 8 m that end the halt  ━━────────  3 m from its place (radius 25 m)
                              3 trips, 2 stops, 0 gaps, odometer 48.2 km
                    TRACK     kept 724, 11498 fixes  0.0/s  rule track-error  receiver: no special rate
                              van: high, 1 s or 5 m: rule 2, a subscriber
                    QUEUE     4711 locations  98 kB  2 in memory  slowest commit 12 ms

                    ENDPOINT                         STATE      WAITING   OLDEST     SENT  LAST OK  B/FIX    NEXT
                    van.example                      retrying      4711     40 s      712      4 s     81    43 s
                      7 failures in a row
                    backup                           active           0        -      712      4 s     81       -

                    DECISIONS
                    07:12:31  departed (speed)  since 07:12:05  evidence 18 m  31 m away  15 km/h  ±2.5 m
                    06:58:10  parked (stop-timeout)  since 06:53:10  evidence 18 m  31 m away  15 km/h  ±2.5 m
                    06:51:02  geofence: enter depot (crossing)
                    06:40:00  receiver: asked for high, every 1 s or 5 m







                    q quit  p pause  f flush  e endpoints
                    """))
    }

    @Test func theSameOn52By18() {
        #expect(
            TopFixture.page(Self.troubled, 52, 18)
                == lines(
                    """
                    waypost 1.0.0  degraded     up 3 h 12   07:29:47 UTC
                    ! van.example: status 503
                    ! receiver: none of the last 60 fixes was believed:
                      they have no valid position: give the antenna a v…
                    RECEIVER  receiving  1.0 fix/s  ±2.4 m  hdop 0.9
                              at 52.52001, 13.40495  serial /dev/ttyACM0
                    MOTION    halted  since 07:12:05  48 km/h  ▄▄▅▅▆▆▇▇█
                              parks in 3 min 10 s  ━━━━━━━─────────────
                              1 m of the 8 m that end the halt
                    TRACK     kept 724, 11498 fixes  0.0/s
                              van: high, 1 s or 5 m: rule 2, a subscrib…
                    QUEUE     4711 locations  98 kB  2 in memory
                    ENDPOINT         STATE      WAITING  LAST OK    NEXT
                    van.example      retrying      4711      4 s    43 s
                      7 failures in a row
                      1 more: press e
                    07:12:31  departed (speed)  since 07:12:05  15 km/h
                    q quit  p pause  f flush  e endpoints
                    """))
    }

    @Test func withoutUnicode() {
        let page = TopFixture.page(Self.troubled, 80, 24, isASCII: true)
        #expect(page.allSatisfy { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } })
        #expect(page.contains("          parks in 3 min 10 s  #######-------------  stands for 1 min 50 s"))
        #expect(page.contains("RECEIVER  receiving  1.0 fix/s  +-2.4 m  11 satellites  hdop 0.9  gps  0.3 s ago"))
    }

    @Test func everyEndpointWithWhatToDo() {
        var status = TopFixture.status(endpoints: (0..<9).map { TopFixture.endpoint("well-\($0)") })
        status.endpoints[4].state = "stopped"
        status.endpoints[4].reason = "gone"
        status.endpoints[4].advice = "check base_url"
        status.endpoints[7].held = "the route to it is metered"
        var model = TopFixture.model(status)
        _ = model.pressed(.character("e"))
        let page = TopFixture.page(model, 80, 24)
        #expect(page[2].hasPrefix("ENDPOINT"))
        #expect(
            page[3].hasPrefix("well-4              stopped ") && page[4] == "  gone"
                && page[5] == "  do: check base_url")
        #expect(page[6].hasPrefix("well-7              held ") && page[7] == "  the route to it is metered")
        #expect(page.count { $0.hasPrefix("well-") } == 9)
        #expect(page.last == "q quit  p pause  f flush  e overview  arrows scroll")
    }

    @Test func aDaemonThatIsAwayIsNotShownAsIfItWereThere() {
        var model = TopFixture.model()
        model.failed("no daemon answers: connect /run/waypost/control.sock: No such file", at: TopFixture.now)
        let later = UTCTime(milliseconds: TopFixture.now.milliseconds + 65_000)
        let page = TopPage(model: model, columns: 80, rows: 24, isASCII: false, now: later, seconds: 75)
        #expect(page.lines[0].text.hasPrefix("waypost 1.0.0  daemon away since 07:29:47 UTC  "))
        #expect(page.lines[0].text.hasSuffix("07:30:52 UTC"))
        #expect(page.lines[1].text == "! no daemon answers: connect /run/waypost/control.sock: No such file")
        #expect(page.lines.contains { $0.escaped.hasPrefix("\u{1b}[2mMOTION    moving") })
    }

    @Test func whatIsAskedAtTheStartAndWhatEveryServerHasIsNotSaid() {
        var look = TopFixture.look()
        look.decisions[3].time = nil
        look.published[0].because = "default"
        let page = TopFixture.page(
            TopFixture.model(TopFixture.status(endpoints: [TopFixture.endpoint("main", waiting: 0)]), look), 80, 24)
        #expect(page.contains { $0.hasPrefix("QUEUE     empty  98 kB") })
        #expect(!page.contains { $0.contains("asked for high") || $0.contains("van: ") })
    }

    @Test func motionSaysHowTheAssetTravels() {
        var status = TopFixture.status()
        (status.motion.activity, status.motion.activityConfidence) = ("on_foot", 85)
        let page = TopFixture.page(TopFixture.model(status, nil), 80, 24)
        #expect(page.contains { $0.hasPrefix("MOTION    moving  since 07:12:05  on foot (85 %)") })
        status.motion.state = "stationary"
        #expect(!TopFixture.page(TopFixture.model(status, nil), 80, 24).contains { $0.contains("on foot") })
    }

    @Test func beforeAnyAnswerThereIsSomethingToRead() {
        var model = TopModel()
        model.failed("no daemon answers: x", at: TopFixture.now)
        let page = TopFixture.page(model, 80, 24)
        #expect(page[1] == "! no daemon answers: x" && page[2].hasPrefix("sudo waypost doctor"))
    }

    /// A daemon of an older version does not know `look`.
    @Test func withoutALookTheRestIsThere() {
        let page = TopFixture.page(TopFixture.model(TopFixture.status(), nil), 80, 24)
        #expect(page.contains("MOTION    moving  since 07:12:05"))
        #expect(page.contains { $0.hasPrefix("main ") } && !page.contains("DECISIONS"))
    }

    @Test func whatIsWrongWithTheReceiverComesFirst() {
        var status = TopFixture.status()
        status.motion.lastFixAge = 725
        status.source.state = "silent"
        var look = TopFixture.look()
        look.fix?.age = 725
        look.refused = 12
        look.refusedReason = "accuracy"
        let page = TopFixture.page(TopFixture.model(status, look), 80, 24)
        #expect(page.contains { $0.hasPrefix("RECEIVER  silent  last fix 12 min ago  12 refused: accuracy  ") })
    }

    /// Minutes after the last fix it said "48 km/h ±2.4 m 11 satellites", in green, with one more bar each second.
    @Test(.bug(id: 13)) func anOldFixIsNotShownAsThePresent() {
        var (status, look) = (TopFixture.status(), TopFixture.look())
        var model = TopFixture.model(status, look)
        status.motion.lastFixAge = 30
        look.fix?.age = 30
        for second in 11..<41 { model.answered(status, look, at: Double(second)) }
        let page = TopPage(
            model: model, columns: 80, rows: 24, isASCII: false, now: TopFixture.now, seconds: 40
        ).lines.map(\.trimmedText)
        #expect(page.contains("RECEIVER  receiving  last fix 30 s ago  0.0 fix/s"), "\(page)")
        #expect(page.contains("          last at 52.52001, 13.40495  serial /dev/ttyACM0"))
        #expect(page.contains("MOTION    moving  since 07:12:05  ▃▃▄▄▅▅▆▆▇▇█"))
        #expect(page.contains("          halts below 1.8 km/h over 5 s"))
        #expect(model.speeds.suffix(30).allSatisfy { $0 == nil })
    }

    /// Asked for a fix every minute, half a minute is no age.
    @Test func aReceiverThatGivesFewFixesIsNotLate() {
        var (status, look) = (TopFixture.status(), TopFixture.look())
        status.source.rate = RateStatus()
        status.source.rate?.measured = 60_000
        status.motion.lastFixAge = 30
        look.fix?.age = 30
        let page = TopFixture.page(TopFixture.model(status, look), 80, 24)
        #expect(page.contains("RECEIVER  receiving  1.0 fix/s  ±2.4 m  11 satellites  hdop 0.9  gps  30.0 s ago"))
    }

    @Test func theSatellitesAreOneFact() {
        var status = TopFixture.status()
        status.source.satellitesInView = 14
        let page = TopFixture.page(TopFixture.model(status), 80, 24)
        #expect(page.contains { $0.hasPrefix("RECEIVER  receiving  1.0 fix/s  ±2.4 m  11 of 14 satellites  ") })
        status.motion.lastFixAge = nil
        status.source.satellitesInView = 3
        let without = TopFixture.page(TopFixture.model(status, nil), 80, 24)
        #expect(without.contains("RECEIVER  receiving  no fix yet  1.0 fix/s  3 satellites in view"))
    }

    @Test func aReceiverThatIsAsleepIsNoAlarm() {
        var (status, look) = (TopFixture.status(), TopFixture.look())
        status.source.state = "asleep"
        status.motion.lastFixAge = 725
        look.fix?.age = 725
        let model = TopFixture.model(status, look)
        let page = TopPage(
            model: model, columns: 80, rows: 24, isASCII: false, now: TopFixture.now, seconds: 10)
        let line = page.lines.first { $0.text.hasPrefix("RECEIVER") }
        #expect(
            line?.escaped.contains("asleep  \u{1b}[2mlast fix 12 min ago\u{1b}[0m") == true, "\(line?.escaped ?? "")")
    }

    /// 40 endpoints, of which a status has room for 30.
    private static var many: TopModel {
        var status = TopFixture.status(endpoints: (0..<30).map { TopFixture.endpoint("well-\(10 + $0)") })
        for index in 0..<12 {
            status.endpoints[index].problem = "status 500"
            status.endpoints[index].advice = "see its log"
            status.endpoints[index].consecutiveFailures = 3
        }
        status.endpointsMore = 10
        return TopFixture.model(status)
    }

    @Test(.bug(id: 13)) func whatDoesNotFitIsSaid() {
        let page = TopFixture.page(Self.many, 80, 24)
        #expect(
            page.contains("  28 more (10 failing): press e")
                && page.contains("  and 10 more: waypost endpoint list"))
    }

    @Test(.bug(id: 13)) func theEndpointsCanBeScrolled() {
        var model = Self.many
        _ = model.pressed(.character("e"))
        func page() -> [String] { TopFixture.page(model, 80, 24) }
        // Three lines each, of which none is cut.
        #expect(
            page()[3].hasPrefix("well-10 ") && page()[18].hasPrefix("well-15 ") && page()[20] == "  do: see its log")
        #expect(page()[21] == "  24 more below" && page()[22] == "  and 10 more: waypost endpoint list")
        _ = model.pressed(.pageDown)
        _ = model.pressed(.down)
        #expect(page()[3].hasPrefix("well-21 ") && page()[21] == "  11 more above, 3 more below", "\(page())")
        for _ in 0..<9 { _ = model.pressed(.pageDown) }
        #expect(page()[3].hasPrefix("well-39 ") && page()[4] == "  29 more above")
        _ = model.pressed(.up)
        #expect(page()[3].hasPrefix("well-38 "))
        for _ in 0..<9 { _ = model.pressed(.pageUp) }
        #expect(page()[3].hasPrefix("well-10 "))
        // Fewer endpoints after a reload.
        for _ in 0..<2 { _ = model.pressed(.pageDown) }
        model.answered(TopFixture.status(), nil, at: 11)
        #expect(page().contains { $0.hasPrefix("main ") } && model.endpointsAbove == 0)
    }

    static let keys: [([UInt8], [Terminal.Key])] = [
        ([0x71], [Terminal.Key.character("q")]), ([0x1B, 0x5B, 0x41], [.up]), ([0x1B, 0x4F, 0x42], [.down]),
        ([0x1B, 0x5B, 0x35, 0x7E], [.pageUp]),
        ([0x1B, 0x5B, 0x36, 0x7E, 0x1B, 0x5B, 0x36, 0x7E], [.pageDown, .pageDown]),
        ([0x1B, 0x5B, 0x44], []), ([0x1B], [.character("\u{1b}")]), ([0xFF], [.character("\u{ff}")]), ([], []),
        // Typed while the line was slow.
        (Array("p\u{1B}[6~\u{1B}[Aef".utf8), [.character("p"), .pageDown, .up, .character("e"), .character("f")]),
        (Array("\u{1B}[1;5Cq".utf8), [.character("q")]),
        (Array("\u{1B}\u{1B}[B".utf8), [.character("\u{1b}"), .down]),
        (Array("q\u{1B}[".utf8), [.character("q")]), (Array("\u{1B}O".utf8), []),
    ]

    @Test(arguments: keys)
    func keysAreReadFromTheirBytes(_ bytes: [UInt8], _ keys: [Terminal.Key]) {
        #expect(Terminal.keys(of: bytes[...]) == keys)
    }

    @Test func noScreenIsTooSmall() {
        for (columns, rows) in [(1, 1), (10, 3), (20, 6), (52, 5), (300, 100)] {
            let page = TopPage(
                model: Self.troubled, columns: columns, rows: rows, isASCII: false, now: TopFixture.now, seconds: 10)
            #expect(page.lines.count == rows && page.lines.allSatisfy { $0.columns <= columns }, "\(columns) x \(rows)")
        }
    }

    /// For a file or a pipe: everything, and no keys.
    @Test func aPictureForAFileHasNoLimit() {
        let page = TopFixture.page(TopFixture.model(), 100, nil)
        #expect(page.last == "06:40:00  receiver: asked for high, every 1 s or 5 m")
        #expect(!page.contains { $0.contains("q quit") })
    }
}
