import WaypostCore

/// A tracker, the hours that it keeps, and the event time that it has reached: the only code that orders epochs and
/// deadlines, so that live and replay cannot differ.
///
/// `perform` gets each effect together with the UTC of its decision, which is nil before the first dated fix.
public struct TrackerRun {
    public private(set) var tracker: Tracker
    private var watch: TimeWindowWatch
    /// Event time of the last call; later calls are never earlier.
    public private(set) var reached = EventTime(nanoseconds: .min)

    public init(tracker: Tracker, timetable: Timetable = Timetable()) {
        self.tracker = tracker
        watch = TimeWindowWatch(timetable)
    }

    public var nextDeadline: EventTime? {
        guard let due = watch.due else { return tracker.nextDeadline }
        return min(due, tracker.nextDeadline ?? due)
    }

    /// One epoch of the receiver. Deadlines before it fire first, as they would have done live.
    public mutating func epochReceived(
        _ epoch: Epoch, at: EventTime, _ perform: (Effect, UTCTime?) -> Void
    ) {
        passDeadlines(before: at, perform)
        switch epoch {
        case .fix(let fix):
            guard !watch.isIdle else { return handle(.fixReceived(fix), at: at, perform) }
            if tracker.counters.admitted == 0, let time = fix.time {
                change(watch.begins(time, at: at), at: at, perform)
            }
            handle(.fixReceived(fix), at: at, perform)
            guard let time = tracker.utc(at: reached) else { return }
            change(watch.reached(time, at: reached, believed: tracker.counters.admitted), at: reached, perform)
        case .void(let void):
            handle(.noFix(void.reason), at: at, perform)
        }
    }

    public mutating func handle(
        _ event: TrackerEvent, at: EventTime, _ perform: (Effect, UTCTime?) -> Void
    ) {
        reached = max(reached, at)
        let effects = tracker.handle(event, at: reached)
        guard !effects.isEmpty else { return }
        let utc = tracker.utc(at: reached)
        for effect in effects { perform(effect, utc) }
    }

    /// Other settings and hours, without forgetting anything: motion, odometer and stays in geofences go on.
    public mutating func reloaded(
        _ settings: Tracker.Settings?, _ timetable: Timetable, at: EventTime, _ perform: (Effect, UTCTime?) -> Void
    ) {
        passDeadlines(before: at, perform)
        if let settings { handle(.settingsReloaded(settings), at: at, perform) }
        reached = max(reached, at)
        change(watch.reloaded(timetable, tracker.utc(at: reached), at: reached), at: reached, perform)
    }

    /// The input is over: what waits for the next fix waits in vain. Nothing when there was none.
    public mutating func ended(_ perform: (Effect, UTCTime?) -> Void) {
        guard reached > EventTime(nanoseconds: .min) else { return }
        handle(.shutdown, at: reached, perform)
    }

    /// Fires what is due before `at`, each deadline at its own time. Hours that begin or end at `at` do so before what
    /// happens then.
    public mutating func passDeadlines(before at: EventTime, _ perform: (Effect, UTCTime?) -> Void) {
        while true {
            if let due = watch.due, due <= at, tracker.nextDeadline.map({ due <= $0 }) ?? true {
                reached = max(reached, due)
                let time = tracker.utc(at: reached) ?? UTCTime(milliseconds: .min)
                change(watch.deadlineReached(time, at: reached), at: reached, perform)
                guard watch.due.map({ $0 > due }) ?? true else { return }
            } else if let deadline = tracker.nextDeadline, deadline < at {
                handle(.deadlineReached, at: deadline, perform)
                // A deadline that does not move when it fires would loop forever.
                guard tracker.nextDeadline.map({ $0 > deadline }) ?? true else { return }
            } else {
                return
            }
        }
    }

    /// The same, with what is due at `at`.
    public mutating func passDeadlines(through at: EventTime, _ perform: (Effect, UTCTime?) -> Void) {
        passDeadlines(before: at.advanced(byNanoseconds: 1), perform)
    }

    /// Whether the tracker's hours are open at the time that has been reached, and until when (nil = forever); nil
    /// without hours, or before the first dated fix.
    public var schedule: (isOpen: Bool, until: UTCTime?)? {
        tracker.utc(at: reached).flatMap { watch.timetable.tracking(at: $0) }
    }

    private mutating func change(
        _ events: [TrackerEvent], at: EventTime, _ perform: (Effect, UTCTime?) -> Void
    ) {
        for event in events { handle(event, at: at, perform) }
    }
}
