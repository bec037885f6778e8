import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct GeofencePropertyTests {
    private static let corners: [(Double, Double)] = [(-1, -1), (1, -0.6), (0.2, 0.1), (0.8, 1), (-0.9, 0.9)]

    private func randomPlace(_ random: inout SeededGenerator, within metres: Double) -> PlanePoint {
        PlanePoint(
            east: Double.random(in: -metres...metres, using: &random),
            north: Double.random(in: -metres...metres, using: &random))
    }

    private func randomFences(_ random: inout SeededGenerator, around: PlanePoint, count: Int) -> [Geofence] {
        (0..<count).map { index in
            let place = around + randomPlace(&random, within: 600)
            let dwell: Duration? = Bool.random(using: &random) ? .seconds(Int.random(in: 5...200, using: &random)) : nil
            let radius = Double.random(in: 10...250, using: &random)
            // Few ids, so that the same ones come with other shapes.
            let id = "\(index)"
            if Bool.random(using: &random) {
                return Geofence(
                    id: id, shape: .circle(centre: Script.plane.coordinate(place), radius: radius), dwell: dwell)
            }
            let ring: [Coordinate] = Self.corners.map {
                Script.plane.coordinate(place + PlanePoint(east: $0.0 * radius, north: $0.1 * radius))
            }
            return Geofence(id: id, shape: .polygon(ring), dwell: dwell)
        }
    }

    /// Random walks, fences, kills and lists of fences: what arrives is paired for ever.
    @Test(arguments: 0..<20)
    func crossingsArePairedWhateverHappens(_ round: Int) {
        let seed = testSeed(UInt64(round))
        var random = SeededGenerator(seed: seed)
        var place = PlanePoint.zero
        var seconds = 0.0
        var settings = Tracker.Settings(trackables: [Trackable(id: "a")])
        settings.motion.stopTimeout = .seconds(60)
        settings.motion.heartbeat = .seconds(120)
        settings.geofences.initialEnter = Bool.random(using: &random)
        settings.geofences.gridAbove = Bool.random(using: &random) ? 0 : 64
        settings.geofences.fences = randomFences(&random, around: place, count: 12)
        var state: StoredState?
        var inside: Set<String> = []
        var dwelled: Set<String> = []
        var crossings = 0
        var last: UTCTime?

        for life in 0..<8 {
            var tracker = Tracker(settings: settings, restored: state)
            func check(_ effects: [Effect]) {
                for case .record(let record) in effects {
                    if let last, record.time < last { Issue.record("seed \(seed): \(record) before \(last)") }
                    last = record.time
                    guard let crossing = record.geofence else { continue }
                    crossings += 1
                    switch crossing.action {
                    case .enter:
                        #expect(
                            inside.insert(crossing.id).inserted, "seed \(seed): enter \(crossing.id) in life \(life)")
                        dwelled.remove(crossing.id)
                    case .exit:
                        #expect(inside.remove(crossing.id) != nil, "seed \(seed): exit \(crossing.id) in life \(life)")
                    case .dwell:
                        #expect(inside.contains(crossing.id), "seed \(seed): dwell \(crossing.id) outside")
                        #expect(dwelled.insert(crossing.id).inserted, "seed \(seed): dwell \(crossing.id) twice")
                    }
                }
            }
            let origin = seconds
            var speed = 0.0
            var heading = PlanePoint(east: 1, north: 0)
            for _ in 0..<Int.random(in: 5...400, using: &random) {
                if Int.random(in: 0..<20, using: &random) == 0 {
                    speed = [0, 0, 2, 8, 20].randomElement(using: &random)!
                    heading = [
                        PlanePoint(east: 1, north: 0), PlanePoint(east: -0.6, north: 0.8),
                        PlanePoint(east: 0, north: -1), PlanePoint(east: -0.8, north: -0.6),
                    ].randomElement(using: &random)!
                }
                var step = 1.0
                switch Int.random(in: 0..<200, using: &random) {
                case 0: step = Double.random(in: 30...400, using: &random)
                case 1: step = 0.2
                case 2: place = place + PlanePoint(east: 300, north: 0)
                default: break
                }
                seconds += step
                place = place + heading * (speed * min(step, 30))
                let at = EventTime(nanoseconds: Int64((seconds - origin) * 1e9))
                while let due = tracker.nextDeadline, due < at {
                    check(tracker.handle(.deadlineReached, at: due))
                    guard tracker.nextDeadline.map({ $0 > due }) ?? true else { break }
                }
                // Before the fix: a departure that is reported at its very time is dated a millisecond after it.
                let between = at - .milliseconds(100)
                if Int.random(in: 0..<60, using: &random) == 0 {
                    let count = Int.random(in: 0...14, using: &random)
                    settings.geofences.fences = randomFences(&random, around: place, count: count)
                    check(tracker.handle(.fencesChanged(settings.geofences.fences), at: between))
                }
                if Int.random(in: 0..<150, using: &random) == 0 {
                    let pace = Bool.random(using: &random) ? Pace.stationary : .moving
                    check(tracker.handle(.paceRequested(pace), at: between))
                }
                let noise = Double.random(in: -4...4, using: &random)
                let time = Script.start + .milliseconds(Int64(seconds * 1000))
                let fix = Fix(
                    time: time, timeOfDay: time.timeOfDay, at: at,
                    coordinate: Script.plane.coordinate(place + PlanePoint(east: noise, north: -noise)),
                    horizontalAccuracy: .random(in: 2...40, using: &random), speed: speed,
                    course: bearing(east: heading.east, north: heading.north), mode: .threeD)
                check(tracker.handle(.fixReceived(fix), at: at))
                if !inside.isSubset(of: tracker.snapshot.inside) {
                    Issue.record("seed \(seed): \(inside) in life \(life)")
                }
            }
            // Killed with everything committed, sometimes with another list at the next start.
            state = StoredState(bytes: tracker.state.bytes)
            #expect(state == tracker.state, "seed \(seed)")
            seconds += Double.random(in: 1...2000, using: &random)
            if Bool.random(using: &random) {
                settings.geofences.fences = randomFences(&random, around: place, count: 10)
            }
        }
        #expect(crossings > 0 || inside.isEmpty)
    }

    @Test func theGridFindsWhatAskingEachFenceFinds() throws {
        let seed = testSeed(2)
        var random = SeededGenerator(seed: seed)
        let places = [(52, 13), (0, 179.99), (89.99, 0), (-89.99, 100), (0, 0), (84.9, -179.99)] as [(Double, Double)]
        for place in places {
            let plane = LocalPlane(origin: try #require(Coordinate(latitude: place.0, longitude: place.1)))
            let fences: [Geofence] = (0..<300).map { index in
                let centre = plane.coordinate(randomPlace(&random, within: 3000))
                let radius = ([30, 200, 900, 20_000, 1_000_000] as [Double]).randomElement(using: &random)!
                return Geofence(
                    id: "\(index)", shape: .circle(centre: centre, radius: radius), dwell: .seconds(100))
            }
            var grid = GeofenceMonitor(settings: settings(fences, gridAbove: 0))
            var plain = GeofenceMonitor(settings: settings(fences, gridAbove: .max))
            var way = PlanePoint.zero
            var found: [String] = []
            var expected: [String] = []
            for second in 0..<600 {
                way = way + randomPlace(&random, within: 40)
                let sighting = GeofenceMonitor.Sighting(Double(second), at: plane.coordinate(way))
                for crossing in grid.reported(sighting) { found.append("\(second) \(crossing.action) \(crossing.id)") }
                for crossing in plain.reported(sighting) {
                    expected.append("\(second) \(crossing.action) \(crossing.id)")
                }
            }
            #expect(found == expected, "seed \(seed): \(place)")
            #expect(found.count > 100, "seed \(seed): \(place)")
            #expect(grid.inside.sorted() == plain.inside.sorted())
        }
    }

    /// Each fence by itself, asked at each fix: the rules without anything that makes them fast.
    private struct PlainFence {
        var area: FenceArea
        var isInside = false
        var first: Int?

        mutating func reported(_ coordinate: Coordinate, accuracy: Double, second: Int) -> Bool {
            let edge = min(max(5, min(accuracy, 30)), area.size / 4)
            let distance = area.signedDistance(to: coordinate)
            guard isInside ? distance > edge : distance < -edge else {
                first = nil
                return false
            }
            first = first ?? second
            guard let first, second - first >= 3 else { return false }
            isInside.toggle()
            self.first = nil
            return true
        }
    }

    @Test(arguments: [2.0, 5, 40])
    func tellsWhatThePlainRulesTell(_ pace: Double) throws {
        let seed = testSeed(3)
        var random = SeededGenerator(seed: seed)
        let fences = randomFences(&random, around: .zero, count: 120).map { Geofence(id: $0.id, shape: $0.shape) }
        var monitor = GeofenceMonitor(settings: settings(fences, gridAbove: 64))
        var plain = try fences.map { PlainFence(area: try #require(FenceArea($0.shape))) }
        var way = PlanePoint(east: 5000, north: 0)
        var heading = PlanePoint.zero
        var found: [String] = []
        var expected: [String] = []
        for second in 0..<1600 {
            if second == 10 { way = .zero }
            if second % 40 == 0 {
                heading = randomPlace(&random, within: pace)
                if way.length > 800, second > 10 { heading = way * (-pace / way.length) }
            }
            way = way + heading
            let coordinate = Script.plane.coordinate(way)
            let accuracy = Double.random(in: 2...40, using: &random)
            let reported = monitor.reported(.init(Double(second), at: coordinate, accuracy: accuracy))
            found += reported.map { "\(second) \($0.action) \($0.id)" }.sorted()
            var told: [String] = []
            for index in plain.indices
            where plain[index].reported(coordinate, accuracy: accuracy, second: second) {
                told.append("\(second) \(plain[index].isInside ? "enter" : "exit") \(fences[index].id)")
            }
            expected += told.sorted()
        }
        #expect(found == expected, "seed \(seed)")
        #expect(found.count > 10, "seed \(seed)")
    }

    private func settings(_ fences: [Geofence], gridAbove: Int) -> GeofenceMonitor.Settings {
        var settings = GeofenceMonitor.Settings(fences: fences)
        settings.gridAbove = gridAbove
        return settings
    }
}
