import Testing

@testable import Positioning

@Suite struct UnitScaleTests {
    @Test(
        arguments: [
            ("250ms", 0.25), ("5m", 300), ("1h30m", 5400), ("2d", 172_800), ("1.5h", 5400), ("1h 30m", 5400), ("0s", 0),
            (" 5 s ", 5),
        ])
    func duration(text: String, seconds: Double) { #expect(UnitScale.duration.read(text) == .value(seconds)) }

    @Test(arguments: ["", "m", "5.5.5s", "30m1h", "5m5m", "--5s", "٣s"])
    func noDuration(text: String) { #expect(UnitScale.duration.read(text) == .notANumber) }

    @Test func unitsOfTheOtherQuantities() {
        #expect(UnitScale.distance.read("1.2km") == .value(1200))
        #expect(UnitScale.speed.read("36 km/h") == .value(10))
        #expect(UnitScale.speed.read("5kn") == .value(5 * 1852.0 / 3600))
        #expect(UnitScale.angle.read("20deg") == .value(20))
        #expect(UnitScale.size.read("256MiB") == .value(268_435_456))
        #expect(UnitScale.distance.read("5") == .unitMissing)
        #expect(UnitScale.distance.read("5ft") == .unitUnknown(suggestion: nil))
        #expect(UnitScale.distance.read("5KM") == .unitUnknown(suggestion: "5km"))
        #expect(UnitScale.angle.read("20°") == .unitUnknown(suggestion: "20deg"))
        #expect(UnitScale.duration.read("1h30min") == .unitUnknown(suggestion: "1h30m"))
        #expect(UnitScale.distance.read("1km5m") == .unitUnknown(suggestion: nil))
    }

    @Test(
        arguments: [
            (0.0, "0s"), (0.25, "250ms"), (1.5, "1s500ms"), (300, "5m"), (5400, "1h30m"), (172_800, "2d"),
            (604_800, "7d"), (59.9996, "1m"),
        ])
    func durationIsShownAsItWouldBeWritten(seconds: Double, text: String) {
        #expect(UnitScale.duration.render(seconds) == text)
    }

    @Test func quantitiesAreShownAsTheyWouldBeWritten() {
        #expect(UnitScale.distance.render(25) == "25m")
        #expect(UnitScale.distance.render(1200) == "1.2km")
        #expect(UnitScale.distance.render(0.05) == "0.05m")
        #expect(UnitScale.speed.render(0.5) == "0.5m/s")
        #expect(UnitScale.speed.render(10.0 / 3.6) == "10km/h")
        #expect(UnitScale.size.render(268_435_456) == "256MiB")
        #expect(UnitScale.size.render(5_000_000) == "5MB")
        for tiny in [1e-7, 2.5e-10, 1.2345678901234e-5] {
            #expect(UnitScale.angle.read(UnitScale.angle.render(tiny)) == .value(tiny))
        }
        #expect(UnitScale.angle.render(1e-7) == "0.0000001deg")
    }

    @Test(
        arguments: [
            ("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "axc", 1), ("", "ab", 2),
            ("kitten", "sitting", 3),
        ])
    func distanceBetweenWords(a: String, b: String, edits: Int) {
        #expect(editDistance(a, b) == edits)
        #expect(editDistance(b, a) == edits)
    }
}
