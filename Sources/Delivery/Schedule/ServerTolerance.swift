import Profiles
import WaypostCore

/// What the server is known to refuse about requests as such.
struct ServerTolerance: Sendable {
    private(set) var size: SizeTolerance
    /// Maximum rows that it is believed to answer in time; it grows again.
    private(set) var rowsInTime: Int
    /// That is because the link takes too long to carry larger ones.
    private(set) var isLinkSlow = false
    var compression: Compression
    private var hasRepeated417 = false

    init(_ settings: EndpointSettings) {
        rowsInTime = max(1, settings.batchSize)
        size = SizeTolerance(most: rowsInTime)
        compression = Compression(isWanted: settings.gzip)
    }

    var maxRows: Int { min(size.rows, rowsInTime) }

    /// - Parameter took: from the start of the attempt to the answer.
    mutating func accepted(rows: Int, took: Duration, _ settings: EndpointSettings) {
        hasRepeated417 = false
        size.accepted(rows: rows)
        let isQuick = took.nanoseconds < settings.timeout.nanoseconds / 4
        rowsInTime = max(rowsInTime, min(isQuick ? rows * 2 : rows, max(1, settings.batchSize)))
        if rowsInTime >= settings.batchSize { isLinkSlow = false }
    }

    mutating func refusedAsTooLarge(rows: Int, status: Int) {
        if rows > 1 { size.refused(rows: rows, status: status) } else { size.refusedAlone() }
    }

    /// What it refused was not too large.
    mutating func refusesAtRandom(_ settings: EndpointSettings) {
        size = SizeTolerance(most: max(1, settings.batchSize))
    }

    /// It did not answer to a batch of this size in time, and to a smaller one it did.
    mutating func wasTooSlow(rows: Int) { rowsInTime = min(rowsInTime, (rows + 1) / 2) }

    /// A batch of this size did not get through to the server.
    mutating func linkWasTooSlow(rows: Int) {
        wasTooSlow(rows: rows)
        isLinkSlow = true
    }

    /// We send no Expect, but a proxy in between may have.
    ///
    /// - Returns: whether the same request is worth another attempt.
    mutating func refusedExpectation() -> Bool {
        defer { hasRepeated417 = true }
        return !hasRepeated417
    }
}
