/// Where the queue lives and how much it keeps.
public struct OutboxSettings: Hashable, Sendable {
    /// The database file; `-wal`, `-shm` and `-lock` stand beside it. Its directory must exist.
    public var path: String
    /// Most rows that are kept; more remove the oldest plain fixes first. The default is nil: no such limit.
    public var maxRecords: Int?
    /// Most bytes of live pages; more remove rows as above. The default is 256 MiB, nil is no limit.
    public var maxBytes: Int64?

    public init(path: String, maxRecords: Int? = nil, maxBytes: Int64? = 256 << 20) {
        self.path = path
        self.maxRecords = maxRecords
        self.maxBytes = maxBytes
    }
}
