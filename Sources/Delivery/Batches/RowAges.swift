import WaypostCore

/// What the ages of rows are judged by, at one moment.
package struct AgeReference: Hashable, Sendable {
    /// Boot clock.
    package var now: EventTime
    /// Boot clock when this process began: rows that an earlier one recorded are older.
    package var started: EventTime
    /// See `TrustedTime`; nil = there is none.
    package var trusted: UTCTime?

    package init(now: EventTime, started: EventTime, trusted: UTCTime? = nil) {
        self.now = now
        self.started = started
        self.trusted = trusted
    }
}

/// When rows were recorded by the boot clock of this process, in bounded memory.
///
/// Rows that follow each other share a stretch, whose time is that of the newest: a row whose time is not known exactly
/// counts as younger than it is, never as older.
package struct RecordingTimes: Sendable {
    private struct Stretch {
        var seqs: ClosedRange<Int64>
        /// nil = an earlier process recorded them.
        var at: EventTime?

        func joined(with next: Self) -> Self {
            // Once for each fix: without an array.
            let latest = if let at, let later = next.at { max(at, later) } else { at ?? next.at }
            return Self(seqs: seqs.lowerBound...next.seqs.upperBound, at: latest)
        }
    }

    private static let stretchesMax = 512
    private static let finest: Int64 = 1_000_000_000

    /// In the order of their rows.
    private var stretches: [Stretch] = []
    /// Nanoseconds whose rows share a stretch: 1 s, and more while many stretches wait.
    private var grain = finest

    /// - Parameter last: the newest row that an earlier process recorded.
    package init(earlierThrough last: Int64 = 0) {
        if last > 0 { stretches = [Stretch(seqs: 1...last)] }
    }

    /// The newest row that an earlier process recorded; nil = none.
    package var earlierThrough: Int64? { stretches.last { $0.at == nil }?.seqs.upperBound }

    /// A row after all others was recorded.
    ///
    /// - Parameters:
    ///   - at: boot clock; nil = by an earlier process.
    ///   - first: no row of the queue has a smaller number.
    package mutating func append(_ seq: Int64, at: EventTime?, first: Int64) {
        if let oldest = stretches.first, oldest.seqs.upperBound < first {
            stretches.removeAll { $0.seqs.upperBound < first }
            if stretches.isEmpty { grain = Self.finest }
        }
        let next = Stretch(seqs: seq...seq, at: at)
        guard let last = stretches.last else { return stretches.append(next) }
        guard seq > last.seqs.upperBound else { return }
        if last.seqs.upperBound == seq - 1, cell(last) == cell(next) {
            stretches[stretches.count - 1] = last.joined(with: next)
        } else {
            stretches.append(next)
            while stretches.count > Self.stretchesMax, grain < .max { coarsen() }
        }
        invariant(grain >= Self.finest, "a grain of \(grain) ns")
        invariant(stretches.last?.seqs.upperBound == seq, "\(seq) is not the newest row")
        invariant(
            stretches.count < 2
                || stretches[stretches.count - 2].seqs.upperBound < stretches[stretches.count - 1].seqs.lowerBound,
            "stretches of rows overlap")
    }

    private func cell(_ stretch: Stretch) -> Int64? { stretch.at.map { $0.nanoseconds / grain } }

    /// The first one stays, which is what an earlier process left. Later rows of one have been brought back from a damaged
    /// queue, and count as recorded then.
    private mutating func coarsen() {
        grain = grain > .max / 2 ? .max : grain * 2
        var joined: [Stretch] = []
        for stretch in stretches {
            if joined.count > 1, let last = joined.last,
                last.at == nil || stretch.at == nil || cell(last) == cell(stretch)
            {
                joined[joined.count - 1] = last.joined(with: stretch)
            } else {
                joined.append(stretch)
            }
        }
        stretches = joined
    }

    fileprivate func isAnyOlder(from seq: Int64, than instant: EventTime, started: EventTime) -> Bool {
        stretches.contains { $0.seqs.upperBound >= seq && ($0.at ?? started) < instant }
    }

    /// nil = by an earlier process. A row that is not known is as young as can be.
    package subscript(seq: Int64) -> EventTime? {
        var (low, high) = (0, stretches.count)
        while low < high {
            let middle = low + (high - low) / 2
            if stretches[middle].seqs.upperBound < seq { low = middle + 1 } else { high = middle }
        }
        guard low < stretches.count, stretches[low].seqs.contains(seq) else { return EventTime(nanoseconds: .max) }
        return stretches[low].at
    }
}

/// How old rows are: by the boot clock where this process recorded them, else by `TrustedTime`.
///
/// The date of the GNSS receiver is not used: it may be wrong for a minute or for years.
package struct RowAges: Sendable {
    /// Milliseconds that a clock may be ahead of the trusted time, and still have given the date of a row.
    private static let tolerance = UTCTime.millisecondsPerDay

    private let reference: AgeReference
    private let recorded: RecordingTimes

    package init(_ reference: AgeReference, _ recorded: RecordingTimes) {
        self.reference = reference
        self.recorded = recorded
    }

    /// - Parameters:
    ///   - time: of the location, Unix milliseconds.
    ///   - receivedMs: host wall clock at receipt, Unix milliseconds; nil = unknown.
    package func isOlder(seq: Int64, time: Int64, receivedMs: Int64?, than age: Duration) -> Bool {
        let at = recorded[seq]
        if reference.now.duration(since: at ?? reference.started) > age { return true }
        guard at == nil, let oldest = oldestMs(age), let trusted = reference.trusted else { return false }
        // Either date may have been wrong when the row was recorded: the younger one counts, unless it is in the future.
        let (ahead, overflow) = (receivedMs ?? time).subtractingReportingOverflow(trusted.milliseconds)
        let isPlausible = !overflow && ahead <= Self.tolerance
        return max(time, isPlausible ? receivedMs ?? time : time) < oldest
    }

    /// Whether a row from this one on is older by the boot clock, if none was removed.
    package func isAnyOlder(from seq: Int64, than age: Duration) -> Bool {
        recorded.isAnyOlder(from: seq, than: reference.now - age, started: reference.started)
    }

    /// Rows whose age only dates can show: those through this one are older if both their dates are before this time in
    /// Unix milliseconds. nil = no date shows it.
    package func dated(than age: Duration) -> (before: Int64, through: Int64)? {
        guard let through = recorded.earlierThrough, let before = oldestMs(age) else { return nil }
        return (before, through)
    }

    private func oldestMs(_ age: Duration) -> Int64? {
        guard let trusted = reference.trusted else { return nil }
        let (oldest, overflow) = trusted.milliseconds.subtractingReportingOverflow(age.milliseconds)
        return overflow ? nil : oldest
    }
}
