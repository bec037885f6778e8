import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The promise of the rule `track-error`, against a reference that knows nothing of velocities or discs.
@Suite struct TrackErrorTests {
    struct Fed {
        var time: UTCTime
        var coordinate: Coordinate
        var isStanding = false
    }

    /// Degrees as a plane; the shorter way across the antimeridian.
    static func distance(_ fix: Fed, from a: Fed, to b: Fed) -> Double {
        func shortWay(_ degrees: Double) -> Double {
            degrees > 180 ? degrees - 360 : degrees < -180 ? degrees + 360 : degrees
        }
        let whole = Double(b.time.milliseconds) - Double(a.time.milliseconds)
        let share = whole > 0 ? (Double(fix.time.milliseconds) - Double(a.time.milliseconds)) / whole : 0
        let north = a.coordinate.latitude + share * (b.coordinate.latitude - a.coordinate.latitude)
        let east = a.coordinate.longitude + share * shortWay(b.coordinate.longitude - a.coordinate.longitude)
        let metres = Coordinate.earthRadius * .pi / 180
        let x = shortWay(fix.coordinate.longitude - east) * metres * cos(a.coordinate.latitude * .pi / 180)
        let y = (fix.coordinate.latitude - north) * metres
        return (x * x + y * y).squareRoot()
    }

    /// A sampler, what it was fed, and what it kept, by index.
    struct Run {
        var sampler: LocationSampler
        var fed: [Fed] = []
        var kept: [Int] = []
        var why: [LocationSampler.Trigger] = []

        init(_ change: (inout LocationSampler.Settings) -> Void = { _ in }) {
            var settings = LocationSampler.Settings()
            settings.rule = .trackError
            change(&settings)
            sampler = LocationSampler(settings: settings)
        }

        mutating func feed(_ fix: Fed, speed: Double? = nil, course: Double? = nil) {
            let selection = sampler.sample(
                .init(time: fix.time, coordinate: fix.coordinate, speed: speed, course: course),
                at: EventTime(nanoseconds: (fix.time.milliseconds - Script.start.milliseconds) * 1_000_000),
                resolution: .standard, standing: fix.isStanding)
            if let trigger = selection?.previous {
                kept.append(fed.count - 1)
                why.append(trigger)
            }
            fed.append(fix)
            if let trigger = selection?.current {
                kept.append(fed.count - 1)
                why.append(trigger)
            }
        }

        /// Due north in even steps, one for each number of a range.
        mutating func north(_ numbers: ClosedRange<Int>, metres: Double, seconds: Double = 1, speed: Double? = nil) {
            for number in numbers {
                let place = Script.place(north: Double(number) * metres)
                feed(
                    Fed(time: TrackErrorTests.seconds(Double(number) * seconds), coordinate: place), speed: speed,
                    course: speed.map { _ in 0 })
            }
        }

        mutating func close() {
            guard sampler.isOpen else { return }
            sampler.keepNewest()
            kept.append(fed.count - 1)
            why.append(.stateChange)
        }

        /// Metres.
        var worst: Double {
            var worst = 0.0
            for (begin, end) in zip(kept, kept.dropFirst()) where fed[end].time >= fed[begin].time {
                for index in begin..<end { worst = max(worst, distance(fed[index], from: fed[begin], to: fed[end])) }
            }
            for index in (kept.last ?? 0)..<fed.count {
                worst = max(worst, distance(fed[index], from: fed[kept.last ?? 0], to: fed[kept.last ?? 0]))
            }
            return worst
        }
    }

    private static func seconds(_ seconds: Double) -> UTCTime { Script.start + .milliseconds(Int64(seconds * 1000)) }

    @Test func aStraightWayNeedsItsEndsOnly() {
        var run = Run { $0.maxDelay = .seconds(3600) }
        run.north(0...200, metres: 15)
        #expect(run.kept == [0])
        run.close()
        #expect(run.kept == [0, 200])
    }

    @Test func aCornerIsKeptWhereTheWayTurns() {
        var run = Run()
        run.north(0...10, metres: 15)
        for second in 11...20 {
            let place = Script.place(north: 150, east: Double(second - 10) * 15)
            run.feed(Fed(time: Self.seconds(Double(second)), coordinate: place))
        }
        run.close()
        #expect(run.kept == [0, 10, 20])
        #expect(run.why == [.first, .trackError, .stateChange])
    }

    @Test func theDelayCountsInclusively() {
        var run = Run { $0.maxDelay = .seconds(30) }
        run.north(0...95, metres: 15)
        #expect(run.kept == [0, 30, 60, 90])
        #expect(run.why.dropFirst().allSatisfy { $0 == .maxDelay })
    }

    @Test func theFixThatWaitsHasADeadline() {
        var run = Run { $0.maxDelay = .seconds(30) }
        run.feed(Fed(time: Self.seconds(0), coordinate: Script.origin))
        #expect(run.sampler.deadline == nil && !run.sampler.isOpen)
        run.feed(Fed(time: Self.seconds(1), coordinate: Script.place(north: 10)))
        run.feed(Fed(time: Self.seconds(2), coordinate: Script.place(north: 20)))
        #expect(run.sampler.deadline?.seconds == 31)
        run.close()
        #expect(run.sampler.deadline == nil)
    }

    @Test func standingNeedsNoPoint() {
        var run = Run()
        run.north(0...10, metres: 8)
        for second in 11...600 {
            run.feed(Fed(time: Self.seconds(Double(second)), coordinate: Script.place(north: 80), isStanding: true))
        }
        // The stop itself, once, and no sooner or later than the delay allows.
        #expect(run.kept.count <= 3 && run.kept.last! <= 30)
        #expect(run.sampler.deadline == nil)
        for second in 601...620 {
            run.feed(Fed(time: Self.seconds(Double(second)), coordinate: Script.place(north: Double(second - 590) * 8)))
        }
        run.close()
        #expect(run.worst <= 5.05)
        #expect(run.kept.count <= 5)
    }

    @Test func tenFixesASecondFillTheListAndGoOn() {
        var run = Run { $0.maxDelay = .seconds(3600) }
        run.north(0...1000, metres: 1.5, seconds: 0.1)
        #expect(run.kept == [0, 256, 512, 768])
        #expect(run.why.dropFirst().allSatisfy { $0 == .segmentFull })
    }

    @Test func anExtraTriggerAddsPointsAndKeepsTheBound() {
        var run = Run { $0.angle = 20 }
        run.north(0...10, metres: 15, speed: 15)
        // Straight on, with another course: in reach, so this fix alone is kept.
        run.feed(Fed(time: Self.seconds(11), coordinate: Script.place(north: 165)), speed: 15, course: 30)
        #expect(run.kept == [0, 11] && run.why.last == .angle)
        run.feed(Fed(time: Self.seconds(12), coordinate: Script.place(north: 180)), speed: 15, course: 30)
        // A leap to the side: the one before is needed for the bound, then this one.
        run.feed(Fed(time: Self.seconds(13), coordinate: Script.place(north: 180, east: 60)), speed: 15, course: 90)
        #expect(run.kept == [0, 11, 12, 13])
        #expect(Array(run.why.suffix(2)) == [.trackError, .angle])
        #expect(run.worst <= 5.05)
    }

    @Test func theMinimumGapNeverBreaksTheBound() {
        var run = Run {
            $0.angle = 10
            $0.minGap = .seconds(60)
        }
        for second in 0...60 {
            let angle = Double(second) * 0.3
            let place = Script.place(north: 50 * sin(angle), east: 50 * cos(angle))
            run.feed(Fed(time: Self.seconds(Double(second)), coordinate: place), speed: 15, course: angle * 57)
        }
        run.close()
        #expect(run.worst <= 5.05)
        #expect(!run.why.contains(.angle))
    }

    @Test func aStoredBaselineBeginsNoSegment() {
        var settings = LocationSampler.Settings()
        settings.rule = .trackError
        let selected = LocationSampler.Selected(time: Self.seconds(0), coordinate: Script.origin)
        var sampler = LocationSampler(settings: settings, selected: selected)
        let first = sampler.sample(
            .init(time: Self.seconds(20), coordinate: Script.place(north: 3)), resolution: .standard)
        #expect(first == .init(previous: nil, current: .first))
    }

    @Test func aClockThatGoesBackKeepsThePendingFixAndRestartsSampling() {
        var run = Run()
        for second in [100.0, 101, 102, 99, 100, 101] {
            run.feed(Fed(time: Self.seconds(second), coordinate: Script.place(north: second)))
        }
        #expect(run.kept == [0, 2, 3])
        #expect(run.why == [.first, .stateChange, .clockStep])
    }

    /// Random ways with noise, halts, leaps, equal times, gaps in time, and states that change.
    @Test(arguments: [
        (latitude: 52.0, longitude: 13.0), (0.0, 179.9999), (-68.0, -179.9995), (89.0, 10.0),
    ])
    func everyFixLiesWithinTheBound(latitude: Double, longitude: Double) throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let plane = LocalPlane(origin: try #require(Coordinate(latitude: latitude, longitude: longitude)))
        for round in 0..<60 {
            let bound = [1.0, 5, 10, 20].randomElement(using: &random)!
            let delay = [10, 30, 120, 3600].randomElement(using: &random)!
            var run = Run {
                $0.bound = bound
                $0.maxDelay = .seconds(delay)
                $0.angle = Bool.random(using: &random) ? 20 : nil
                $0.speedChange = Bool.random(using: &random) ? 3 : nil
            }
            var (place, speed, course, time) = (PlanePoint.zero, 10.0, 0.0, 0.0)
            var haltUntil = -1.0
            var previous: PlanePoint?
            for _ in 0..<400 {
                let step = [1.0, 1, 1, 1, 0.1, 0.2, 5, 0].randomElement(using: &random)!
                time += step
                if Double.random(in: 0..<1, using: &random) < 0.01 { haltUntil = time + 60 }
                let stands = time < haltUntil
                speed = stands ? 0 : max(0, min(35, speed + Double.random(in: -3...3, using: &random)))
                course += Double.random(in: -0.4...0.4, using: &random)
                place = place + PlanePoint(east: sin(course), north: cos(course)) * (speed * step)
                let noise = Double.random(in: 0...3, using: &random)
                var seen = place + PlanePoint(east: noise, north: -noise)
                if Double.random(in: 0..<1, using: &random) < 0.01 { seen = seen + PlanePoint(east: 60, north: 10) }
                if stands { seen = previous ?? seen }
                previous = stands ? seen : nil
                run.feed(
                    Fed(time: Self.seconds(time), coordinate: plane.coordinate(seen), isStanding: stands), speed: speed,
                    course: (course * 180 / .pi).truncatingRemainder(dividingBy: 360))
                if Double.random(in: 0..<1, using: &random) < 0.01 { run.close() }
            }
            run.close()
            #expect(run.worst <= bound + 0.05, "seed \(seed), round \(round)")
            #expect(run.kept == run.kept.sorted() && Set(run.kept).count == run.kept.count, "seed \(seed)")
        }
    }
}
