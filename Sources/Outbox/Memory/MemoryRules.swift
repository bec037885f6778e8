import Delivery

/// What a commit can and cannot do while the disk refuses.
struct MemoryRules {
    /// Why it refuses.
    let refusal: OutboxError
    /// Of the batches that are formed meanwhile.
    let generation: Int
    /// It is not known what the disk holds: nothing can be put into its quarantine.
    let isBlind: Bool
    /// Rows on disk that cannot be read are no longer waited for.
    let passesUnreadable: Bool
    /// Rows went out before others that cannot be read.
    var passed = false
    /// Answers about records of the quarantine, which are on disk.
    var deferred: [BatchAnswer] = []
    /// Rows that were removed because all required endpoints had them.
    var removed = 0

    /// What can be done about an answer: rows that were refused go out again where there is no quarantine to put them into.
    func possible(_ how: BatchAnswer.Outcome, _ rows: [QueuedLocation]) -> BatchAnswer.Outcome {
        guard isBlind else { return how }
        switch how {
        case .accepted, .split: return how
        case .refused: return .partly(refused: [:], again: Set(rows.map(\.seq)))
        case .partly(let refused, let again): return .partly(refused: [:], again: again.union(refused.keys))
        }
    }
}
