import Delivery
import Positioning

/// How far the rows of damaged copies have been brought back. It is kept in the new queue.
struct SalvagePlan: Equatable {
    struct Part: Equatable {
        var copy: Int64
        /// Rows before this one were seen.
        var next: Int64
        /// The last row to bring back; later ones were never acknowledged and are handed in again.
        var through: Int64
    }

    /// The copy that is being read, then those that wait.
    var parts: [Part] = []

    var bytes: [UInt8] {
        Array(parts.map { "\($0.copy) \($0.next) \($0.through)" }.joined(separator: "\n").utf8)
    }

    init(parts: [Part] = []) { self.parts = parts }

    init(bytes: [UInt8]) {
        parts = bytes.split(separator: UInt8(ascii: "\n")).prefix(8).compactMap { line in
            let numbers = line.split(separator: UInt8(ascii: " ")).compactMap {
                Int64(String(decoding: $0, as: UTF8.self))
            }
            guard numbers.count == 3, numbers.allSatisfy({ (0...Ledger.seqMax).contains($0) }) else { return nil }
            return Part(copy: numbers[0], next: numbers[1], through: numbers[2])
        }
    }
}

/// Reads what can be read of a damaged copy, row by row around what cannot.
final class Salvage {
    private let database: Database
    private let names: Record.Names
    /// What each endpoint had already; nil where that cannot be read.
    private let acked: [String: Int64]?
    private let through: Int64
    private(set) var next: Int64
    private(set) var isFinished = false

    /// nil when nothing at all can be read.
    init?(path: String, part: SalvagePlan.Part, medium: any QueueMedium = SystemMedium()) {
        do throws(OutboxError) {
            let connection = try Connection(path: path, access: .readWrite, medium: medium)
            if Int(try connection.integer("PRAGMA user_version")) < Schema.migrations.count {
                try? Schema.migrate(connection)
            }
            database = try Database(damaged: connection)
        } catch {
            return nil
        }
        names = (try? database.names()) ?? Record.Names()
        acked = Self.cursors(of: database)
        through = part.through
        next = part.next
    }

    private static func cursors(of database: Database) -> [String: Int64]? {
        do throws(OutboxError) {
            let select = try database.connection.prepare(
                """
                SELECT name, min(formed, coalesce(
                    (SELECT min(first) - 1 FROM batch WHERE endpoint = endpoint.id AND origin = 0), formed))
                FROM endpoint WHERE removed_at IS NULL AND spare = 0
                """)
            var acked: [String: Int64] = [:]
            while try select.step() {
                guard let seq = select.optionalInteger(1), (0...Ledger.seqMax).contains(seq) else { return nil }
                acked[select.text(0)] = seq
            }
            return acked.isEmpty ? nil : acked
        } catch {
            return nil
        }
    }

    /// The next rows that somebody still needs, with the names of those who have them already.
    ///
    /// - Parameter endpoints: the configured ones. One that the copy does not know begins with new rows.
    func rows(_ limit: Int, for endpoints: [EndpointSettings]) -> [(row: QueuedLocation, settledFor: [String])] {
        // One that stands in for another has no rows of its own.
        let endpoints = endpoints.filter { $0.backupFor == nil }
        guard let acked, !endpoints.isEmpty else { return read(limit).map { ($0, []) } }
        let required = endpoints.filter(\.required)
        let needed = (required.isEmpty ? endpoints : required).map { acked[$0.name] ?? Ledger.seqMax }.min() ?? 0
        if needed >= Ledger.seqMax {
            isFinished = true
            return []
        }
        next = max(next, needed + 1)
        return read(limit).map { row in
            (row, endpoints.map(\.name).filter { acked[$0] ?? Ledger.seqMax >= row.seq })
        }
    }

    private func read(_ limit: Int) -> [QueuedLocation] {
        guard next <= through else {
            isFinished = true
            return []
        }
        if let rows = stretch(from: next, limit) {
            if rows.isEmpty { isFinished = true }
            if let last = rows.last { next = last.seq + 1 }
            return rows
        }
        // Somewhere in there is the damage: one by one up to it, then behind it.
        var rows: [QueuedLocation] = []
        while rows.count < limit, next <= through {
            guard let found = stretch(from: next, 1) else {
                skipDamage()
                return rows
            }
            guard let row = found.first else {
                isFinished = true
                return rows
            }
            rows.append(row)
            next = row.seq + 1
        }
        return rows
    }

    /// Moves on to the first row behind the damage.
    private func skipDamage() {
        var unreadable = next
        var step: Int64 = 1
        while true {
            let (position, overflow) = unreadable.addingReportingOverflow(step)
            guard !overflow, position <= through else {
                if unreadable >= through { return isFinished = true }
                if stretch(from: through, 1) == nil { return isFinished = true }
                return next = firstReadable(after: unreadable, before: through)
            }
            if stretch(from: position, 1) != nil { return next = firstReadable(after: unreadable, before: position) }
            unreadable = position
            step = step < Ledger.seqMax ? step * 2 : step
        }
    }

    private func firstReadable(after unreadable: Int64, before readable: Int64) -> Int64 {
        var (low, high) = (unreadable, readable)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if stretch(from: middle, 1) == nil { low = middle } else { high = middle }
        }
        return high
    }

    /// Rows that make sense, in order; nil when there is damage among them.
    private func stretch(from seq: Int64, _ limit: Int) -> [QueuedLocation]? {
        do throws(OutboxError) {
            let rows = try database.rows(from: seq, through: through, feed: .engine, limit: limit, names: names)
            var last = seq - 1
            for row in rows {
                guard row.seq > last, row.seq <= through, row.location.isSound else { return nil }
                last = row.seq
            }
            return rows
        } catch {
            return nil
        }
    }
}

extension Location {
    /// Whether a receiver could have told it: before the year 2200, on the globe.
    fileprivate var isSound: Bool {
        (0...7_258_118_400_000).contains(time.milliseconds) && abs(Int64(coordinate.latitudeE7)) <= 900_000_000
            && abs(Int64(coordinate.longitudeE7)) <= 1_800_000_000
    }
}

extension Transaction {
    /// Appends rows of a copy under new numbers, as of their old times and boots, and notes how far it got.
    /// - Parameter now: boot clock.
    /// - Returns: rows that are older than the one before them.
    mutating func bringBack(
        _ found: [(row: QueuedLocation, settledFor: [String])], after lastTime: inout Int64, plan: SalvagePlan,
        at now: EventTime?
    ) throws(OutboxError) -> Int {
        try whole { (self) throws(OutboxError) in
            var inversions = 0
            for (row, settledFor) in found {
                // One of this boot may be of this process, and is as young as can be.
                var new = NewRow(
                    row.location, receivedMs: row.receivedMs, recordedAt: row.bootID == self.life.bootID ? now : nil)
                new.settledFor = settledFor
                try self.append([new], boot: row.bootID)
                if row.location.time.milliseconds < lastTime { inversions += 1 }
                lastTime = row.location.time.milliseconds
            }
            try self.database.store(.salvage, plan.bytes)
            if self.ledger.lastSeq - self.ledger.mark >= Ledger.countInterval { try self.writeCounts() }
            try self.findOldest()
            return inversions
        }
    }
}
