import Positioning
import Tracking

/// A tracker and the event time that it has reached: the one way in which epochs and deadlines meet, so that live and
/// replay cannot differ.
///
/// `perform` gets each effect together with the UTC of its decision, which is nil before the first dated fix.
public struct TrackerRun {
    public private(set) var tracker: Tracker
    /// Event time of the last call; later calls are never earlier.
    public private(set) var reached = EventTime(nanoseconds: .min)

    public init(tracker: Tracker) { self.tracker = tracker }

    public var nextDeadline: EventTime? { tracker.nextDeadline }

    /// One epoch of the receiver. Deadlines that lie before it fire first, as they would have done live.
    public mutating func epochReceived(
        _ epoch: Epoch, at: EventTime, _ perform: (Effect, UTCTime?) -> Void
    ) {
        passDeadlines(before: at, perform)
        switch epoch {
        case .fix(let fix): handle(.fixReceived(fix), at: at, perform)
        case .void(let void): handle(.noFix(void.reason), at: at, perform)
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

    /// The input is over: what waits for the next fix waits in vain. Nothing when there was none.
    public mutating func ended(_ perform: (Effect, UTCTime?) -> Void) {
        guard reached > EventTime(nanoseconds: .min) else { return }
        handle(.shutdown, at: reached, perform)
    }

    /// Fires what is due before `at`, each deadline at its own time.
    public mutating func passDeadlines(before at: EventTime, _ perform: (Effect, UTCTime?) -> Void) {
        while let deadline = tracker.nextDeadline, deadline < at {
            handle(.deadlineReached, at: deadline, perform)
            // A deadline that does not move when it is served would hold the loop for ever.
            guard tracker.nextDeadline.map({ $0 > deadline }) ?? true else { return }
        }
    }
}
