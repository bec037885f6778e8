import Positioning

/// When the receiver may sleep: a parked asset is looked at now and then instead of always.
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

        public init() {}
    }

    /// What the receiver should do now.
    enum Order: Hashable, Sendable {
        /// nil = until told to wake.
        case sleep(until: EventTime?)
        case wake
    }

    private enum Phase {
        /// The asset is not parked, or the receiver never sleeps.
        case onDuty
        /// Parked for too short a time, or roused. Leaves to asleep.
        case settling(until: EventTime)
        /// nil = released until a trip begins. Leaves to probing.
        case asleep(until: EventTime?)
        /// Woken to look. Leaves to asleep, later with every fix that hints at a departure.
        case probing(until: EventTime, hasFix: Bool)
    }

    /// Seconds without any fix after which a probe is given up: where there is no sky looking longer only costs power.
    private static let acquisition = Duration.seconds(120)
    /// A probe whose last fixes hint at a departure goes on for so long.
    private static let prolongation = Duration.seconds(30)

    private(set) var settings: Settings
    private var phase = Phase.onDuty
    /// When the receiver was last woken: its silence counts from there.
    private(set) var wokenAt: EventTime?

    init(settings: Settings) { self.settings = settings }

    var isAsleep: Bool { if case .asleep = phase { true } else { false } }
    /// Asleep until a trip begins by `pace`.
    var isReleased: Bool { if case .asleep(nil) = phase { true } else { false } }
    /// When it wakes by itself; nil when awake or released.
    var asleepUntil: EventTime? { if case .asleep(let until) = phase { until } else { nil } }

    var nextDeadline: EventTime? {
        switch phase {
        case .onDuty: nil
        case .settling(let until), .probing(let until, _): until
        case .asleep(let until): until
        }
    }

    /// - Parameter released: sleep at once, and until a trip begins.
    mutating func parked(released: Bool, at: EventTime) -> Order? {
        if released {
            phase = .asleep(until: nil)
            return .sleep(until: nil)
        }
        let order = leaveSleep(at: at)
        phase = settings.sleep ? .settling(until: at + settings.settle) : .onDuty
        return order
    }

    mutating func departed(at: EventTime) -> Order? {
        let order = leaveSleep(at: at)
        phase = .onDuty
        return order
    }

    /// Something other than the receiver tells movement: it is awake at least for so long. A released one stays so.
    mutating func roused(for duration: Duration, at: EventTime) -> Order? {
        if isReleased { return nil }
        guard settings.sleep, let due = nextDeadline else { return nil }
        let order = leaveSleep(at: at)
        let until = at + max(settings.settle, duration)
        phase = .settling(until: order == nil ? max(until, due) : until)
        return order
    }

    mutating func fixReceived(at: EventTime) {
        if case .probing(_, hasFix: false) = phase { phase = .probing(until: at + settings.probeOn, hasFix: true) }
    }

    /// - Parameter isRestless: the last fixes hint at a departure.
    mutating func deadlineReached(at: EventTime, isRestless: Bool) -> Order? {
        guard let nextDeadline, nextDeadline <= at else { return nil }
        switch phase {
        case .onDuty: return nil
        case .asleep:
            phase = .probing(until: at + Self.acquisition, hasFix: false)
            wokenAt = at
            return .wake
        case .settling where isRestless:
            phase = .settling(until: at + Self.prolongation)
            return nil
        case .probing(_, hasFix: true) where isRestless:
            phase = .probing(until: at + Self.prolongation, hasFix: true)
            return nil
        case .settling, .probing:
            // A pause of nothing would make deadlines that do not pass.
            let until = at + max(settings.probe, .seconds(1))
            phase = .asleep(until: until)
            return .sleep(until: until)
        }
    }

    mutating func reload(_ settings: Settings, isParked: Bool, at: EventTime) -> Order? {
        guard settings != self.settings else { return nil }
        self.settings = settings
        return isReleased || !isParked ? nil : parked(released: false, at: at)
    }

    private mutating func leaveSleep(at: EventTime) -> Order? {
        guard isAsleep else { return nil }
        wokenAt = at
        return .wake
    }
}
