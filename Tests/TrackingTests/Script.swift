import TestSupport
import WaypostCore
import WaypostTracking

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// What happens to a receiver, written down step by step: a drive due north from 52° N 13° E.
struct Script {
    /// Fixes per second.
    var rate = 1.0
    var accuracy: Double? = 4
    var tellsSpeed = true
    /// Metres; nil = the receiver has none.
    var altitude: Double?
    /// Metres from the origin, without error.
    var north = 0.0
    var east = 0.0
    /// Metres by which the receiver is off; the asset does not move by it.
    var offset = PlanePoint.zero
    var speed = 0.0
    var elapsed = 0.0
    /// Milliseconds by which the receiver's clock is ahead of the event time.
    var clockStep: Int64 = 0
    private(set) var events: [(at: EventTime, event: TrackerEvent)] = []

    static let origin = Coordinate(latitudeE7: 520_000_000, longitudeE7: 130_000_000)
    static let plane = LocalPlane(origin: origin)
    /// 2026-03-01T08:00:00Z.
    static let start = UTCTime(milliseconds: 1_772_352_000_000)

    var now: EventTime { EventTime(nanoseconds: Int64((elapsed * 1e9).rounded())) }
    var time: UTCTime { Self.start + .milliseconds(Int64((elapsed * 1000).rounded()) + clockStep) }

    /// Parked for a number of seconds.
    static func parked(_ seconds: Double) -> Script {
        var script = Script()
        script.stand(seconds)
        return script
    }

    /// Parked, and then on its way for a number of seconds.
    static func driving(_ seconds: Double = 0, after parked: Double, at speed: Double = 12) -> Script {
        var script = Script.parked(parked)
        script.driveOff(seconds, at: speed)
        return script
    }

    static func place(north: Double, east: Double = 0) -> Coordinate {
        plane.coordinate(PlanePoint(east: east, north: north))
    }

    mutating func happen(_ event: TrackerEvent) { events.append((now, event)) }

    /// One fix now, without a step of time.
    mutating func fix(
        speed reported: Double? = nil, course: Double? = 0, accuracy: Double?? = nil, quality: FixQuality = .gps
    ) {
        happen(
            .fixReceived(
                Fix(
                    time: time, timeOfDay: time.timeOfDay, at: now,
                    coordinate: Self.plane.coordinate(PlanePoint(east: east, north: north) + offset),
                    altitudeMSL: altitude, horizontalAccuracy: accuracy ?? self.accuracy,
                    speed: tellsSpeed ? reported ?? speed : nil, course: tellsSpeed ? course : nil, mode: .threeD,
                    quality: quality)))
    }

    mutating func wait(_ seconds: Double) { elapsed += seconds }

    /// Fixes for a number of seconds, while the speed goes evenly to `target`.
    mutating func drive(_ seconds: Double, to target: Double? = nil) {
        let steps = Int((seconds * rate).rounded())
        let change = ((target ?? speed) - speed) / Double(max(1, steps))
        for _ in 0..<steps {
            let before = speed
            speed = max(0, speed + change)
            north += (before + speed) / 2 / rate
            elapsed += 1 / rate
            fix()
        }
        if let target { speed = target }
    }

    mutating func stand(_ seconds: Double) {
        speed = 0
        drive(seconds)
    }

    mutating func pullAway(to speed: Double = 12) { drive(speed / 1.5, to: speed) }
    mutating func driveOff(_ seconds: Double, at speed: Double = 12) {
        pullAway(to: speed)
        drive(seconds)
    }
    mutating func brake() { drive(speed / 1.5, to: 0) }
    /// Brakes, and stands for a number of seconds.
    mutating func stop(_ seconds: Double) {
        brake()
        stand(seconds)
    }

    /// A trip of a minute at least; ends standing, for a number of seconds.
    mutating func trip(metres: Double, stand seconds: Double = 0) {
        driveOff(max(0, metres - 96) / 12)
        stop(seconds)
    }

    /// Stands under a receiver that reports a speed in each of the directions in turn.
    mutating func standNoisily(_ seconds: Int, speed reported: Double = 0.5, directions: Int = 4) {
        speed = 0
        for second in 0..<seconds {
            elapsed += 1
            fix(speed: reported, course: Double(second % directions) * 360 / Double(directions))
        }
    }

    mutating func void(_ seconds: Double) {
        for _ in 0..<Int(seconds) {
            elapsed += 1
            happen(.noFix(.void))
        }
    }
}

/// What a tracker made of a script, driven as replay drives it.
struct Course {
    var tracker: Tracker
    private(set) var effects: [Effect] = []

    init(_ settings: Tracker.Settings = .car, restored: StoredState? = nil) {
        tracker = Tracker(settings: settings, restored: restored)
    }

    init(_ script: Script, _ settings: Tracker.Settings = .car, restored: StoredState? = nil) {
        self.init(settings, restored: restored)
        run(script)
    }

    mutating func run(_ script: Script) {
        for (at, event) in script.events {
            runDeadlines(before: at)
            effects += tracker.handle(event, at: at)
        }
    }

    /// One event, without the deadlines before it.
    @discardableResult mutating func handle(_ event: TrackerEvent, at: EventTime) -> [Effect] {
        let new = tracker.handle(event, at: at)
        effects += new
        return new
    }

    /// Lets the time pass without an event, up to and with `end`.
    mutating func runDeadlines(through end: EventTime) {
        runDeadlines(before: EventTime(nanoseconds: end.nanoseconds + 1))
    }

    private mutating func runDeadlines(before at: EventTime) {
        var rounds = 0
        while let due = tracker.nextDeadline, due < at {
            effects += tracker.handle(.deadlineReached, at: due)
            rounds += 1
            precondition(rounds < 100_000, "a deadline does not pass")
        }
    }

    var changes: [MotionChange] {
        effects.compactMap { if case .announceMotion(let change) = $0 { change } else { nil } }
    }
    var records: [Location] {
        effects.compactMap { if case .record(let location) = $0 { location } else { nil } }
    }
    /// Every network resolution that was announced, with its trackable.
    var announced: [(trackable: String, resolution: Resolution)] {
        effects.compactMap {
            if case .announceResolution(let id, let resolution) = $0 { (id, resolution) } else { nil }
        }
    }
    /// Milliseconds of the resolutions that were announced for one trackable.
    func intervals(of trackable: String = "car") -> [Int64] {
        announced.filter { $0.trackable == trackable }.map(\.resolution.intervalMs)
    }
    /// What the receiver was asked for.
    var engine: [Resolution] {
        effects.compactMap { if case .setReceiver(let resolution) = $0 { resolution } else { nil } }
    }
    func records(_ event: LocationEvent) -> [Location] { records.filter { $0.event == event } }
    var recordsAreInOrder: Bool { zip(records, records.dropFirst()).allSatisfy { $0.time <= $1.time } }
    /// `-` for a stop and `+` for a departure, with the reason.
    var story: [String] { changes.map { ($0.moving ? "+" : "-") + $0.reason.rawValue } }
}

extension Tracker.Settings {
    static let car = Tracker.Settings(trackables: [Trackable(id: "car")])

    static func car(_ change: (inout Tracker.Settings) -> Void) -> Tracker.Settings {
        var settings = car
        change(&settings)
        return settings
    }

    /// As few points as needed.
    static var fewest: Tracker.Settings { car { $0.keepFewest() } }
    /// Gives up the receiver at each stop.
    static var releasing: Tracker.Settings { car { $0.motion.stopOnStationary = true } }
}

extension EventTime {
    var seconds: Double { Double(nanoseconds) / 1e9 }
}

extension UTCTime {
    /// Seconds since the script began.
    var seconds: Double { Double(milliseconds - Script.start.milliseconds) / 1000 }
}

/// Noise that remembers: an Ornstein-Uhlenbeck process with a standard deviation and a time constant in seconds.
struct Drift {
    var sigma: Double
    var timeConstant: Double
    private(set) var value = 0.0

    init(sigma: Double, timeConstant: Double) {
        self.sigma = sigma
        self.timeConstant = timeConstant
    }

    mutating func step(_ seconds: Double, _ generator: inout SeededGenerator) {
        let keep = exp(-seconds / timeConstant)
        value = value * keep + sigma * (1 - keep * keep).squareRoot() * Self.normal(&generator)
    }

    /// Box and Muller.
    static func normal(_ generator: inout SeededGenerator) -> Double {
        let u = Double.random(in: Double.leastNonzeroMagnitude..<1, using: &generator)
        let v = Double.random(in: 0..<1, using: &generator)
        return (-2 * log(u)).squareRoot() * cos(2 * .pi * v)
    }
}

/// Degrees true of a velocity.
func bearing(east: Double, north: Double) -> Double {
    let degrees = atan2(east, north) * 180 / .pi
    return degrees < 0 ? degrees + 360 : degrees
}
