/// What is under way, one thing at a time, and which answers belong to it.
struct Activity: Sendable {
    /// Becomes `idle` only with the answer to what the case holds, or when the attempt is given up.
    private enum Phase: Hashable {
        case idle
        /// A commit was requested under this number, with a batch of at most this many rows; 0 = none.
        case forming(Int, limit: Int)
        case attempting(Attempt)
    }

    private var phase = Phase.idle
    /// Of the last form request or attempt.
    private var lastNumber = 0
    /// Answers to attempts that were given up, or that had been answered before.
    private(set) var strayAnswers = 0

    var isIdle: Bool { phase == .idle }
    var formNumber: Int? { if case .forming(let number, _) = phase { number } else { nil } }
    var attempt: Attempt? { if case .attempting(let attempt) = phase { attempt } else { nil } }

    mutating func beginForming(limit: Int) -> Int {
        precondition(attempt == nil, "batches are formed while \(phase)")
        lastNumber += 1
        phase = .forming(lastNumber, limit: limit)
        return lastNumber
    }

    /// - Returns: the most rows that were requested; nil = that is not the request that is under way.
    mutating func endForming(_ number: Int) -> Int? {
        guard case .forming(number, let limit) = phase else { return nil }
        phase = .idle
        return limit
    }

    mutating func begin(_ purpose: Attempt.Purpose, endpoint: String) -> Attempt {
        precondition(isIdle, "\(purpose) begins while \(phase)")
        lastNumber += 1
        let attempt = Attempt(endpoint: endpoint, purpose: purpose, number: lastNumber)
        phase = .attempting(attempt)
        return attempt
    }

    /// Whether an answer belongs to the attempt under way. Any other is counted, and must change nothing.
    mutating func receives(_ attempt: Attempt) -> Bool {
        if phase == .attempting(attempt) { return true }
        strayAnswers += 1
        return false
    }

    /// - Returns: whether the answer was one to the attempt that was under way.
    mutating func finish(_ attempt: Attempt) -> Bool {
        guard receives(attempt) else { return false }
        phase = .idle
        return true
    }

    /// - Returns: what was given up; nil = no attempt was under way.
    mutating func abandon() -> Attempt? {
        guard let attempt else { return nil }
        phase = .idle
        return attempt
    }
}
