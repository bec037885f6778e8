import Delivery
import Profiles
import Protocols
import WaypostCore

func at(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

/// For tests in which every answer is the one that is waited for.
extension DeliverySchedule {
    @discardableResult
    mutating func attemptFinished(
        _ verdict: Verdict, _ sent: Transmission? = nil, jitter: Double = 0, at now: EventTime
    ) -> [Settled] {
        guard let attempt else { return [] }
        return attemptFinished(attempt, verdict, sent ?? .init(blame: verdict.usualBlame), jitter: jitter, at: now)
            ?? []
    }

    /// Unless it is on its way already.
    mutating func sends(_ batch: String, at now: EventTime) {
        if attempt == nil { _ = attemptStarted(batch, at: now) }
    }

    /// The batch goes out and is answered.
    @discardableResult
    mutating func tries(
        _ batch: String, _ verdict: Verdict, _ sent: Transmission? = nil, jitter: Double = 0, at now: EventTime
    ) -> [Settled] {
        sends(batch, at: now)
        return attemptFinished(verdict, sent, jitter: jitter, at: now)
    }

    /// A list is asked for and comes.
    mutating func forms(_ batches: [InFlight], left: Int? = nil, unlisted: Int = 0, at now: EventTime) {
        batchesFormed(batches, of: formRequested(at: now), left: left, unlisted: unlisted, at: now)
    }

    mutating func startsRefresh(at now: EventTime) { _ = refreshStarted(at: now) }

    mutating func batchesFormed(_ batches: [InFlight], at now: EventTime) {
        batchesFormed(batches, of: formNumber ?? 0, at: now)
    }

    mutating func batchNotFormed(at now: EventTime) { batchNotFormed(formNumber ?? 0, at: now) }

    mutating func previewFinished(_ verdict: Verdict?, jitter: Double = 0, at now: EventTime) {
        if let attempt { previewFinished(attempt, verdict, jitter: jitter, at: now) }
    }

    mutating func credentialsRefreshed(isNew: Bool, jitter: Double = 0, at now: EventTime) {
        if let attempt { credentialsRefreshed(attempt, isNew ? .new : .none, jitter: jitter, at: now) }
    }
}

extension Verdict {
    /// Of a request that was written in full.
    var usualBlame: Blame { blame(in: UplinkOutcome(.failed(.broken("")))) }
}

extension DeliverySchedule.Settled {
    /// What leaves the queue as delivered, what the quarantine keeps, and what is sent again in which parts.
    func divide(_ rows: [Int]) -> (gone: [Int], refused: [Int], parts: [[Int]]) {
        switch how {
        case .accepted: return (rows, [], [])
        case .refused: return ([], rows, [])
        case .split:
            let middle = (rows.count + 1) / 2
            return ([], [], [Array(rows.prefix(middle)), Array(rows.dropFirst(middle))].filter { !$0.isEmpty })
        case .partly(let items):
            let refused = rows.filter { items.refused[Int64($0)] != nil }
            let again = rows.filter { items.again.contains(Int64($0)) }
            let gone = rows.filter { items.refused[Int64($0)] == nil && !items.again.contains(Int64($0)) }
            return (gone, refused, again.isEmpty ? [] : [again])
        }
    }
}
