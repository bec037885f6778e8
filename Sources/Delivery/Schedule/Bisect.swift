import Positioning

/// A refused batch that is being taken apart until what is to blame stands alone.
struct Bisect: Sendable {
    /// Rows of the batch it began with.
    let rows: Int
    /// What counts as a refusal beside the statuses that say so: the failure that was suspected.
    let cause: String?
    /// Something was accepted since it began: what is refused alone is to blame itself.
    var hasEvidence: Bool
    /// Rows behind the batch that were tried.
    var probes = 0
    var quarantined = 0

    /// A lone row is no reason to mistrust the endpoint before three others were refused too.
    var probesMax: Int { rows > 1 ? 1 : 3 }
    /// More than this in quarantine is a problem of the contract and not of rows: a tenth. Two never are, nor is what was
    /// sent in batches of one.
    var quarantineMax: Int { rows > 1 ? max(2, rows / 10) : .max }
}

/// Rows that went to quarantine within the last hour.
struct RecentRefusals: Sendable {
    static let most = 100
    private var times: [EventTime] = []

    /// - Returns: whether there are too many.
    mutating func refused(at now: EventTime) -> Bool {
        times.removeAll { $0 + .seconds(3600) <= now }
        times.append(now)
        if times.count > Self.most + 1 { times.removeFirst() }
        return times.count > Self.most
    }
}

/// Slower after each 429, at the old pace after ten acceptances.
///
/// Never slower than a server that fails is asked again: else an hour of 429 would make a window of 5 minutes one of
/// 5 hours, and ten acceptances take days.
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

/// What a look for another credential has found.
public enum CredentialRenewal: Sendable {
    /// Something that has not been refused yet.
    case new
    /// Nothing but what was refused.
    case none
    /// Whoever gives it out could not be asked.
    case later
}

/// When a new credential was looked for.
struct Refresh: Sendable {
    var isWanted = false
    var last = EventTime.min
    /// Something was accepted since.
    var hasHelped = true

    /// No more often than this.
    static let interval = Duration.seconds(60)
}
