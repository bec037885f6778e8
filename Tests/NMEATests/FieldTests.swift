import Testing
import WaypostCore
import WaypostNMEA

@Suite("Fields") struct FieldTests {
    @Test(arguments: [
        ("000000", 0), ("101502", 36_902_000), ("101502.", 36_902_000), ("101502.5", 36_902_500),
        ("101502.12", 36_902_120), ("101502.0004", 36_902_000), ("101502.0005", 36_902_001),
        ("101502.99951", 36_903_000), ("235959.999", 86_399_999), ("235960", 86_400_000), ("235960.5", 86_400_500),
        ("235960.9999999999999999999999", 86_400_999), ("125960", 46_800_000), (" 101502 ", 36_902_000),
        ("10150", 3_710_000), ("3000.5", 1_800_500), ("0", 0), ("240000", 86_400_000), ("106000", 39_600_000),
    ])
    func readsTimes(_ text: String, milliseconds: Int) {
        #expect(decode(gll(text)).fixes.map(\.timeOfDay) == [milliseconds])
    }

    @Test(arguments: [
        "00150", "1015022", "101502.1.", "101502,1", ".1", "1015a2", "240001", "240000.5", "250000", "106001", "101561",
        "-10150", "101502.5s", "1015 2", " ",
    ])
    func rejectsOtherTimes(_ text: String) {
        #expect(decode(gll(text)).fixes.isEmpty)
    }

    @Test(arguments: [
        ("4807.0380,N,01131.0000,E", 481_173_000, 115_166_667), ("0000.0000,N,00000.0000,E", 0, 0),
        ("4807.038,S,01131.0,W", -481_173_000, -115_166_667), ("9000.0000,N,18000.0000,W", 900_000_000, -1_800_000_000),
        ("4134.49821229,N,09345.03351845,W", 415_749_702, -937_505_586), ("0807.5,N,131.5,E", 81_250_000, 15_250_000),
        ("0000.00000300,N,00000.00000299,E", 1, 0), ("0000.00000300,S,00000.00000299,W", -1, 0),
        ("0059.99999999999999,N,00059.9999999,E", 10_000_000, 10_000_000), ("4807,N,01131,E", 481_166_667, 115_166_667),
        ("4760.0000,N,01060.0,W", 480_000_000, -110_000_000), (" 4807.5 , N , 131.5 , E ", 481_250_000, 15_250_000),
    ])
    func readsPositionsInIntegers(_ text: String, latitudeE7: Int32, longitudeE7: Int32) {
        let coordinate = decode(rmc("101502", "A", text)).fixes.first?.coordinate
        #expect(coordinate == Coordinate(latitudeE7: latitudeE7, longitudeE7: longitudeE7))
    }

    @Test(arguments: [
        "4860.0001,N,01131.0000,E", "4807.0380,N,01161.0000,E", "9000.0001,N,01131.0000,E", "4807.0380,N,18000.0001,E",
        "9107.0380,N,01131.0000,E", "4807.0380,,01131.0000,E", "4807.0380,N,01131.0000,", "4807.0380,E,01131.0000,N",
        "-4807.0380,N,01131.0000,E", "4807.038O,N,01131.0000,E", ".5,N,01131.0,E", "480700.0,N,01131.0,E",
        ",N,01131.0,E",
        ",,,", "4807.0380,NN,01131.0000,E", "4807..038,N,01131.0000,E", "4807.0 38,N,01131.0000,E",
    ])
    func rejectsOtherPositions(_ text: String) {
        let result = decode(rmc("101502", "A", text))
        #expect(result.fixes.isEmpty)
        #expect(result.voids.map(\.reason) == [.noPosition])
    }

    @Test(
        arguments: [
            ("", nil), ("0", 0.0), ("000.0", 0), ("10", 10 * 1852 / 3600.0), ("22.4", 22.4 * 1852 / 3600),
            (".5", 0.5 * 1852 / 3600), ("-1", nil), ("1e3", nil), ("abc", nil), ("nan", nil), ("1.2.3", nil),
            ("-", nil),
            (".", nil), ("9999999999999999999", nil), ("0.00000000000000000000001", 0),
        ] as [(String, Double?)])
    func readsSpeeds(_ text: String, speed: Double?) {
        #expect(decode(rmc("101502", speed: text)).fixes.first?.speed == speed)
    }

    @Test(
        arguments: [("", nil), ("0", 0.0), ("359.99", 359.99), ("360", 360), ("360.1", nil), ("-1", nil)]
            as [(String, Double?)])
    func readsCourses(_ text: String, course: Double?) {
        #expect(decode(rmc("101502", course: text)).fixes.first?.course == course)
    }

    @Test func countsUnreadableFieldsAndUsesTheRest() {
        let result = decode(rmc("101502", speed: "x", course: "12.0", date: "2303-4"))
        #expect(result.counters.badFields == 2)
        #expect(result.fixes.first?.course == 12)
        #expect(result.times == ["dateless"])
    }

    @Test(
        arguments: [
            ("230394", "1994-03-23"), ("70326", "2026-03-07"), (" 70326 ", "2026-03-07"), ("070326 ", "2026-03-07"),
            ("7326", nil), ("00326", nil), ("320126", nil), ("71326", nil), ("2303940", nil),
        ] as [(String, String?)])
    func readsDates(_ text: String, day: String?) {
        #expect(decode(rmc("101502", date: text)).times == [day.map { "\($0)T10:15:02.000Z" } ?? "dateless"])
    }

    @Test(
        arguments: [
            ("M", 100.0), ("m", 100), ("", 100), (" M ", 100), ("F", 30.48), ("f", 30.48), ("K", nil), ("MM", nil),
        ] as [(String, Double?)])
    func theUnitOfAnAltitudeCounts(_ unit: String, metres: Double?) throws {
        let body = "GPGGA,101502,4807.0380,N,01131.0000,E,1,08,0.9,100,\(unit),0,\(unit),,"
        let result = decode(sentence(body))
        let fix = try #require(result.fixes.first)
        #expect(fix.altitudeMSL.map { ($0 * 100).rounded() / 100 } == metres)
        #expect(result.counters.badFields == (metres == nil ? 2 : 0))
    }

    @Test func readsAltitudesAndTheirSum() {
        let fix = decode(gga("101502", altitude: "-10.5", separation: "46.9")).fixes[0]
        #expect(fix.altitudeMSL == -10.5)
        #expect(fix.altitudeHAE == -10.5 + 46.9)
        let without = decode(gga("101502", separation: "")).fixes[0]
        #expect(without.altitudeMSL == 545.4)
        #expect(without.altitudeHAE == nil)
        #expect(decode(gga("101502", altitude: "")).fixes[0].altitudeHAE == nil)
    }

    @Test(arguments: [
        ("1", FixQuality.gps), ("2", .dgps), ("3", .pps), ("4", .rtk), ("5", .rtkFloat), ("6", .deadReckoning),
        ("7", .manual), ("8", .simulated), ("9", .dgps),
    ])
    func readsQualities(_ text: String, quality: FixQuality) {
        #expect(decode(gga("101502", quality: text)).fixes.map(\.quality) == [quality])
    }

    @Test(arguments: [
        ("A", FixQuality.gps), ("D", .dgps), ("P", .pps), ("R", .rtk), ("F", .rtkFloat), ("E", .deadReckoning),
        ("M", .manual), ("S", .simulated), ("", .gps),
    ])
    func readsModeLetters(_ letter: String, quality: FixQuality) {
        #expect(decode(rmc("101502", mode: letter)).fixes.map(\.quality) == [quality])
    }

    @Test func survivesSentencesThatEndEarly() {
        for body in [
            "GPRMC,", "GPGGA,1", "GPGSA,A,3", "GPVTG,,", "GPGLL,,,", "GPZDA,101502,,", "GPGNS,1,2", "PUBX,00,",
            "GPGSV,1,1", "GPTXT,01,01",
        ] {
            let result = decode(sentence(body) + sentence("\(body),,,"))
            #expect(result.fixes.isEmpty)
            #expect(result.counters.sentences == 2)
        }
    }
}
