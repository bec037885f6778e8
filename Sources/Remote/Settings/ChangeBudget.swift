import WaypostCore

/// How often something may happen, counted over restarts.
///
/// The boot clock means nothing after a restart, and the wall clock of a host without a clock chip means nothing before it is
/// set. So an event counts until one of the two proves that it is older than the window: a device that is switched off
/// for a day without a clock is not believed to have been.
package struct ChangeBudget: Hashable, Sendable {
    private struct Use: Hashable, Sendable {
        var at: EventTime
        /// nil = the clock was not trusted.
        var time: UTCTime?
    }

    /// Uses within `window`, 1 or more.
    package let limit: Int
    package let window: Duration
    /// The newest last, at most `limit`.
    private var uses: [Use] = []

    package init(limit: Int, window: Duration) {
        self.limit = limit
        self.window = window
    }

    /// - Parameter time: nil where the clock is not trusted.
    /// - Returns: how long until one is free; nil = now.
    package func wait(at now: EventTime, time: UTCTime?) -> Duration? {
        guard uses.count == limit, let oldest = uses.first, !isOver(oldest, at: now, time: time) else { return nil }
        return (oldest.at + window).duration(since: now)
    }

    package mutating func use(at now: EventTime, time: UTCTime?) {
        uses.append(Use(at: now, time: time))
        if uses.count > limit { uses.removeFirst() }
        checkInvariants()
    }

    private func isOver(_ use: Use, at now: EventTime, time: UTCTime?) -> Bool {
        if now >= use.at + window { return true }
        guard let before = use.time, let time else { return false }
        return time.milliseconds(since: before) >= window.milliseconds
    }
}

extension ChangeBudget {
    /// As it is stored: each use with its age, since another run has another boot clock.
    struct Stored: StateCoded {
        struct Use: StateCoded {
            static var blank: Use { Use() }
            /// Milliseconds.
            var age = 0
            var time: UTCTime?

            mutating func code(_ coder: inout StateCoder) {
                coder.code(&age)
                coder.code(&time)
            }
        }

        static var blank: Stored { Stored() }
        var uses: [Use] = []

        mutating func code(_ coder: inout StateCoder) { coder.code(&uses) }
    }

    func stored(at now: EventTime) -> Stored {
        Stored(uses: uses.map { .init(age: Int($0.at.duration(since: now).milliseconds.magnitude), time: $0.time) })
    }

    mutating func restore(_ stored: Stored, at now: EventTime) {
        uses = stored.uses.suffix(limit).map {
            Use(at: now - .milliseconds(max(0, $0.age)), time: $0.time)
        }
    }
}

extension ChangeBudget {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(uses.count <= limit, "\(uses.count) uses of \(limit)")
        invariant(limit >= 1 && window > .zero, "\(limit) in \(window)")
    }
}
