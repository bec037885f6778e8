import Profiles

/// What a commit can and cannot do while the disk refuses.
struct MemoryRules {
    /// Why it refuses.
    let refusal: OutboxError
    /// Of the batches that are formed meanwhile.
    let generation: Int
    /// It is not known what the disk holds.
    let isBlind: Bool
    /// Rows on disk that cannot be read are no longer waited for.
    let passesUnreadable: Bool
    /// Rows went out before others that cannot be read.
    var passed = false
    /// Answers about records of the quarantine, which are on disk.
    var deferred: [BatchAnswer] = []
    /// Rows that were removed because all required endpoints had them.
    var removed = 0
}
