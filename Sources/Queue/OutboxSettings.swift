/// Where the queue lives and how much it keeps.
package struct OutboxSettings: Hashable, Sendable {
    /// What gives way when the queue is full.
    package enum OnFull: String, Hashable, Sendable, CaseIterable {
        /// The oldest plain fixes.
        case dropOldest = "drop_oldest"
        /// The newest plain fixes: what is there stays.
        case dropNewest = "drop_newest"
        /// Detail before age: fixes between others, the oldest first, within a growing bound.
        case thin
    }

    /// The database file; `-wal`, `-shm` and `-lock` are beside it. Its directory must exist.
    package var path: String
    /// Most rows that are kept. The default is nil: no such limit.
    package var maxRecords: Int?
    /// Plain fixes older than this go, by `Commit.ages`. The default is 30 days, nil is no limit.
    package var maxAge: Duration?
    /// Most bytes of live pages and log; what is above removes rows as `onFull` says. The default is 256 MiB, nil is no
    /// limit.
    package var maxBytes: Int64?
    /// While the file system has less free than this, and less than a quarter of its size, the file does not grow beyond
    /// what it is, or 256 KiB. The default is 64 MiB, nil is no limit.
    package var minFree: Int64?
    /// The default is `dropOldest`.
    package var onFull: OnFull
    /// Metres by which the recorded track may be off as it is; `thin` doubles it again and again. The default is 5 m.
    package var bound: Double

    package init(
        path: String, maxRecords: Int? = nil, maxAge: Duration? = .seconds(30 * 86_400), maxBytes: Int64? = 256 << 20,
        minFree: Int64? = 64 << 20, onFull: OnFull = .dropOldest, bound: Double = 5
    ) {
        self.path = path
        self.maxRecords = maxRecords
        self.maxAge = maxAge
        self.maxBytes = maxBytes
        self.minFree = minFree
        self.onFull = onFull
        self.bound = bound
    }
}
