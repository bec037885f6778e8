import Profiles
import WaypostCore

/// Goes through the rows of a file that may be damaged: in order, and around what cannot be read.
///
/// Tables lead to them as long as they can be followed; what they do not lead to is looked for page by page.
struct ReadableRows {
    /// Rows before this one were seen, or cannot be read.
    private(set) var next: Int64
    private(set) var isFinished = false
    /// Rows before `next` may be missing, because the file is damaged there.
    private(set) var hasPassedDamage = false
    /// Rows before `next` may be missing, because the medium could not read them.
    private(set) var hasFailedReads = false
    /// Numbers before `next` whose rows were not found, in order.
    private var missing: [ClosedRange<Int64>] = []
    /// Rows that no table leads to were looked for up to the last one.
    private var hasLookedBehind = false
    private let through: Int64
    /// Numbers may be left out where tables are older than the rows.
    private let looksInGaps: Bool
    private var hasFound = false
    /// Sectors that may be readable later are waited for.
    private let isPatient: Bool
    /// Rows before this one cannot be found by their tables, and are looked for page by page; nil = they can.
    private var endOfDamage: Int64?
    private var pages = SegmentPages()
    /// Rows at which the end of damage was sought.
    private var looks = 0
    /// Of these, so many are next to each other. A look takes some 10 µs, on the smallest boards twenty times as long.
    private static let singleLooks = 5000

    /// - Parameters:
    ///   - next: the first number that counts.
    ///   - through: the last one.
    ///   - looksInGaps: looks page by page for numbers that are left out between two rows.
    ///   - isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    init(from next: Int64, through: Int64 = Ledger.seqMax, looksInGaps: Bool = false, isPatient: Bool) {
        self.next = next
        self.through = through
        self.looksInGaps = looksInGaps
        self.isPatient = isPatient
    }

    mutating func finish() { isFinished = true }

    mutating func pass(to seq: Int64) { next = max(next, seq) }

    mutating func takeMissing() -> [ClosedRange<Int64>] {
        defer { missing = [] }
        return missing
    }

    private mutating func misses(_ range: Range<Int64>) {
        guard !range.isEmpty else { return }
        if let last = missing.last, last.upperBound + 1 >= range.lowerBound {
            missing[missing.count - 1] = last.lowerBound...range.upperBound - 1
        } else {
            missing.append(ClosedRange(range))
        }
    }

    /// No table leads to more rows. Where it is known that there were some, they are looked for all the same.
    private mutating func ended() {
        guard through < Ledger.seqMax, next <= through, !hasLookedBehind else { return isFinished = true }
        hasLookedBehind = true
        endOfDamage = through + 1
    }

    /// The next rows that can be read.
    mutating func read(
        _ limit: Int, of database: Database, _ names: Record.Names
    ) throws(OutboxError) -> [QueuedLocation] {
        guard next <= through else {
            isFinished = true
            return []
        }
        if endOfDamage == nil, let rows = try? stretch(of: database, names, from: next, limit) {
            let found = upToGap(rows)
            if !found.isEmpty { return found }
            if rows.isEmpty { ended() }
        }
        // The damage is somewhere in there: one by one up to it, then after it.
        var rows: [QueuedLocation] = []
        while rows.count < limit, !isFinished {
            do throws(OutboxError) {
                if let end = endOfDamage {
                    try readPages(before: end, limit, of: database, names, into: &rows)
                } else if let found = next <= through ? try stretch(of: database, names, from: next, 1) : [] {
                    rows += upToGap(found)
                    if found.isEmpty { ended() }
                } else {
                    endOfDamage = try findEndOfDamage(in: database, names)
                }
            } catch {
                if rows.isEmpty { throw error }
                return rows
            }
        }
        return rows
    }

    /// Goes on behind rows, the first of which may follow a gap.
    ///
    /// - Returns: those before a gap that has to be looked at.
    private mutating func upToGap(_ rows: [QueuedLocation]) -> [QueuedLocation] {
        for (place, row) in rows.enumerated() {
            if looksInGaps, hasFound, row.seq > next {
                endOfDamage = row.seq
                return Array(rows[..<place])
            }
            (next, hasFound) = (row.seq + 1, true)
        }
        return rows
    }

    /// Adds rows that their tables do not lead to, up to a number of rows.
    private mutating func readPages(
        before end: Int64, _ limit: Int, of database: Database, _ names: Record.Names, into rows: inout [QueuedLocation]
    ) throws(OutboxError) {
        let wanted = limit - rows.count
        let found = pages.rows(from: next, before: end, limit: wanted, of: database.connection)
        if pages.hasFailedReads {
            guard !isPatient else {
                pages = SegmentPages()
                let connection = database.connection
                throw OutboxError(failedRead: connection.medium.failedReads, path: connection.path)
            }
            hasFailedReads = true
        }
        for var stored in found {
            var row: QueuedLocation?
            do throws(OutboxError) {
                row = try database.location(of: stored, names: names)
            } catch {
                if error.mayPass(isPatient) { throw error }
                stored.loseDetails()
                if stored.isPlaced { row = stored.location(names: names) }
            }
            misses(next..<stored.seq)
            if let row, row.location.isSound { rows.append(row) } else { misses(stored.seq..<stored.seq + 1) }
            next = stored.seq + 1
        }
        guard found.count < wanted else { return }
        misses(next..<end)
        next = end
        endOfDamage = nil
    }

    /// The first row after the damage. It is sought row by row, so that what lies between two damaged pages is found; through
    /// much damage in growing steps, since nobody knows where the rows end.
    private mutating func findEndOfDamage(in database: Database, _ names: Record.Names) throws(OutboxError) -> Int64 {
        hasPassedDamage = true
        var unreadable = next
        var step: Int64 = 1
        while true {
            let (position, overflow) = unreadable.addingReportingOverflow(step)
            guard !overflow, position <= through else {
                if unreadable >= through { return through + 1 }
                if try stretch(of: database, names, from: through, 1) == nil { return through + 1 }
                return try firstReadable(of: database, names, after: unreadable, before: through)
            }
            if try stretch(of: database, names, from: position, 1) != nil {
                return try firstReadable(of: database, names, after: unreadable, before: position)
            }
            unreadable = position
            looks += 1
            if looks > Self.singleLooks, step < Ledger.seqMax { step *= 2 }
        }
    }

    private mutating func firstReadable(
        of database: Database, _ names: Record.Names, after unreadable: Int64, before readable: Int64
    ) throws(OutboxError) -> Int64 {
        var (low, high) = (unreadable, readable)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if try stretch(of: database, names, from: middle, 1) == nil { low = middle } else { high = middle }
        }
        return high
    }

    /// Rows that make sense, in order; nil when there is damage among them.
    private mutating func stretch(
        of database: Database, _ names: Record.Names, from seq: Int64, _ limit: Int
    ) throws(OutboxError) -> [QueuedLocation]? {
        do throws(OutboxError) {
            let rows = try database.rows(from: seq, through: through, feed: .engine, limit: limit, names: names)
            var last = seq - 1
            for row in rows {
                guard row.seq > last, row.seq <= through, row.location.isSound else { return nil }
                last = row.seq
            }
            return rows
        } catch {
            if error.mayPass(isPatient) { throw error }
            // A sector that cannot be read takes the card long, each time that it is asked for.
            if error.cause == .io { (looks, hasFailedReads) = (Self.singleLooks, true) }
            return nil
        }
    }
}

extension OutboxError {
    /// Whether the same file may be readable later: this says nothing about what it holds.
    ///
    /// - Parameter isPatient: what the medium cannot read is waited for.
    func mayPass(_ isPatient: Bool) -> Bool {
        if mayBeDamage { return false }
        return cause == .io ? isPatient : true
    }
}

/// What is read of a damaged file; nil where it is damaged.
///
/// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
func unlessDamaged<Value>(
    _ isPatient: Bool, _ work: () throws(OutboxError) -> Value
) throws(OutboxError) -> Value? {
    do throws(OutboxError) {
        return try work()
    } catch {
        if error.mayPass(isPatient) { throw error }
        return nil
    }
}

extension Location {
    /// Whether a receiver could have reported it: before the year 2200, on the globe.
    fileprivate var isSound: Bool {
        (0...7_258_118_400_000).contains(time.milliseconds) && abs(Int64(coordinate.latitudeE7)) <= 900_000_000
            && abs(Int64(coordinate.longitudeE7)) <= 1_800_000_000
    }
}
