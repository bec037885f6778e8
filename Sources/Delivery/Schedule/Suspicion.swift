import Profiles
import WaypostCore

/// What speaks against the rows of a batch that fails while the server accepts others.
struct Suspicion: Sendable {
    /// Failures alone that show something, since the server accepted others before and after and failed over none of them.
    private struct Evidence {
        var failures = 1
        let since: EventTime
        var last: EventTime
        /// Other batches that were accepted since the first.
        var acceptances = 1
    }

    /// Failures in a row.
    private(set) var failures = 0
    /// When it may be tried again, if nothing else is to be sent.
    private(set) var dueAt = EventTime.min
    /// Nothing else was accepted since it failed last: perhaps the server is what fails.
    private(set) var awaitsOthers = false
    private var othersAccepted = false
    private var failedAt = EventTime.min
    private var evidence: Evidence?

    /// A row goes to quarantine after so many failures alone, over so long.
    static let failuresLeast = 5
    static let timeLeast = Duration.seconds(1800)
    /// A server that fails half of its requests does not accept so many others in a row between them.
    private static let acceptancesLeast = 10
    /// Between two attempts with a single row, unless a server asks for more.
    static let pace = Backoff(base: .seconds(60), cap: .seconds(900))

    /// - Parameter pause: until it may be tried again.
    mutating func failed(pause: Duration, at now: EventTime) {
        failures = min(failures + 1, 1_000_000)
        awaitsOthers = true
        failedAt = now
        dueAt = now + pause
    }

    /// - Parameter afterFailures: it was one that the server had failed over before: failures of this server show nothing.
    mutating func otherAccepted(afterFailures: Bool) {
        othersAccepted = true
        if afterFailures {
            evidence = nil
        } else {
            evidence?.acceptances += 1
            if awaitsOthers, evidence == nil {
                evidence = Evidence(since: failedAt, last: failedAt)
            } else if awaitsOthers {
                evidence?.failures += 1
                evidence?.last = failedAt
            }
        }
        awaitsOthers = false
    }

    /// An operator wants it tried now.
    mutating func makeDue() { dueAt = .min }

    /// Enough to set a row that was alone aside.
    var isProof: Bool {
        evidence.map {
            $0.failures >= Self.failuresLeast && $0.last - Self.timeLeast >= $0.since
                && $0.acceptances >= Self.acceptancesLeast
        } ?? false
    }

    /// Enough to take several rows apart, which costs requests only.
    func isReason(toDivideOver blame: Blame) -> Bool { othersAccepted && failures >= blame.failuresBeforeDivision }
}
