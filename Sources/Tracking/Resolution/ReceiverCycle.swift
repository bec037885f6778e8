import WaypostCore

/// When the receiver may sleep: a parked asset is looked at now and then instead of always, and so is a moving one that
/// is to be followed coarsely.
///
/// It only says when; fixes that come from a receiver that cannot sleep are tracked like any others.
public struct ReceiverCycle: Sendable {
    public struct Settings: Hashable, Sendable {
        /// Put the receiver to sleep while the asset is parked. The default is false: a departure is then seen up to
        /// `probe` and the time to a first fix later.
        public var sleep = false
        /// How long the asset must be parked before the receiver first sleeps. The default is 5 min.
        public var settle = Duration.seconds(300)
        /// How long it sleeps before it is asked again. The default is 5 min; much less saves little, since a receiver
        /// draws most while it acquires.
        public var probe = Duration.seconds(300)
        /// How long it is listened to then, from its first fix on. The default is 30 s, which evidence of a departure
        /// needs at most.
        public var probeOn = Duration.seconds(30)
        /// Put the receiver to sleep between two fixes of a moving asset, where the interval that is asked of it is far
        /// above its time to a fix. The default is false: nothing is known of the way between.
        public var sleepMoving = false

        public init() {}
    }

    /// What the receiver should do now.
    enum Order: Hashable, Sendable {
        /// nil = until `wake`.
        case sleep(until: EventTime?)
        case wake
    }

    private enum Phase {
        /// The receiver never sleeps as things are.
        case onDuty
        /// Parked or on the way for too short a time, roused, or asked for too many fixes. Becomes asleep.
        case settling(until: EventTime)
        /// nil = released until a trip begins. Becomes probing.
        case asleep(until: EventTime?)
        /// Woken to look. Becomes asleep, later with every fix that hints at a departure or a stop; released again if it was.
        case probing(until: EventTime, firstFix: EventTime?, wasReleased: Bool)
    }

    /// Time without any fix after which a probe is given up: where there is no sky looking longer only costs power.
    private static let acquisition = Duration.seconds(120)
    /// A probe whose last fixes hint at a departure goes on for this long.
    private static let prolongation = Duration.seconds(30)

    /// Time to a fix before any was measured: a cold receiver under open sky.
    private static let usualTimeToFix = Duration.seconds(30)
    /// Shorter intervals are never far above the time to a fix.
    private static let intervalMin = Duration.seconds(60)
    private static let timesToFixMax = 5

    private(set) var settings: Settings
    private var phase = Phase.onDuty
    /// When the receiver was last woken: its silence counts from there.
    private(set) var wokenAt: EventTime?
    private var isMoving = false
    /// The last times from waking to the first fix.
    private var timesToFix: [Duration] = []
    /// Between two fixes, as asked of the receiver.
    private var interval = Duration.zero
    /// Sleeping longer would end a trip.
    private var sleepMax = Duration.seconds(900)

    init(settings: Settings) { self.settings = settings }
    var isAsleep: Bool { if case .asleep = phase { true } else { false } }
    /// Asleep until a trip begins by `pace`, but for looks in between.
    var isReleased: Bool {
        switch phase {
        case .asleep(nil), .probing(_, _, wasReleased: true): true
        default: false
        }
    }
    /// When it wakes by itself; nil when awake or released.
    var asleepUntil: EventTime? { if case .asleep(let until) = phase { until } else { nil } }

    var nextDeadline: EventTime? {
        switch phase {
        case .onDuty: nil
        case .settling(let until), .probing(let until, _, _): until
        case .asleep(let until): until
        }
    }

    /// - Parameter released: sleep at once, and until a trip begins.
    mutating func parked(released: Bool, at: EventTime) -> Order? {
        if released {
            phase = .asleep(until: nil)
            return .sleep(until: nil)
        }
        isMoving = false
        return begin(at: at)
    }

    mutating func departed(at: EventTime) -> Order? {
        isMoving = true
        return begin(at: at)
    }

    private mutating func begin(at: EventTime) -> Order? {
        let order = leaveSleep(at: at)
        phase = mayEverSleep ? .settling(until: at + settings.settle) : .onDuty
        return order
    }

    private var mayEverSleep: Bool { isMoving ? settings.sleepMoving : settings.sleep }

    /// - Parameter sleepMax: the longest time without a fix while moving.
    mutating func intervalChanged(_ interval: Duration, sleepMax: Duration, at: EventTime) -> Order? {
        self.interval = interval
        self.sleepMax = sleepMax
        // Parked it is not asked for its interval.
        guard isMoving, isAsleep, pause(from: at, at: at) == nil else { return nil }
        return begin(at: at)
    }

    /// Median of the last times.
    private var timeToFix: Duration {
        timesToFix.isEmpty ? Self.usualTimeToFix : timesToFix.sorted()[timesToFix.count / 2]
    }

    /// When it has to wake again if it falls asleep now; nil = sleep is not worth it.
    private func pause(from base: EventTime, at: EventTime) -> EventTime? {
        // A pause of zero would be due again at once, for ever.
        guard isMoving else { return at + max(settings.probe, .seconds(1)) }
        let timeToFix = timeToFix
        let cycle = min(interval, sleepMax)
        guard cycle >= Self.intervalMin, cycle >= timeToFix * 4 + settings.probeOn else { return nil }
        return max(base + (cycle - timeToFix), at + .seconds(1))
    }

    /// Another source reports movement: the receiver is awake at least for this duration. A released one stays so.
    mutating func roused(for duration: Duration, at: EventTime) -> Order? {
        if isReleased { return nil }
        guard mayEverSleep, let due = nextDeadline else { return nil }
        let order = leaveSleep(at: at)
        let until = at + max(settings.settle, duration)
        phase = .settling(until: order == nil ? max(until, due) : until)
        return order
    }

    /// Somebody wants a fix: a sleeping receiver wakes for one look, and one that is awake stays so for this duration.
    mutating func looked(for duration: Duration, at: EventTime) -> Order? {
        switch phase {
        case .onDuty: return nil
        case .settling(let until):
            phase = .settling(until: max(until, at + duration))
            return nil
        case .probing(let until, let firstFix, let wasReleased):
            phase = .probing(until: max(until, at + duration), firstFix: firstFix, wasReleased: wasReleased)
            return nil
        case .asleep:
            phase = .probing(until: at + Self.acquisition, firstFix: nil, wasReleased: isReleased)
            return wake(at: at)
        }
    }

    mutating func fixReceived(at: EventTime) {
        guard case .probing(_, firstFix: nil, let wasReleased) = phase else { return }
        phase = .probing(until: at + settings.probeOn, firstFix: at, wasReleased: wasReleased)
        guard let wokenAt, at > wokenAt else { return }
        if timesToFix.count == Self.timesToFixMax { timesToFix.removeFirst() }
        timesToFix.append(at.duration(since: wokenAt))
    }

    /// - Parameter isRestless: the last fixes hint at a departure, or at a stop.
    mutating func deadlineReached(at: EventTime, isRestless: Bool) -> Order? {
        guard let nextDeadline, nextDeadline <= at else { return nil }
        switch phase {
        case .onDuty: return nil
        case .asleep:
            phase = .probing(until: at + Self.acquisition, firstFix: nil, wasReleased: false)
            return wake(at: at)
        case .settling where isRestless:
            phase = .settling(until: at + Self.prolongation)
            return nil
        case .probing(_, let firstFix?, let wasReleased) where isRestless:
            phase = .probing(until: at + Self.prolongation, firstFix: firstFix, wasReleased: wasReleased)
            return nil
        case .settling: return fallAsleep(from: at, at: at)
        case .probing(_, _, wasReleased: true): return parked(released: true, at: at)
        case .probing(_, let firstFix, wasReleased: false): return fallAsleep(from: firstFix ?? at, at: at)
        }
    }

    private mutating func fallAsleep(from base: EventTime, at: EventTime) -> Order? {
        guard let until = pause(from: base, at: at) else {
            phase = .settling(until: at + Self.prolongation)
            return nil
        }
        phase = .asleep(until: until)
        return .sleep(until: until)
    }

    mutating func reload(_ settings: Settings, isParked: Bool, at: EventTime) -> Order? {
        guard settings != self.settings else { return nil }
        self.settings = settings
        return isReleased || !(isParked || isMoving) ? nil : begin(at: at)
    }

    private mutating func leaveSleep(at: EventTime) -> Order? {
        isAsleep ? wake(at: at) : nil
    }

    private mutating func wake(at: EventTime) -> Order {
        wokenAt = at
        return .wake
    }
}

extension ReceiverCycle {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(timesToFix.count <= Self.timesToFixMax, "\(timesToFix.count) times to a fix")
        invariant(timesToFix.allSatisfy { $0 >= .zero }, "a negative time to a fix")
        invariant(interval >= .zero && sleepMax > .zero, "it sleeps \(interval) of \(sleepMax)")
    }
}
