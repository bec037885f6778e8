import Queue
import WaypostControl
import WaypostCore
import WaypostTracking

/// Limits what is recorded by request: ten at once and ten a minute, over all clients. Otherwise a looping program
/// would push recorded drives out of a full queue, wear out the SD card and fill the log.
struct RequestBudget {
    enum Panic: Hashable {
        case recorded
        /// One was recorded less than a minute ago, and stands for this one too.
        case merged
    }

    private var bucket = TokenBucket(burst: 10, refill: .seconds(6))
    private var lastPanicAt: EventTime?

    /// - Throws: `busy`, which says when to try again.
    mutating func spend(at now: EventTime) throws(ControlError) {
        guard let wait = bucket.take(at: now) else { return }
        throw .busy(for: wait, "too many changes by request: at most ten a minute")
    }

    /// An emergency is never refused: with the budget spent, one a minute is still recorded.
    mutating func spendForPanic(at now: EventTime) -> Panic {
        if bucket.take(at: now) != nil, let last = lastPanicAt, now < last + .seconds(60) { return .merged }
        lastPanicAt = now
        return .recorded
    }
}

extension ControlError {
    /// - Parameter wait: until a new request may succeed.
    static func busy(for wait: Duration, _ message: String) -> ControlError {
        ControlError("busy", message, hint: "try again in \(max(1, Int(wait.inSeconds.rounded(.up)))) s")
    }
}

// What people and programs on this host ask for.
extension Pipeline {
    /// See `carryOut(_:at:)` of several.
    func carryOut(_ event: TrackerEvent, at now: EventTime) throws(ControlError) { try carryOut([event], at: now) }

    /// Each new reading costs, since it is written to disk.
    /// - Parameter done: called once it is on disk; takes why it is not, nil = it is.
    func setOdometer(
        metres: Double, at now: EventTime, _ done: @escaping (OutboxError?) -> Void = { _ in }
    ) throws(ControlError) {
        if metres != tracker.snapshot.odometer {
            try budget.spend(at: now)
            handle(.odometerSet(metres: metres), at: now)
        } else if recorder.isSettled {
            return done(nil)
        }
        recorder.commit(at: now) { [recorder] in done(recorder.lastError) }
    }

    /// - Throws: `no-position`, and then it has cost nothing.
    func panic(at now: EventTime) throws(ControlError) -> RequestBudget.Panic {
        var tried = budget
        let panic = tried.spendForPanic(at: now)
        if panic == .recorded {
            let refused = tracker.counters.panicsRefused
            handle(.panicRequested, at: now)
            if tracker.counters.panicsRefused > refused {
                throw ControlError(
                    "no-position", "no position is known yet, so no panic can be recorded",
                    hint: "`waypost status` shows what the receiver does")
            }
        }
        budget = tried
        return panic
    }
}
