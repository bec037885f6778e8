import Delivery
import Positioning

/// For tests in which every answer is the one that is waited for.
extension DeliverySchedule {
    mutating func attemptFinished(_ verdict: Verdict, jitter: Double, at now: EventTime) -> [Settled] {
        guard let attempt else { return [] }
        return attemptFinished(attempt, verdict, jitter: jitter, at: now) ?? []
    }

    /// Unless it is on its way already.
    mutating func sends(_ batch: String, at now: EventTime) {
        if attempt == nil { _ = attemptStarted(batch, at: now) }
    }

    mutating func startsRefresh(at now: EventTime) { _ = refreshStarted(at: now) }

    mutating func batchesFormed(_ batches: [InFlight], at now: EventTime) {
        batchesFormed(batches, of: formNumber ?? 0, at: now)
    }

    mutating func batchNotFormed(at now: EventTime) { batchNotFormed(formNumber ?? 0, at: now) }

    mutating func previewFinished(_ verdict: Verdict?, jitter: Double, at now: EventTime) {
        if let attempt { previewFinished(attempt, verdict, jitter: jitter, at: now) }
    }

    mutating func credentialsRefreshed(isNew: Bool, jitter: Double, at now: EventTime) {
        if let attempt { credentialsRefreshed(attempt, isNew ? .new : .none, jitter: jitter, at: now) }
    }
}
