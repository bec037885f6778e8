import Testing

@testable import WaypostCore

@Suite struct UnitScaleTests {
    static let readings: [(UnitScale, String, UnitScale.Reading)] = [
        (.duration, "250ms", .value(0.25)), (.duration, "5m", .value(300)), (.duration, "1h30m", .value(5400)),
        (.duration, "2d", .value(172_800)), (.duration, "1.5h", .value(5400)), (.duration, "1h 30m", .value(5400)),
        (.duration, "0s", .value(0)), (.duration, " 5 s ", .value(5)),
        (.duration, "", .notANumber), (.duration, "m", .notANumber), (.duration, "5.5.5s", .notANumber),
        (.duration, "30m1h", .notANumber), (.duration, "5m5m", .notANumber), (.duration, "--5s", .notANumber),
        (.duration, "٣s", .notANumber), (.duration, "1h30min", .unitUnknown(suggestion: "1h30m")),
        (.distance, "1.2km", .value(1200)), (.speed, "36 km/h", .value(10)),
        (.speed, "5kn", .value(9260.0 / 3600)), (.angle, "20deg", .value(20)), (.size, "256MiB", .value(268_435_456)),
        (.distance, "5", .unitMissing), (.distance, "5ft", .unitUnknown(suggestion: "1.52m")),
        (.distance, "0.5 mi", .unitUnknown(suggestion: "0.8km")),
        (.speed, "60mph", .unitUnknown(suggestion: "96.6km/h")),
        (.distance, "5KM", .unitUnknown(suggestion: "5km")), (.angle, "20°", .unitUnknown(suggestion: "20deg")),
        (.distance, "1km5m", .unitUnknown(suggestion: nil)),
    ]

    @Test(arguments: readings)
    func reads(_ scale: UnitScale, _ text: String, _ reading: UnitScale.Reading) {
        #expect(scale.read(text) == reading)
    }

    static let texts: [(UnitScale, Double, String)] = [
        (.duration, 0, "0s"), (.duration, 0.25, "250ms"), (.duration, 1.5, "1s500ms"), (.duration, 300, "5m"),
        (.duration, 5400, "1h30m"), (.duration, 172_800, "2d"), (.duration, 604_800, "7d"),
        (.duration, 59.9996, "1m"), (.distance, 25, "25m"), (.distance, 1200, "1.2km"), (.distance, 0.05, "0.05m"),
        (.speed, 0.5, "0.5m/s"), (.speed, 10.0 / 3.6, "10km/h"), (.size, 268_435_456, "256MiB"),
        (.size, 5_000_000, "5MB"), (.angle, 1e-7, "0.0000001deg"),
    ]

    @Test(arguments: texts)
    func quantitiesAreShownAsTheyWouldBeWritten(_ scale: UnitScale, _ value: Double, _ text: String) {
        #expect(scale.render(value) == text)
    }

    @Test(arguments: [1e-7, 2.5e-10, 1.2345678901234e-5] as [Double])
    func whatIsTinyIsReadAsItIsShown(_ tiny: Double) {
        #expect(UnitScale.angle.read(UnitScale.angle.render(tiny)) == .value(tiny))
    }

    static let words: [(String, String, Int)] = [
        ("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "axc", 1), ("", "ab", 2),
        ("kitten", "sitting", 3),
    ]

    @Test(arguments: words)
    func distanceBetweenWords(_ a: String, _ b: String, _ edits: Int) {
        #expect([editDistance(a, b), editDistance(b, a)] == [edits, edits])
    }
}
