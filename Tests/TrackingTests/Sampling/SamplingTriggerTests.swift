import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

/// What selects besides interval and displacement.
@Suite struct SamplingTriggerTests {
    private struct Look {
        var seconds: Double
        var metres = 0.0
        var speed: Double?
        var course: Double?
        var accuracy: Double?
    }

    private static let slow = Resolution(priority: .balanced, intervalMs: 1_000_000, displacement: 100_000)

    private func reasons(
        _ looks: [Look], _ resolution: Resolution = slow, standing: Bool = false,
        _ change: (inout LocationSampler.Settings) -> Void
    ) -> [LocationSampler.Trigger?] {
        var settings = LocationSampler.Settings()
        change(&settings)
        var sampler = LocationSampler(settings: settings)
        return looks.map { look in
            sampler.sample(
                .init(
                    time: Script.start + .milliseconds(Int64(look.seconds * 1000)),
                    coordinate: Script.place(north: look.metres), speed: look.speed, course: look.course,
                    accuracy: look.accuracy), resolution: resolution, standing: standing)?.current
        }
    }

    @Test(
        arguments: [
            (7.7, 30, 60), (27, 50, 300), (1.0, 10, 10), (5.0, 10, 10), (5.01, 10, 20), (nil, 30, 30), (0, 30, 30),
            (-3, 30, 30), (.nan, 30, 30), (.infinity, 30, 30), (70, 50, 500), (30, 600, 600),
        ] as [(Double?, Double, Double)])
    func elasticityStretchesTheDisplacement(speed: Double?, displacement: Double, expected: Double) {
        #expect(
            LocationSampler.elastic(displacement: displacement, speed: speed, multiplier: 1) == expected)
        #expect(LocationSampler.elastic(displacement: displacement, speed: speed, multiplier: 0) == displacement)
        #expect(LocationSampler.elastic(displacement: displacement, speed: speed, multiplier: .nan) == displacement)
    }

    @Test func elasticityHoldsBackAFastAsset() {
        let resolution = Resolution(priority: .balanced, intervalMs: 1_000_000, displacement: 10)
        let looks: [Look] = (0...3).map { Look(seconds: Double($0), metres: Double($0 * 12), speed: 12) }
        #expect(reasons(looks, resolution) { _ in } == [.first, .displacement, .displacement, .displacement])
        #expect(reasons(looks, resolution) { $0.elasticity = 1 } == [.first, nil, nil, .displacement])
    }

    @Test(
        arguments: [
            (0, 20, 20), (359, 1, 2), (1, 359, 2), (350, 10, 20), (0, 180, 180), (90, 271, 179), (0, 360, 0),
            (10, 730, 0),
        ] as [(Double, Double, Double)])
    func turnsAreMeasuredTheShorterWay(from: Double, to: Double, expected: Double) {
        #expect(LocationSampler.turn(from, to) == expected)
    }

    @Test func aTurnIsKeptAtSpeedAndNotTwiceInTwoSeconds() {
        let turns: [(angle: Double, speed: Double?, before: Double, seconds: Double, isKept: Bool)] = [
            (20, 5, 5, 2, true), (19.9, 5, 5, 2, false), (-20, 5, 5, 2, true), (20, 1.9, 5, 2, false),
            (20, 5, 1.9, 2, false), (20, 2, 2, 2, true), (20, nil, 5, 2, false), (90, 5, 5, 1.999, false),
            (.nan, 5, 5, 2, false),
        ]
        for turn in turns {
            let course = (350 + turn.angle).truncatingRemainder(dividingBy: 360)
            let looks = [
                Look(seconds: 0, speed: turn.before, course: 350),
                Look(seconds: turn.seconds, speed: turn.speed, course: course),
            ]
            #expect(reasons(looks) { $0.angle = 20 } == [.first, turn.isKept ? .angle : nil], "\(turn)")
        }
        let unknown = [Look(seconds: 0, speed: 5, course: 10), Look(seconds: 5, speed: 5), Look(seconds: 9, speed: 5)]
        #expect(reasons(unknown) { $0.angle = 20 } == [.first, nil, nil])
    }

    @Test func aChangeOfSpeedIsKept() {
        let looks = [10.0, 12.7, 12.8, 10.1, 10.0].enumerated().map { Look(seconds: Double($0), speed: $1) }
        #expect(reasons(looks) { $0.speedChange = 2.75 } == [.first, nil, .speed, nil, .speed])
        #expect(reasons(looks, standing: true) { $0.speedChange = 2.75 } == [.first, nil, nil, nil, nil])
    }

    @Test func displacementAloneLetsNoTimeSelect() {
        let looks = [Look(seconds: 0), Look(seconds: 900, metres: 40), Look(seconds: 901, metres: 50)]
        let resolution = Resolution(priority: .balanced, intervalMs: 3000, displacement: 50)
        #expect(reasons(looks, resolution) { $0.rule = .displacement } == [.first, nil, .displacement])
        #expect(reasons(looks, resolution, standing: true) { $0.rule = .displacement } == [.first, nil, nil])
    }

    @Test func theMinimumGapHoldsEveryTriggerBack() {
        let looks = [Look(seconds: 0, speed: 5, course: 0), Look(seconds: 3, metres: 200, speed: 20, course: 90)]
        let near = Resolution(priority: .balanced, intervalMs: 1000, displacement: 1)
        for rule in LocationSampler.Rule.allCases where rule != .trackError {
            let found = reasons(looks, near) {
                $0.rule = rule
                $0.angle = 10
                $0.speedChange = 1
                $0.minGap = .milliseconds(3001)
            }
            #expect(found == [.first, nil], "\(rule)")
        }
    }

    @Test func theFirstTriggerNamesTheReason() {
        let looks = [Look(seconds: 0, speed: 5, course: 0), Look(seconds: 3, metres: 200, speed: 20, course: 90)]
        func reason(_ intervalMs: Int64, _ displacement: Double) -> LocationSampler.Trigger? {
            reasons(looks, Resolution(priority: .balanced, intervalMs: intervalMs, displacement: displacement)) {
                $0.angle = 10
                $0.speedChange = 1
            }[1]
        }
        #expect(reason(3000, 100) == .interval)
        #expect(reason(4000, 100) == .displacement)
        #expect(reason(4000, 300) == .angle)
    }

    @Test(
        arguments: [
            (Look(seconds: 300), .interval), (Look(seconds: 299), nil),
            // Twice as accurate, and by 10 m.
            (Look(seconds: 1, accuracy: 10), .accuracy), (Look(seconds: 1, accuracy: 10.1), nil),
            // Far beyond both accuracies, even when it is worse.
            (Look(seconds: 1, metres: 500.1, accuracy: 60), .displacement),
            (Look(seconds: 1, metres: 499.9, accuracy: 60), nil),
            // Beyond both accuracies, and beyond the displacement.
            (Look(seconds: 1, metres: 50.1, accuracy: 30), .displacement),
            (Look(seconds: 1, metres: 49.9, accuracy: 30), nil), (Look(seconds: 1, metres: 50.1, accuracy: 30.1), nil),
            (Look(seconds: 1, metres: 40.1, accuracy: 15), .displacement),
            (Look(seconds: 1, metres: 39.9, accuracy: 15), nil), (Look(seconds: 1, metres: 40.1), .displacement),
        ] as [(Look, LocationSampler.Trigger?)])
    private func significantIsWhatStandsOutOfTheNoise(look: Look, expected: LocationSampler.Trigger?) {
        let resolution = Resolution(priority: .low, intervalMs: 1000, displacement: 40)
        let found = reasons([Look(seconds: 0, accuracy: 20), look], resolution) { $0.rule = .significant }
        #expect(found == [.first, expected])
    }

    @Test func significantAssumesTenMetresForUnknownAccuracies() {
        let resolution = Resolution(priority: .low, intervalMs: 1000, displacement: 5)
        let looks = [Look(seconds: 0), Look(seconds: 1, metres: 19.9), Look(seconds: 2, metres: 20.1)]
        #expect(reasons(looks, resolution) { $0.rule = .significant } == [.first, nil, .displacement])
    }

    @Test func nothingTrapsOnHostileValues() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let times: [Int64] = [.min, .min + 1, -1, 0, 1, 1000, 1_772_352_000_000, .max - 1, .max]
        let numbers: [Double?] = [nil, .nan, .infinity, -.infinity, 0, -1, .leastNonzeroMagnitude, 1e308, 3, 359]
        let corners: [Int32] = [.min, -1_800_000_000, -900_000_000, 0, 1, 900_000_000, 1_800_000_000, .max]
        for _ in 0..<400 {
            var settings = LocationSampler.Settings()
            settings.rule = LocationSampler.Rule.allCases.randomElement(using: &random)!
            settings.bound = numbers.randomElement(using: &random)! ?? 5
            settings.angle = numbers.randomElement(using: &random)!
            settings.speedChange = numbers.randomElement(using: &random)!
            settings.elasticity = numbers.randomElement(using: &random)!
            settings.maxDelay = .milliseconds(times.randomElement(using: &random)!)
            settings.minGap = .milliseconds(times.randomElement(using: &random)!)
            var sampler = LocationSampler(settings: settings)
            for _ in 0..<60 {
                let time = UTCTime(milliseconds: times.randomElement(using: &random)!)
                let place = Coordinate(
                    latitudeE7: corners.randomElement(using: &random)!,
                    longitudeE7: corners.randomElement(using: &random)!)
                let resolution = Resolution(
                    priority: .low, intervalMs: times.randomElement(using: &random)!,
                    displacement: numbers.randomElement(using: &random)! ?? 0)
                _ = sampler.sample(
                    .init(
                        time: time, coordinate: place, speed: numbers.randomElement(using: &random)!,
                        course: numbers.randomElement(using: &random)!,
                        accuracy: numbers.randomElement(using: &random)!),
                    at: EventTime(nanoseconds: times.randomElement(using: &random)!), resolution: resolution,
                    standing: Bool.random(using: &random))
                _ = sampler.deadline
                switch Int.random(in: 0..<12, using: &random) {
                case 0: sampler.keepNewest()
                case 1: _ = sampler.split(at: .init(time: time, coordinate: place))
                case 2: sampler.withdraw(from: time)
                case 3: sampler.restart()
                case 4: sampler.rebase(.init(time: time, coordinate: place))
                default: break
                }
            }
        }
    }
}
