import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

/// What holds whatever happens: any order of events, any values, any times, any restarts.
@Suite struct TrackerPropertyTests {
    /// A day in the life of a tracker full of absurd events, drawn from a seed.
    private struct Ordeal {
        var random: SeededGenerator
        var settings: Tracker.Settings
        var tracker: Tracker
        var at: EventTime
        /// The receiver's clock and place.
        var time: Int64 = 1_772_352_000_000
        var place = PlanePoint.zero
        var velocity = PlanePoint.zero
        /// Hostile values come more often than good ones, or hardly ever.
        let hostility: Double
        var complaints: [String] = []

        /// What the checks need to know of what was said before.
        var lastAt = EventTime(nanoseconds: .min)
        /// The latest event time that this tracker has seen.
        var reached = EventTime(nanoseconds: .min)
        var lastTimes: [String?: UTCTime] = [:]
        var moving: Bool?
        var odometer = 0.0
        var decided: (time: UTCTime, at: EventTime)?

        init(seed: UInt64, hostility: Double) {
            random = SeededGenerator(seed: seed)
            self.hostility = hostility
            at = .zero
            settings = .car
            tracker = Tracker(settings: settings, restored: nil)
            settings = drawnSettings()
            tracker = Tracker(settings: settings, restored: nil)
            if chance(hostility / 4) { at = EventTime(nanoseconds: Int64.random(in: .min ... .max, using: &random)) }
        }

        mutating func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

        mutating func number(_ range: ClosedRange<Double>) -> Double {
            guard chance(hostility / 4) else { return Double.random(in: range, using: &random) }
            return [
                .nan, .infinity, -.infinity, -1, 0, 1e300, -1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude,
            ]
            .randomElement(using: &random)!
        }

        mutating func maybe(_ range: ClosedRange<Double>) -> Double? { chance(0.1) ? nil : number(range) }

        mutating func duration(_ range: ClosedRange<Int64>) -> Duration {
            if chance(hostility / 4) {
                return [.zero, .seconds(-5), .nanoseconds(Int64.max)].randomElement(using: &random)!
            }
            return .milliseconds(Int64.random(in: range, using: &random) * 1000)
        }

        mutating func drawnSettings() -> Tracker.Settings {
            var settings = Tracker.Settings(trackables: [Trackable(id: "car")])
            if chance(0.5) { settings.trackables.append(Trackable(id: "load")) }
            if chance(0.5) {
                settings.motion.stopTimeout = duration(0...600)
                settings.motion.heartbeat = duration(0...600)
                settings.motion.gapAfter = duration(10...120)
                settings.motion.noFixTimeout = duration(60...3600)
                settings.motion.motionTriggerDelay = duration(0...30)
                settings.motion.ring = duration(30...3600)
            }
            settings.motion.disableStopDetection = chance(0.1)
            settings.motion.staticNavigation = chance(0.8)
            settings.motion.startMoving = chance(0.1)
            settings.motion.powerStartsTrip = chance(0.2)
            settings.motion.stopOnStationary = chance(0.2)
            settings.receiver.sleep = chance(0.5)
            settings.receiver.settle = duration(0...600)
            settings.receiver.probe = duration(0...600)
            settings.receiver.probeOn = duration(0...60)
            settings.tripSummary = chance(0.5)
            settings.sampling.rule = LocationSampler.Rule.allCases.randomElement(using: &random)!
            if chance(0.3) { settings.sampling.minGap = duration(0...20) }
            if chance(0.3) { settings.sampling.angle = number(0...90) }
            if chance(0.3) {
                var profile = settings.profile
                profile.sampling.rule = LocationSampler.Rule.allCases.randomElement(using: &random)!
                profile.accuracyMax = Double.random(in: 10...100, using: &random)
                settings.moving = profile
                profile.heartbeat = duration(0...600)
                settings.stationary = profile
            }
            if chance(0.7) {
                settings.geofences.fences = (0..<4).map { number in
                    Geofence(
                        id: "fence \(number)",
                        shape: .circle(
                            centre: Script.place(north: Double(number) * 150),
                            radius: Double.random(in: 10...500, using: &random)),
                        dwell: chance(0.5) ? duration(0...600) : nil)
                }
            }
            if chance(0.3) { settings.keepFewest() }
            settings.keepEngineFixes = chance(0.5)
            settings.admission.allowSimulated = chance(0.5)
            return settings
        }

        mutating func fix() -> Fix {
            let elapsed = Double.random(in: 0.1...2, using: &random)
            if chance(0.02) { velocity = .zero }
            if chance(0.02) {
                velocity = PlanePoint(
                    east: Double.random(in: -20...20, using: &random),
                    north: Double.random(in: -20...20, using: &random))
            }
            place = place + velocity * elapsed
            at = at + .milliseconds(Int64(elapsed * 1000))
            time += Int64(elapsed * 1000)
            if chance(0.003) { time += Int64.random(in: -100_000...100_000, using: &random) }
            let reported = chance(hostility / 50) ? Int64.random(in: .min ... .max, using: &random) : time
            if chance(0.003) { place = place + PlanePoint(east: number(-5000...5000), north: number(-5000...5000)) }
            if !place.length.isFinite { place = .zero }
            var coordinate = Script.plane.coordinate(place)
            if chance(hostility / 20) {
                coordinate = Coordinate(
                    latitudeE7: Int32.random(in: .min ... .max, using: &random),
                    longitudeE7: Int32.random(in: .min ... .max, using: &random))
            }
            return Fix(
                time: chance(0.02) ? nil : UTCTime(milliseconds: reported),
                timeOfDay: Int.random(in: -5...90_000_000, using: &random),
                at: at, coordinate: coordinate, altitudeMSL: maybe(-100...4000), altitudeHAE: maybe(-100...4000),
                horizontalAccuracy: maybe(1...40),
                speed: chance(0.1) ? nil : number(velocity.length...velocity.length + 0.2),
                course: maybe(0...360), hdop: maybe(0.5...5),
                satellitesUsed: Int.random(in: -1...300, using: &random), mode: chance(0.02) ? .none : .threeD,
                quality: [.gps, .gps, .gps, .dgps, .simulated, .deadReckoning].randomElement(using: &random)!)
        }

        mutating func event() -> TrackerEvent {
            if chance(0.9) { return .fixReceived(fix()) }
            at = at + .milliseconds(Int64.random(in: 0...20_000, using: &random))
            if chance(0.05) { at = at + .seconds(Int64.random(in: 0...20_000, using: &random)) }
            // Time does not come back from there in this life.
            if chance(hostility / 1000) { at = EventTime(nanoseconds: Int64.random(in: .min ... .max, using: &random)) }
            let trackable = ["car", "load", "unknown"].randomElement(using: &random)!
            let resolution = Resolution(
                priority: .high,
                intervalMs: Int64.random(in: chance(hostility) ? .min ... .max : 0...60_000, using: &random),
                displacement: number(0...200))
            switch Int.random(in: 0..<22, using: &random) {
            case 0...3: return .noFix(chance(0.5) ? .void : .noPosition)
            case 4:
                return .sourceStateChanged(
                    [.opening, .receiving, .silent, .lost(reason: "x")].randomElement(using: &random)!)
            case 5: return .externalPowerChanged([true, false, nil].randomElement(using: &random)!)
            case 6:
                return .batteryChanged(
                    percent: chance(0.2) ? nil : Int.random(in: -50...500, using: &random), charging: chance(0.5))
            case 7, 8: return .movementSourceChanged(source: "gpio", moving: chance(0.7))
            case 9, 10: return .paceRequested(Pace.allCases.randomElement(using: &random)!)
            case 11: return .panicRequested
            case 12:
                return .subscriberChanged(
                    SubscriberChange(
                        trackable: trackable, member: "\(Int.random(in: 0..<3, using: &random))",
                        action: [.add(resolution), .add(nil), .update(resolution), .remove].randomElement(
                            using: &random)!))
            case 13: return .engineSet(chance(0.5) ? nil : resolution)
            case 14:
                return .boostChanged(chance(0.3) ? nil : Boost(resolution: resolution, duration: duration(0...4000)))
            case 15:
                settings = drawnSettings()
                // One that comes back later is a new one.
                lastTimes = lastTimes.filter { name, _ in settings.trackables.contains { $0.id == name } }
                return .settingsReloaded(settings)
            case 16: return .timeWindowChanged(chance(0.8) ? .tracking : .hours("night"), open: chance(0.7))
            case 17:
                return .fencesChanged([
                    Geofence(id: "a", shape: .circle(centre: Script.origin, radius: number(10...500)))
                ])
            case 18: return .deadlineReached
            case 19: return .odometerSet(metres: number(0...1e6))
            case 20: return .flushRequested
            default: return .shutdown
            }
        }

        mutating func live(_ steps: Int) {
            for step in 0..<steps where complaints.isEmpty {
                let event = event()
                passDeadlines()
                if case .odometerSet = event { odometer = 0 }
                check(event)
                if chance(0.0005) { restart() }
                if step.isMultiple(of: 100) { checkMemory() }
            }
        }

        /// Each deadline is served at its own time, and then lies later, or is gone.
        private mutating func passDeadlines() {
            var rounds = 0
            while let due = tracker.nextDeadline, due < at {
                check(.deadlineReached, at: due)
                if let next = tracker.nextDeadline, next <= due {
                    complaints.append(
                        "deadline \(due.nanoseconds) is followed by \(next.nanoseconds) of \(tracker)")
                    return
                }
                rounds += 1
                // A gap of years in the life of a parked asset is full of heartbeats.
                if rounds > 3000 { return }
            }
        }

        private mutating func check(_ event: TrackerEvent, at given: EventTime? = nil) {
            let forgets = forgetsTime(event)
            let wasInHours = tracker.inHours
            let effects = tracker.handle(event, at: given ?? at)
            reached = max(reached, given ?? at)
            if forgets { lastTimes = [:] }
            for effect in effects {
                switch effect {
                case .record(let location):
                    // The first records may still be those of fixes that waited, by the old clock.
                    if forgets { lastTimes = [:] }
                    check(location)
                    if !wasInHours, !tracker.inHours, !effects.contains(where: \.isMotion) {
                        checkOutsideHours(location)
                    }
                case .announceMotion(let change):
                    if change.moving == moving {
                        complaints.append("\(change.reason) announces \(change.moving) again")
                    }
                    if moving == nil, !change.moving, change.reason == .gap { complaints.append("gap without a trip") }
                    moving = change.moving
                    if change.moving != tracker.snapshot.motion.isMovingOnTheWire, effects.count(where: \.isMotion) == 1
                    {
                        complaints.append("announced \(change.moving) and is \(tracker.snapshot.motion)")
                    }
                default: break
                }
            }
            let shown = tracker.snapshot
            if !shown.odometer.isFinite || shown.odometer < odometer - 1e-6 {
                complaints.append("odometer from \(odometer) to \(shown.odometer)")
            }
            if !shown.gapMetres.isFinite || shown.gapMetres < 0 { complaints.append("gap of \(shown.gapMetres) m") }
            odometer = shown.odometer
        }

        /// A trip of the run before ends with the first fix of this one, whenever that comes; nothing else happens.
        private mutating func checkOutsideHours(_ location: Location) {
            guard location.event != .panic else { return }
            complaints.append("records \(location.event) \(location.reason ?? "") outside the hours")
        }

        private mutating func check(_ location: Location) {
            if location.at < lastAt { complaints.append("at runs back to \(location.at)") }
            lastAt = location.at
            // Before the clock of the receiver was set back, other times were true.
            if let last = lastTimes[location.trackable], location.time < last {
                complaints.append(
                    "\(location.event) \(location.reason ?? "") \(last.milliseconds - location.time.milliseconds) ms back"
                )
            }
            lastTimes[location.trackable] = location.time
            if !location.coordinate.isOnEarth { complaints.append("recorded off the earth") }
            if let accuracy = location.horizontalAccuracy, !(accuracy > 0 && accuracy.isFinite) {
                complaints.append("recorded with accuracy \(accuracy)")
            }
            if (location.event == .trip) != (location.trip != nil) {
                complaints.append("trip fields in \(location.event)")
            }
            if let trip = location.trip {
                if !(trip.distance >= 0 && trip.distance.isFinite && trip.idle >= 0 && trip.idle.isFinite) {
                    complaints.append("trip of \(trip.distance) m with \(trip.idle) s idle")
                }
                if let speed = trip.maxSpeed, !(speed > 0 && speed.isFinite) {
                    complaints.append("trip at \(speed) m/s")
                }
            }
        }

        /// The receiver's clock steps with this fix, so that what was recorded by the old one is no measure.
        private func forgetsTime(_ event: TrackerEvent) -> Bool {
            guard case .fixReceived(let fix) = event, let time = fix.time?.milliseconds else { return false }
            guard let last = tracker.snapshot.lastFixTime?.milliseconds else { return false }
            if time < last { return true }
            guard let expected = tracker.utc(at: max(at, reached))?.milliseconds else { return false }
            return Double(time) - Double(expected) < -2000
        }

        /// Another process, which knows what was stored.
        private mutating func restart() {
            let bytes = tracker.state.bytes
            guard let state = StoredState(bytes: bytes) else { return complaints.append("state cannot be read back") }
            if state != tracker.state { complaints.append("another state was read back") }
            if !state.isUsable { complaints.append("state is not usable") }
            tracker = Tracker(settings: settings, restored: state)
            if !state.announced { moving = nil }
            at = EventTime(nanoseconds: Int64.random(in: 0...1_000_000_000_000, using: &random))
            lastAt = EventTime(nanoseconds: .min)
            reached = lastAt
            lastTimes[nil] = nil
            if tracker.snapshot.odometer != odometer { complaints.append("odometer after a restart") }
        }

        private mutating func checkMemory() {
            if tracker.state.bytes.count > 400 { complaints.append("state of \(tracker.state.bytes.count) bytes") }
            if tracker.snapshot.trackables.contains(where: { $0.subscribers > 3 }) { complaints.append("subscribers") }
        }
    }

    @Test(arguments: [0.0, 0.05, 0.9], 0..<6)
    func holdsWhateverHappens(hostility: Double, round: Int) {
        let seed = testSeed(UInt64(round))
        var ordeal = Ordeal(seed: seed, hostility: hostility)
        ordeal.live(3000)
        #expect(ordeal.complaints.isEmpty, "seed \(seed), hostility \(hostility): \(ordeal.complaints.prefix(5))")
    }

    /// The same events give the same effects, to the bit.
    @Test func isAFunctionOfItsInput() {
        let seed = testSeed(2)
        func bytes() -> [UInt8] {
            var ordeal = Ordeal(seed: seed, hostility: 0.05)
            ordeal.live(1500)
            return ordeal.tracker.state.bytes
        }
        #expect(bytes() == bytes(), "seed \(seed)")
    }
}

extension TrackerSnapshot.Motion {
    fileprivate var isMovingOnTheWire: Bool { self == .moving || self == .stopping }
}

extension Effect {
    fileprivate var isMotion: Bool { if case .announceMotion = self { true } else { false } }
}
