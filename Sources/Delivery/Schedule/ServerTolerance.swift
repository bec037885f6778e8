/// What the server is known to refuse about requests as such.
struct ServerTolerance: Sendable {
    /// Maximum rows of a batch, never more than the setting.
    private(set) var maxRows: Int
    /// Off once the server has refused compressed bodies.
    private(set) var gzip: Bool
    /// Whether the body of the last attempt was compressed.
    var wasCompressed = true
    private var hasRepeated417 = false

    init(_ settings: EndpointSettings) {
        maxRows = max(1, settings.batchSize)
        gzip = settings.gzip
    }

    /// What was learnt about the server no longer counts.
    mutating func reset(batchSize: Int, gzip: Bool) {
        maxRows = max(1, batchSize)
        self.gzip = gzip
    }

    mutating func accepted(rows: Int, batchSize: Int) {
        hasRepeated417 = false
        maxRows = max(maxRows, min(rows, batchSize))
    }

    mutating func refusedAsTooLarge(rows: Int) { maxRows = min(maxRows, (rows + 1) / 2) }

    /// - Returns: whether the same batch may be accepted without compression.
    mutating func refusedEncoding() -> Bool {
        guard gzip, wasCompressed else { return false }
        gzip = false
        return true
    }

    /// We send no Expect, but a proxy in between may have.
    ///
    /// - Returns: whether the same request is worth another attempt.
    mutating func refusedExpectation() -> Bool {
        defer { hasRepeated417 = true }
        return !hasRepeated417
    }
}
