import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct FixFilterTests {
    private func fix(
        _ seconds: Double, north: Double = 0, accuracy: Double? = 4, quality: FixQuality = .gps,
        mode: FixMode = .threeD, clock: Double = 0
    ) -> Fix {
        let time = UTCTime(milliseconds: Script.start.milliseconds + Int64((seconds + clock) * 1000))
        return Fix(
            time: time, timeOfDay: time.timeOfDay, at: EventTime(nanoseconds: Int64(seconds * 1e9)),
            coordinate: Script.place(north: north), horizontalAccuracy: accuracy, mode: mode, quality: quality)
    }

    private func admit(_ fixes: [Fix], _ settings: FixFilter.Settings = .init()) -> [FixFilter.Verdict] {
        var filter = FixFilter(settings: settings)
        return fixes.map { filter.admit($0, at: $0.at) }
    }

    @Test func refusesWhatIsNoPosition() {
        var nullIsland = fix(0)
        nullIsland.coordinate = Coordinate(latitudeE7: 0, longitudeE7: 0)
        var outOfRange = fix(0)
        outOfRange.coordinate = Coordinate(latitudeE7: .min, longitudeE7: .max)
        for bad in [nullIsland, outOfRange, fix(0, quality: .none), fix(0, mode: .none)] {
            #expect(admit([bad]) == [.rejected(.position)])
        }
        var equator = fix(0)
        equator.coordinate = Coordinate(latitudeE7: 0, longitudeE7: 95_000_000)
        #expect(admit([equator]) == [.admitted])
    }

    @Test(arguments: [FixQuality.simulated, .manual])
    func refusesSimulatedFixesUnlessAllowed(quality: FixQuality) {
        var allowing = FixFilter.Settings()
        allowing.allowSimulated = true
        #expect(admit([fix(0, quality: quality)]) == [.rejected(.simulated)])
        #expect(admit([fix(0, quality: quality)], allowing) == [.admitted])
    }

    @Test func holdsOutDatelessFixes() {
        var dateless = fix(0)
        dateless.time = nil
        #expect(admit([dateless]) == [.rejected(.dateless)])
    }

    @Test(arguments: [(nil, true), (100, true), (100.1, false), (1000, false)] as [(Double?, Bool)])
    func judgesTheAccuracyInclusively(accuracy: Double?, admitted: Bool) {
        #expect(admit([fix(0, accuracy: accuracy)]) == [admitted ? .admitted : .rejected(.accuracy)])
    }

    @Test func distinguishesDuplicatesFromOldFixes() {
        let fixes = [fix(10), fix(10), fix(10, north: 3), fix(9)]
        #expect(admit(fixes) == [.admitted, .rejected(.duplicate), .rejected(.age), .rejected(.age)])
    }

    @Test func shortRepeatsNeverSetTheClockBack() {
        let verdicts = admit((0..<40).map { fix(Double($0), clock: $0 % 5 == 4 ? -3 : 0) })
        #expect(!verdicts.contains(.admittedAfterClockStep))
        #expect(verdicts.count { $0 == .admitted } == 32)
    }

    @Test func believesTheTenthOfTenOlderTimesThatRise() {
        let verdicts = admit((0..<30).map { fix(Double($0), clock: $0 < 10 ? 0 : -3600) })
        var expected = [FixFilter.Verdict](repeating: .admitted, count: 30)
        for index in 10..<19 { expected[index] = .rejected(.age) }
        expected[19] = .admittedAfterClockStep
        #expect(verdicts == expected)
    }

    /// Metres of far fixes from the first one, a second apart after twenty near ones: the index of the one that is believed.
    @Test(
        arguments: [
            // A way leads on: at 14 m/s it is a hundred metres beyond the accuracy after nine of them.
            ((0..<20).map { Double($0) * 14 }, 1.0, 8),
            // They stand: after three minutes.
            ((0..<200).map { Double($0 % 3) }, 1, 180),
            // Ten agreeing positions, and then back: never.
            ((0..<10).map { Double($0 % 3) }, 5, nil),
            // Between two far places it jumps.
            ([0, 0, 300, 300, 0, 0, 300, 0], 10, nil),
        ] as [([Double], Double, Int?)])
    func believesFarFixesOnceAWayLeadsOn(metres: [Double], interval: Double, believed: Int?) {
        var fixes = (0..<20).map { fix(Double($0)) }
        fixes += metres.indices.map { fix(20 + Double($0) * interval, north: 5000 + metres[$0]) }
        fixes.append(fix(20 + Double(metres.count) * interval))
        let verdicts = admit(fixes).dropFirst(20)
        #expect(verdicts.firstIndex(of: .admittedAfterJump) == believed.map { 20 + $0 })
        #expect(verdicts.prefix(believed ?? metres.count).allSatisfy { $0 == .rejected(.impliedSpeed) })
        if believed == nil { #expect(verdicts.last == .admitted) }
    }

    /// A first fix that is off is outvoted.
    @Test func threeFarFixesThatAgreeOutvoteTheFirst() {
        let verdicts = admit((0..<5).map { fix(Double($0), north: $0 == 0 ? 0 : 5000) })
        let held = [FixFilter.Verdict](repeating: .rejected(.impliedSpeed), count: 2)
        #expect(verdicts == [.admitted] + held + [.admittedAfterJump, .admitted])
    }

    /// 2 km within half a minute of standing, though slower than the limit.
    @Test func fromAStandstillNothingIsFarAtOnce() {
        #expect(admit([fix(0), fix(30), fix(60, north: 2000)]).last == .rejected(.impliedSpeed))
        #expect(admit([fix(0), fix(30, north: 600), fix(60, north: 2600)]).last == .admitted)
    }

    @Test func farFixesThatDisagreeAreNeverBelieved() {
        let places: [Double] = (0..<30).map { $0.isMultiple(of: 2) ? 0 : 3000 * Double($0) }
        let verdicts = admit(places.indices.map { fix(Double($0), north: places[$0]) })
        #expect(verdicts == places.map { $0 == 0 ? .admitted : .rejected(.impliedSpeed) })
    }

    @Test func allowsForBothAccuraciesInTheSpeed() {
        #expect(admit([fix(0), fix(1, north: 77)]) == [.admitted, .admitted])
        #expect(admit([fix(0), fix(1, north: 79)]) == [.admitted, .rejected(.impliedSpeed)])
        // Unknown accuracy counts as 10 m.
        let unknown = [fix(0, accuracy: nil), fix(1, north: 89, accuracy: nil)]
        #expect(admit(unknown) == [.admitted, .admitted])
    }

    @Test func aSilenceLetsTheAssetBeElsewhere() {
        #expect(admit([fix(0), fix(600, north: 40_000)]) == [.admitted, .admitted])
    }
}
