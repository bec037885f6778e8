import WaypostCore

/// How the rate of the receiver compares with what was asked of it.
package struct ReceiverRate: Hashable, Sendable {
    /// Milliseconds between fixes that the receiver was asked for, within what it can do.
    package var wanted: Int64
    /// As measured; nil = not yet.
    package var measured: Int64?
    /// nil = not known yet.
    package var isHonoured: Bool?

    /// For people.
    package var complaint: String {
        let found = measured.map { "fixes come every \($0) ms" } ?? "it keeps none"
        return "rate not honoured: asked for a fix every \(wanted) ms, \(found); surplus fixes are dropped"
    }
}

/// Sets the rate of the receiver, and trusts only the measured interval.
///
/// It only saves bytes and wake-ups: fixes that come more often than they are wanted are thinned by tracking. Nothing
/// is asked of a receiver whose speed is not found yet, or that keeps the interval already. It serves a line and gpsd
/// alike: its owner performs the orders.
package struct ReceiverControl {
    /// What the owner of the connection has to do.
    package enum Order: Hashable, Sendable {
        /// Bytes for the receiver.
        case write([UInt8])
        /// Milliseconds for gpsd's `?DEVICE={…,"cycle":…}`.
        case cycle(Int64)
        /// The receiver does not keep what it was asked for. Reported once, until it keeps one.
        case rateNotHonoured(ReceiverRate)
    }

    /// Between two commands: some receivers drop what comes while they work.
    private static let pause = Duration.milliseconds(200)
    /// Between two changes of the interval.
    private static let settling = Duration.seconds(2)
    /// 0 asks for every fix: one a second with factory settings.
    private static let usualInterval: Int64 = 1000

    package let profile: ReceiverProfile
    private var judge = RateJudge()
    /// Milliseconds, as asked for by tracking; nil = none.
    private var requestedInterval: Int64?
    /// What this receiver was commanded or keeps by itself, since it was connected; nil = not known.
    private var commanded: Int64?
    private var verdict: Bool?
    private var pending: [[UInt8]] = []
    /// When the next of `pending` goes out, or the next requested interval may be set.
    private var resumeAt: EventTime?
    private var hasComplained = false

    package init(profile: ReceiverProfile) { self.profile = profile }

    /// When `deadlineReached` is due; nil = never.
    package var nextDeadline: EventTime? { resumeAt }

    /// nil where nothing is asked of the receiver.
    package var rate: ReceiverRate? {
        commanded.map { ReceiverRate(wanted: $0, measured: judge.measured.map(Int64.init), isHonoured: verdict) }
    }

    /// How far apart epochs may be by what was asked; nil = nothing was, or it is not kept.
    package var expectedInterval: Duration? { verdict == false ? nil : commanded.map { .milliseconds($0) } }

    /// - Parameter interval: what tracking asks of the receiver; zero = every fix.
    package mutating func intervalWanted(_ interval: Duration, at now: EventTime) -> [Order] {
        requestedInterval = interval.milliseconds
        return carryOut(at: now)
    }

    /// Whatever is connected now, nothing is known of it.
    package mutating func disconnected() {
        judge = RateJudge()
        commanded = nil
        verdict = nil
        pending = []
        resumeAt = nil
    }

    /// - Parameter timeOfDay: milliseconds since midnight, as the receiver reports it; nil = it does not.
    package mutating func epochReceived(timeOfDay: Int?, at now: EventTime) -> [Order] {
        guard profile.intervals != nil, let timeOfDay else { return [] }
        guard let kept = judge.epochReceived(timeOfDay: timeOfDay) else {
            return commanded == nil ? carryOut(at: now) : []
        }
        verdict = kept
        if kept {
            hasComplained = false
        } else if !hasComplained, let rate {
            hasComplained = true
            return [.rateNotHonoured(rate)]
        }
        return []
    }

    package mutating func deadlineReached(at now: EventTime) -> [Order] {
        guard let resumeAt, now >= resumeAt else { return [] }
        self.resumeAt = nil
        return pending.isEmpty ? carryOut(at: now) : sendNext(at: now)
    }

    /// Bytes that put the receiver to sleep; empty = it knows no sleep.
    package func standby(for duration: Duration?) -> [[UInt8]] {
        profile.standbyCommands(duration.map(\.milliseconds))
    }

    /// Bytes for a receiver that may be asleep.
    package var waking: [[UInt8]] { profile.wakeCommands }

    private var wanted: Int64? {
        guard let limits = profile.intervals, let requestedInterval else { return nil }
        return min(
            limits.upperBound, max(limits.lowerBound, requestedInterval == 0 ? Self.usualInterval : requestedInterval))
    }

    private mutating func carryOut(at now: EventTime) -> [Order] {
        guard let wanted, wanted != commanded, resumeAt == nil else { return [] }
        if commanded == nil {
            // It may keep the interval without a command.
            guard let measured = judge.measured else { return [] }
            if RateJudge.isKept(wanted, measured) {
                commanded = wanted
                verdict = true
                return []
            }
        }
        commanded = wanted
        verdict = nil
        if case .gpsdCycle = profile {
            judge.commanded(wanted)
            resumeAt = now + Self.settling
            return [.cycle(wanted)]
        }
        pending = profile.rateCommands(wanted)
        return sendNext(at: now)
    }

    private mutating func sendNext(at now: EventTime) -> [Order] {
        let command = pending.removeFirst()
        if let commanded { judge.commanded(commanded) }
        resumeAt = now + (pending.isEmpty ? Self.settling : Self.pause)
        return [.write(command)]
    }
}
