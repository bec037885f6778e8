import Profiles
import Protocols
import WaypostCore

@testable import Delivery

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

    /// Unless it is on its way already. What was answered is written before.
    mutating func sends(_ batch: String, at now: EventTime) {
        guard attempt == nil else { return }
        if batches.awaitsCommit {
            committed(View(waiting: queue.count, batches: batches.list, unlisted: batches.unlistedRows), at: now)
        }
        _ = attemptStarted(batch, at: now)
    }

    /// The batch goes out and is answered.
    @discardableResult
    mutating func tries(
        _ batch: String, _ verdict: Verdict, _ sent: Transmission? = nil, jitter: Double = 0, at now: EventTime
    ) -> [Settled] {
        sends(batch, at: now)
        return attemptFinished(verdict, sent, jitter: jitter, at: now)
    }

    /// What the step wants is requested.
    @discardableResult
    mutating func formRequested(sendsAt: EventTime? = nil, at now: EventTime) -> Int {
        switch next(at: now) {
        case .form(let rows), .reform(let rows): formRequested(rows, sendsAt: sendsAt, at: now)
        default: formRequested(batches.awaitsCommit ? 0 : settings.batchSize, sendsAt: sendsAt, at: now)
        }
    }

    /// A batch is requested, and these are in flight then.
    ///
    /// - Parameters:
    ///   - left: rows in no batch; nil = those that are in no batch which is new.
    ///   - unlisted: rows of further batches.
    mutating func forms(_ batches: [InFlight], left: Int? = nil, unlisted: Int = 0, at now: EventTime) {
        batchesFormed(batches, of: formRequested(at: now), left: left, unlisted: unlisted, at: now)
    }

    @discardableResult
    mutating func batchesFormed(
        _ listed: [InFlight], of number: Int, left: Int? = nil, unlisted: Int = 0, at now: EventTime
    ) -> Bool {
        let new = listed.filter { batches.place(of: $0.id) == nil }.reduce(0) { $0 + $1.rows }
        let formed = max(0, new - max(0, batches.unlistedRows - unlisted))
        return committed(
            View(waiting: left ?? max(0, queue.count - formed), batches: listed, unlisted: unlisted),
            answering: [number], at: now)
    }

    /// A commit that nobody asked for says how many rows wait in no batch.
    ///
    /// - Parameters:
    ///   - batches: of those in flight; nil = all.
    ///   - unlisted: rows of further batches in flight.
    ///   - lacksRows: they can be asked for.
    mutating func committed(
        waiting: Int, _ listed: [InFlight]? = nil, unlisted: Int = 0, lacksRows: Bool = false, at now: EventTime = .zero
    ) {
        committed(
            View(
                waiting: waiting, batches: listed ?? batches.list, unlisted: unlisted,
                hasAllAnswers: !batches.awaitsCommit, lacksRows: lacksRows), at: now)
    }

    /// What is in flight has another binding: its rows have to be asked for again.
    mutating func startsOver() {
        committed(waiting: queue.count, [], unlisted: batches.unlistedRows + inFlight, lacksRows: true)
    }

    mutating func startsRefresh(at now: EventTime) { _ = refreshStarted(at: now) }

    mutating func batchesFormed(_ batches: [InFlight], at now: EventTime) {
        batchesFormed(batches, of: formNumber ?? 0, at: now)
    }

    mutating func notFormed(at now: EventTime) { notFormed(formNumber ?? 0, at: now) }

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
