import WaypostCore

/// When the next request may go out: the back-off after failures, the time for which a batch was formed, and how far either
/// may be cut short.
struct RetryTimer: Sendable {
    /// In a row.
    private(set) var failures = 0
    private(set) var next: EventTime
    /// No flush and no change of the link brings the next attempt before this.
    private(set) var earliest = EventTime.zero
    private var isBroughtForward = false
    /// The last attempt was answered, whatever the answer.
    private var wasAnswered = false
    /// The failures that were answers, and until when the last of them is waited after. Another link changes nothing about that.
    private var answers = 0
    private var answerHolds = EventTime.min
    /// An attempt has failed since the last success, also if its failure is forgotten.
    private(set) var hasFailed = false
    /// When an operator last cut a wait short; nil = never.
    private var cutAt: EventTime?
    private static let cutPause = Duration.seconds(10)
    /// When the batch that was formed last goes out, if that is later than at once.
    private var batchGoesOut = EventTime.min

    init(at now: EventTime) { next = now }

    mutating func schedule(at instant: EventTime, earliest: EventTime) {
        next = instant
        self.earliest = earliest
        if wasAnswered, failures > 0 { answerHolds = instant }
    }

    mutating func makeDue(at now: EventTime) { schedule(at: now, earliest: now) }

    mutating func postpone(to instant: EventTime, earliest: EventTime) {
        schedule(at: max(next, instant), earliest: max(self.earliest, earliest))
    }

    /// A batch is being formed.
    ///
    /// - Parameter instant: when it goes out, unless a flush or another link comes before; nil = at once.
    mutating func batchRequested(for instant: EventTime?) { batchGoesOut = instant ?? .min }

    /// It is on disk, and next.
    mutating func batchFormed(nextBatch: EventTime, at now: EventTime) {
        postpone(to: max(now, nextBatch, batchGoesOut), earliest: nextBatch)
    }

    /// Whether a batch waits for its time, or will once it is formed.
    func batchWaits(at now: EventTime) -> Bool { batchGoesOut > now }

    /// What waits is urgent, and so is a batch that is only being formed.
    mutating func sendBatchAtOnce() { batchGoesOut = .min }

    mutating func attemptEnded(isAnswer: Bool) { wasAnswered = isAnswer }

    mutating func countFailure() {
        failures = min(failures + 1, 1_000_000)
        hasFailed = true
        if wasAnswered { answers = min(answers + 1, failures) }
    }

    mutating func countAtLeastOneFailure() { if failures == 0 { countFailure() } }

    mutating func forgetFailures() { (failures, answers, answerHolds) = (0, 0, .min) }

    /// There is another link: failures of the former one are forgotten, and the answers of the server are not.
    mutating func linkChanged() {
        failures = answers
        isBroughtForward = false
    }

    /// The next attempt is made as soon as the answers of the server allow it.
    mutating func cutShortAfterAnswers(at now: EventTime) { cutShort(at: max(now, answerHolds)) }

    /// - Parameter window: over which a fleet spreads its requests while the server works. It is not asked more often when it
    ///   does not; only a single failure, as by a packet that was lost, is tried again soon.
    mutating func backOff(_ backoff: Backoff, asked: Duration?, window: Duration, jitter: Double, at now: EventTime) {
        countFailure()
        let delay = backoff.delay(
            failures: failures, jitter: jitter, asked: asked, spread: failures > 1 ? window : .zero)
        schedule(at: now + delay, earliest: now + backoff.base)
    }

    /// A failure that is no reason to ask the server less often: counts as none.
    mutating func hold(_ backoff: Backoff, asked: Duration?, jitter: Double, at now: EventTime) {
        schedule(at: now + backoff.delay(failures: 1, jitter: jitter, asked: asked), earliest: now + backoff.base)
    }

    /// - Parameter nextBatch: the pace that the server has asked for.
    mutating func succeeded(nextBatch: EventTime, at now: EventTime) {
        forgetFailures()
        (isBroughtForward, hasFailed) = (false, false)
        schedule(at: max(now, nextBatch), earliest: now)
    }

    /// Once until the next success: not every event in an outage is worth an attempt.
    mutating func bringForward(at now: EventTime) {
        guard next > now, !isBroughtForward else { return }
        isBroughtForward = true
        cutShort(at: now)
    }

    /// A person waits: once in ten seconds.
    mutating func cutShortByOperator(at now: EventTime) {
        guard next > now, cutAt.map({ now >= $0 + Self.cutPause }) ?? true else { return }
        cutAt = now
        cutShort(at: now)
    }

    mutating func cutShort(at now: EventTime) { next = min(next, max(now, earliest)) }

    /// An attempt that is independent of the one that failed does not wait for its back-off.
    mutating func skipBackOff(at now: EventTime) { next = max(now, earliest) }
}

extension RetryTimer {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(failures >= 0 && answers >= 0, "\(failures) failures, \(answers) answers")
        invariant(answers <= failures, "\(answers) of \(failures) failures were answers")
        invariant(failures == 0 || hasFailed, "failures without one")
    }
}
