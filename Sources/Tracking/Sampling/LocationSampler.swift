import WaypostCore

/// Chooses which fixes of one trackable are kept, against the last one chosen.
public struct LocationSampler: Sendable {
    /// Why a location was selected.
    public enum Trigger: String, Sendable, Codable, CaseIterable {
        /// Nothing was selected before; for `track-error` also: nothing that the fix could be measured from.
        case first
        case interval
        case displacement
        /// The course turned.
        case angle
        /// The speed changed.
        case speed
        /// Much more accurate than the last one.
        case accuracy
        /// The next fix could not be reached without leaving the bound.
        case trackError = "track-error"
        /// Kept because the next one would have come too late.
        case maxDelay = "max-delay"
        /// Kept because no more fixes in a row can be remembered.
        case segmentFull = "segment-full"
        /// The last fix before something that is recorded for itself, or before a gap, a jump or the end.
        case stateChange = "state-change"
        /// The receiver's clock went back: the choice starts again rather than freeze until the old time is reached.
        case clockStep = "clock-step"
    }

    /// A fix as far as it is compared with others. nil = unknown.
    public struct Selected: Hashable, Sendable {
        public var time: UTCTime
        public var coordinate: Coordinate
        /// m/s.
        public var speed: Double?
        /// Degrees true.
        public var course: Double?
        /// Metres.
        public var accuracy: Double?

        public init(
            time: UTCTime, coordinate: Coordinate, speed: Double? = nil, course: Double? = nil, accuracy: Double? = nil
        ) {
            self.time = time
            self.coordinate = coordinate
            self.speed = speed
            self.course = course
            self.accuracy = accuracy
        }
    }

    /// What is kept now that a fix came: at least one of the two.
    public struct Selection: Hashable, Sendable {
        /// Why the fix sampled before this one is kept; nil = it is not, or was already. Only the rule `track-error` looks
        /// back.
        public var previous: Trigger?
        /// Why this fix is kept; nil = it is not, or not yet.
        public var current: Trigger?
    }

    public var settings: Settings {
        didSet {
            guard settings != oldValue else { return }
            if settings.rule != oldValue.rule { mustRestart = true }
            adopt()
        }
    }
    private var minGapMs: Int64 = 0
    private var maxDelayMs: Int64 = 0
    private var maxDelay = Nanoseconds(.zero)
    private var hasExtras = false
    /// What the next fix is compared with.
    public private(set) var selected: Selected?
    /// Rule `track-error`: the fixes since.
    private var segment: TrackErrorSegment?
    /// Rule `track-error`: fixes may have been lost since the last selected one, so no segment can begin there.
    private var mustRestart = true

    /// - Parameter selected: what an earlier run selected last.
    public init(settings: Settings, selected: Selected? = nil) {
        self.settings = settings
        self.selected = selected
        adopt()
    }

    private mutating func adopt() {
        minGapMs = settings.minGap.milliseconds
        maxDelayMs = settings.maxDelay.milliseconds
        maxDelay = Nanoseconds(settings.maxDelay)
        hasExtras = settings.angle != nil || settings.speedChange != nil
        segment = settings.rule == .trackError ? TrackErrorSegment(bound: settings.bound) : nil
        if let selected { segment?.begin(at: selected) }
    }

    /// A location was recorded for another reason; the next fix is compared with it.
    public mutating func rebase(_ recorded: Selected) {
        selected = recorded
        mustRestart = false
        segment?.begin(at: recorded)
    }

    /// Decides about the next fix. Limits are inclusive.
    /// - Parameters:
    ///   - at: event time of the fix, from which `deadline` counts.
    ///   - resolution: nil = none decided yet: every fix is selected.
    ///   - standing: the position is held, so only the interval can select, with `track-error` only the bound, and with
    ///     `displacement` nothing.
    /// - Returns: what is kept; nil when nothing is.
    public mutating func sample(
        _ fix: Selected, at: EventTime = .zero, resolution: Resolution?, standing: Bool = false
    ) -> Selection? {
        guard let selected, let resolution else {
            let previous: Trigger? = isOpen ? .stateChange : nil
            rebase(fix)
            return Selection(previous: previous, current: .first)
        }
        if segment != nil { return sampleWithinBound(fix, since: selected, at: at, standing: standing) }
        guard let trigger = trigger(fix, since: selected, resolution, standing) else { return nil }
        self.selected = fix
        return Selection(previous: nil, current: trigger)
    }

    private func trigger(
        _ fix: Selected, since last: Selected, _ resolution: Resolution, _ standing: Bool
    ) -> Trigger? {
        let (elapsed, overflow) = fix.time.milliseconds.subtractingReportingOverflow(last.time.milliseconds)
        if elapsed < 0 || overflow { return .clockStep }
        if elapsed < minGapMs { return nil }

        let due = elapsed >= (settings.rule == .significant ? Significance.intervalMs : resolution.intervalMs)
        if standing { return due && settings.rule != .displacement ? .interval : nil }
        switch settings.rule {
        case .either, .trackError:
            // With `trackError` there is a segment, and `sampleWithinBound` decides.
            if due { return .interval }
            if isDisplaced(fix, last, resolution) { return .displacement }
        case .both:
            if due, isDisplaced(fix, last, resolution) { return .displacement }
        case .interval:
            if due { return .interval }
        case .displacement:
            if isDisplaced(fix, last, resolution) { return .displacement }
        case .significant:
            if due { return .interval }
            let displacement = elastic(resolution.displacement, fix.speed)
            if let trigger = Significance.trigger(fix, since: last, displacement: displacement) { return trigger }
        }
        return hasExtras ? extra(fix, since: last, elapsed: elapsed) : nil
    }

    private func isDisplaced(_ fix: Selected, _ last: Selected, _ resolution: Resolution) -> Bool {
        last.coordinate.distance(to: fix.coordinate) >= elastic(resolution.displacement, fix.speed)
    }

    private func elastic(_ displacement: Double, _ speed: Double?) -> Double {
        guard let multiplier = settings.elasticity else { return displacement }
        return Self.elastic(displacement: displacement, speed: speed, multiplier: multiplier)
    }
}

// Triggers that every rule has.
extension LocationSampler {
    /// m/s below which a course is noise.
    private static let courseSpeedMin = 2.0
    /// ms within which a second turn does not count.
    private static let turnGapMs: Int64 = 2000
    /// Metres to which elasticity stretches a displacement.
    private static let elasticMax = 500.0

    /// The displacement that counts at a speed: × ⌈speed / 5 m/s⌉ × multiplier where that is more than once, and not
    /// stretched beyond 500 m.
    /// - Parameters:
    ///   - speed: m/s; nil = unknown: not stretched.
    ///   - multiplier: 0 = off.
    public static func elastic(displacement: Double, speed: Double?, multiplier: Double) -> Double {
        guard multiplier > 0, let speed, speed > 0, speed.isFinite else { return displacement }
        let factor = max(1, (speed / 5).rounded(.up) * multiplier)
        return max(displacement, min(elasticMax, displacement * factor))
    }

    /// Degrees between two courses, 0…180.
    static func turn(_ a: Double, _ b: Double) -> Double {
        let difference = abs(a - b).truncatingRemainder(dividingBy: 360)
        return difference > 180 ? 360 - difference : difference
    }

    private func extra(_ fix: Selected, since last: Selected, elapsed: Int64) -> Trigger? {
        guard let speed = fix.speed, let before = last.speed else { return nil }
        if let angle = settings.angle, let course = fix.course, let old = last.course, elapsed >= Self.turnGapMs,
            speed >= Self.courseSpeedMin, before >= Self.courseSpeedMin, Self.turn(old, course) >= angle
        {
            return .angle
        }
        if let change = settings.speedChange, abs(speed - before) >= change { return .speed }
        return nil
    }
}

// Rule `track-error`.
extension LocationSampler {
    /// A fix waits for the next one to decide whether it is kept.
    public var isOpen: Bool { segment?.newest != nil }

    /// The fix that waits.
    var newest: Selected? { segment?.newest }

    /// When the fix that waits must be kept even if no other one comes; nil when none needs to be.
    public var deadline: EventTime? { segment?.newsAt.map { $0 + maxDelay } }

    /// Keeps the fix that waits.
    public mutating func keepNewest() {
        if let newest { rebase(newest) }
    }

    /// Whether a record at this place and time keeps all fixes since the last one within the bound.
    func admits(time: UTCTime, coordinate: Coordinate) -> Bool {
        segment?.admits(time: time, coordinate: coordinate) ?? true
    }

    /// A location was recorded that is dated before the fix that waits.
    /// - Returns: whether that fix may go on waiting; if not, it must be kept.
    mutating func split(at recorded: Selected) -> Bool {
        selected = recorded
        return segment?.split(at: recorded) ?? true
    }

    /// Fixes from this time on were not what they seemed; others come in their place.
    mutating func withdraw(from time: UTCTime) { segment?.withdraw(from: time) }

    /// The next fix cannot be measured from what came before.
    mutating func restart() { mustRestart = true }

    private mutating func sampleWithinBound(
        _ fix: Selected, since last: Selected, at: EventTime, standing: Bool
    ) -> Selection? {
        let previousTime = newest?.time ?? last.time
        if fix.time < previousTime || mustRestart {
            let reason: Trigger = fix.time < previousTime ? .clockStep : .first
            let previous: Trigger? = isOpen ? .stateChange : nil
            rebase(fix)
            return Selection(previous: previous, current: reason)
        }
        let elapsed = fix.time.milliseconds.subtractingReportingOverflow(last.time.milliseconds)
        let extra =
            hasExtras && !standing && !elapsed.overflow ? extra(fix, since: last, elapsed: elapsed.partialValue) : nil

        var previous: Trigger?
        var sinceKept = elapsed.overflow ? .max : elapsed.partialValue
        if let newest {
            if !admits(time: fix.time, coordinate: fix.coordinate) {
                previous = .trackError
            } else if segment?.delayMs(at: fix.time) ?? 0 > maxDelayMs {
                previous = .maxDelay
            } else if segment?.isFull ?? false {
                previous = .segmentFull
            }
            if previous != nil {
                rebase(newest)
                let (rest, overflow) = fix.time.milliseconds.subtractingReportingOverflow(newest.time.milliseconds)
                sinceKept = overflow ? .max : rest
            }
        }
        // The cap is for extras only: on points that the bound needs it would break the bound.
        if let extra, sinceKept >= minGapMs {
            rebase(fix)
            return Selection(previous: previous, current: extra)
        }
        if segment?.append(fix, at: at, standing: standing) == false {
            rebase(fix)
            return Selection(previous: previous, current: .trackError)
        }
        return previous.map { Selection(previous: $0, current: nil) }
    }
}

extension LocationSampler {
    /// Rule `significant`, after Badoo's article on tracking on iOS; the article has no numbers.
    private enum Significance {
        static let intervalMs: Int64 = 300_000
        /// Metres that are significant however inaccurate both fixes are.
        private static let farMin = 500.0
        /// Metres by which the accuracy must get better, besides by half.
        private static let betterMin = 10.0

        static func trigger(_ fix: Selected, since last: Selected, displacement: Double) -> Trigger? {
            if let accuracy = fix.accuracy, let before = last.accuracy, accuracy <= before / 2,
                before - accuracy >= betterMin
            {
                return .accuracy
            }
            let sum = (fix.accuracy ?? FixFilter.unknownAccuracy) + (last.accuracy ?? FixFilter.unknownAccuracy)
            let distance = last.coordinate.distance(to: fix.coordinate)
            if distance >= max(farMin, 5 * sum) { return .displacement }
            let isWorse =
                if let accuracy = fix.accuracy, let before = last.accuracy { accuracy > 1.5 * before } else { false }
            return distance >= max(displacement, sum) && !isWorse ? .displacement : nil
        }
    }
}
