import WaypostCore

/// Slower after each 429, at the old pace after ten acceptances.
///
/// Never slower than retries of a failing server: else an hour of 429 would turn a window of 5 minutes into one of 5
/// hours, and ten acceptances would take days.
struct Pacing: Sendable {
    private var factor: Int64 = 1
    private var acceptances = 0
    private(set) var nextBatch = EventTime.min

    private static let factorMax: Int64 = 64
    private static let recovery = 10

    mutating func throttled() {
        factor = min(factor * 2, Self.factorMax)
        acceptances = 0
    }

    mutating func accepted(_ backoff: Backoff, at now: EventTime) {
        acceptances = min(acceptances + 1, Self.recovery)
        if acceptances == Self.recovery { factor = 1 }
        nextBatch = factor > 1 ? now + stretched(backoff.base, backoff) : .min
    }

    func stretched(_ duration: Duration, _ backoff: Backoff) -> Duration {
        let (product, overflow) = duration.nanoseconds.multipliedReportingOverflow(by: factor)
        return overflow ? duration : min(.nanoseconds(product), max(duration, backoff.cap))
    }
}

extension Pacing {
    /// What holds between two calls.
    func checkInvariants() {
        invariant((1...Self.factorMax).contains(factor), "slower by \(factor)")
        invariant((0...Self.recovery).contains(acceptances), "\(acceptances) acceptances")
    }
}
