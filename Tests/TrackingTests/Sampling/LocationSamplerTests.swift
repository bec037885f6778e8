import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct LocationSamplerTests {
    typealias Moment = (ms: Int64, metres: Double)

    struct Situation: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var rule = LocationSampler.Rule.either
        var minGap: Int64
        var interval: Int64
        var displacement: Double
        var fixes: [Moment]
        var selected: [Int]

        init(
            _ description: String, rule: LocationSampler.Rule = .either, minGap: Int64 = 0, interval: Int64 = 1000,
            displacement: Double = 5, _ fixes: [Moment], _ selected: [Int]
        ) {
            (testDescription, self.rule, self.minGap, self.interval) = (description, rule, minGap, interval)
            (self.displacement, self.fixes, self.selected) = (displacement, fixes, selected)
        }
    }

    static let situations: [Situation] = [
        Situation("interval inclusive", [(0, 0), (999, 4.9), (1000, 0)], [0, 2]),
        Situation("displacement inclusive", [(0, 0), (10, 5.001)], [0, 1]),
        Situation(
            "against the last selected, not the last", interval: 1_000_000, displacement: 2,
            [(1, 0), (2, 1.01), (3, 2.02), (4, 3.03), (5, 4.04)], [0, 2, 4]),
        Situation("both", rule: .both, [(0, 0), (1000, 4.9), (1500, 5.001), (1600, 50), (2500, 50)], [0, 2, 4]),
        Situation("both inclusive", rule: .both, [(0, 0), (1000, 5.001)], [0, 1]),
        Situation(
            "minimum gap caps a fast mover", minGap: 500, interval: 10_000,
            [(0, 0), (200, 10), (400, 20), (500, 25), (1000, 26)], [0, 3]),
        Situation(
            "clock back selects and re-bases", interval: 10_000, displacement: 50,
            [(100_000, 0), (99_000, 0), (105_000, 0), (109_000, 0)], [0, 1, 3]),
        Situation(
            "clock forward selects by itself", interval: 10_000, displacement: 50,
            [(0, 0), (86_400_000, 0), (86_401_000, 0)], [0, 1]),
        Situation(
            "clock back passes the minimum gap", minGap: 500, [(100_000, 0), (99_900, 0), (100_000, 50)], [0, 1]),
        Situation("interval 0 is every fix", interval: 0, displacement: 50, [(0, 0), (0, 0), (1, 0)], [0, 1, 2]),
        Situation(
            "interval alone", rule: .interval, displacement: 0,
            [(0, 0), (999, 500), (1000, 500), (1500, 900), (2000, 0)], [0, 2, 4]),
        Situation("displacement 0 is every fix", displacement: 0, [(0, 0), (1, 0), (2, 0)], [0, 1, 2]),
    ]

    @Test(arguments: situations)
    func selects(_ situation: Situation) {
        var settings = LocationSampler.Settings()
        settings.rule = situation.rule
        settings.minGap = .milliseconds(situation.minGap)
        let resolution = Resolution(
            priority: .balanced, intervalMs: situation.interval, displacement: situation.displacement)
        var sampler = LocationSampler(settings: settings)
        let selected = situation.fixes.indices.filter { index in
            let (ms, metres) = situation.fixes[index]
            return sampler.sample(
                .init(time: UTCTime(milliseconds: ms), coordinate: Script.place(north: metres)), resolution: resolution)
                != nil
        }
        #expect(selected == situation.selected)
    }

    @Test func selectsEverythingBeforeThereIsAResolution() {
        var sampler = LocationSampler(settings: .init())
        for ms in [0, 1, 2] as [Int64] {
            let time = UTCTime(milliseconds: ms)
            #expect(sampler.sample(.init(time: time, coordinate: Script.origin), resolution: nil)?.current == .first)
        }
    }

    @Test func anExtremeStoredTimeDoesNotTrap() {
        let selected = LocationSampler.Selected(time: UTCTime(milliseconds: .min), coordinate: Script.origin)
        var sampler = LocationSampler(settings: .init(), selected: selected)
        #expect(
            sampler.sample(.init(time: Script.start, coordinate: Script.origin), resolution: .standard)?.current
                == .clockStep)
    }
}
