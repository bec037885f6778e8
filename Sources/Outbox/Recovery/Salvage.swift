import Delivery
import Positioning

/// How far the rows of damaged copies have been brought back. It is stored in the new queue.
struct SalvagePlan: Equatable {
    struct Part: Equatable {
        var copy: Int64
        /// Rows before this one were seen.
        var next: Int64
        /// The last row to bring back; later ones were never acknowledged and are recorded again.
        var through: Int64
    }

    /// The copy that is being read, then those that wait.
    var parts: [Part] = []

    var copies: Set<Int64> { Set(parts.map(\.copy)) }

    var bytes: [UInt8] {
        Array(parts.map { "\($0.copy) \($0.next) \($0.through)" }.joined(separator: "\n").utf8)
    }

    init(parts: [Part] = []) { self.parts = parts }

    /// With the parts of other copies, which were set aside since.
    func adding(_ later: SalvagePlan) -> SalvagePlan {
        SalvagePlan(parts: parts + later.parts.filter { part in !parts.contains { $0.copy == part.copy } })
    }

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

/// A row of a damaged copy, with the names of the endpoints that have had it.
struct SalvagedRow {
    var row: QueuedLocation
    var finishedFor: [String] = []
}

/// Reads what can be read of a damaged copy, row by row around what cannot.
final class Salvage {
    private let database: Database
    private let names: Record.Names
    /// The endpoints as they were; nil where that cannot be read.
    private let before: [Ledger.Endpoint]?
    private let through: Int64
    private(set) var next: Int64
    private(set) var isFinished = false
    /// Rows at which the end of damage was sought.
    private var looks = 0
    /// Of these, so many are next to each other. A look takes some 10 µs, on the smallest boards twenty times as long.
    private static let singleLooks = 5000
    /// Sectors that may be readable later are waited for.
    private let isPatient: Bool

    /// nil when nothing at all can be read.
    ///
    /// - Parameters:
    ///   - before: the endpoints when the file was set aside; nil = as the copy has them.
    ///   - isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    init?(
        path: String, part: SalvagePlan.Part, before: [Ledger.Endpoint]?, isPatient: Bool = false,
        medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        self.isPatient = isPatient
        do throws(OutboxError) {
            let connection = try Connection(path: path, access: .readWrite, medium: medium)
            if Int(try connection.integer("PRAGMA user_version")) < Schema.migrations.count {
                try? Schema.migrate(connection)
            }
            database = try Database(damaged: connection)
        } catch {
            // Where no room is left for what SQLite needs beside it, an intact file cannot be opened.
            let lacksRoom = (medium.space(of: path)?.available ?? .max) < 1 << 20
            if error.cause == .cannotOpen, medium.exists(path), isPatient || lacksRoom { throw error }
            if error.mayPass(isPatient) { throw error }
            return nil
        }
        let database = database
        func read<Value>(
            _ work: (Database) throws(OutboxError) -> Value
        ) throws(OutboxError) -> Value? {
            do throws(OutboxError) {
                return try work(database)
            } catch {
                if error.mayPass(isPatient) { throw error }
                return nil
            }
        }
        names = try read { (database) throws(OutboxError) in try database.names() } ?? Record.Names()
        self.before =
            if let before { before } else {
                try read { (database) throws(OutboxError) in try Self.endpoints(of: database, isPatient: isPatient)
                } ?? nil
            }
        through = part.through
        next = part.next
    }

    /// Rows of a batch may not have been accepted: the cursor is before the first batch, and none of their rows is ahead.
    private static func endpoints(of database: Database, isPatient: Bool) throws(OutboxError) -> [Ledger.Endpoint]? {
        var endpoints = try database.knownEndpoints().filter { $0.removedAt == nil && !$0.isSpare }
        for index in endpoints.indices {
            let id = endpoints[index].id
            func bound(_ function: String) throws(OutboxError) -> Int64? {
                try database.connection.optionalInteger(
                    "SELECT \(function) FROM batch WHERE endpoint = \(id) AND origin = 0")
            }
            endpoints[index].ahead = try ahead(of: id, in: database, isPatient: isPatient)
            if let first = try bound("min(first)"), let last = try bound("max(last)") {
                guard first > 0 else { return nil }
                endpoints[index].formed = min(endpoints[index].formed, first - 1)
                endpoints[index].ahead = endpoints[index].ahead.without(first...max(first, last))
            }
            guard endpoints[index].formed <= Ledger.seqMax else { return nil }
        }
        return endpoints.isEmpty ? nil : endpoints
    }

    private static func ahead(
        of endpoint: Int64, in database: Database, isPatient: Bool
    ) throws(OutboxError) -> SequenceRanges {
        do throws(OutboxError) {
            return try database.ahead(of: endpoint)
        } catch {
            if error.mayPass(isPatient) { throw error }
            return SequenceRanges()
        }
    }

    /// The next rows that an endpoint still needs.
    ///
    /// - Parameter endpoints: the configured ones. One that the copy does not know begins with new rows.
    func rows(
        _ limit: Int, for endpoints: [EndpointSettings]
    ) throws(OutboxError) -> [SalvagedRow] {
        // One that stands in for another has no rows of its own.
        let endpoints = endpoints.filter { $0.backupFor == nil }
        guard let before, !endpoints.isEmpty else { return try read(limit).map { SalvagedRow(row: $0) } }
        func earlier(_ settings: EndpointSettings) -> Ledger.Endpoint? {
            before.first { $0.settings.name == settings.name && $0.removedAt == nil && !$0.isSpare }
        }
        let required = endpoints.filter(\.required)
        let needed = (required.isEmpty ? endpoints : required).compactMap(earlier).map(\.ackedThrough).min()
        guard let needed else {
            isFinished = true
            return []
        }
        next = max(next, needed + 1)
        var found: [SalvagedRow] = []
        for row in try read(limit) {
            let had = endpoints.filter { earlier($0)?.hasHad(row.seq) ?? true }
            if had.count < endpoints.count { found.append(SalvagedRow(row: row, finishedFor: had.map(\.name))) }
        }
        return found
    }

    private func read(_ limit: Int) throws(OutboxError) -> [QueuedLocation] {
        guard next <= through else {
            isFinished = true
            return []
        }
        if let rows = try? stretch(from: next, limit) {
            if rows.isEmpty { isFinished = true }
            if let last = rows.last { next = last.seq + 1 }
            return rows
        }
        // The damage is somewhere in there: one by one up to it, then after it.
        var rows: [QueuedLocation] = []
        while rows.count < limit, next <= through {
            let found: [QueuedLocation]?
            do throws(OutboxError) {
                found = try stretch(from: next, 1)
                if found == nil { try skipDamage() }
            } catch {
                if rows.isEmpty { throw error }
                return rows
            }
            guard let found else { return rows }
            guard let row = found.first else {
                isFinished = true
                return rows
            }
            rows.append(row)
            next = row.seq + 1
        }
        return rows
    }

    /// Moves on to the first row after the damage. It is sought row by row, so that what lies between two damaged pages is
    /// found; through much damage in growing steps, which may miss some of that, since nobody knows where the rows end.
    private func skipDamage() throws(OutboxError) {
        var unreadable = next
        var step: Int64 = 1
        while true {
            let (position, overflow) = unreadable.addingReportingOverflow(step)
            guard !overflow, position <= through else {
                if unreadable >= through { return isFinished = true }
                if try stretch(from: through, 1) == nil { return isFinished = true }
                return next = try firstReadable(after: unreadable, before: through)
            }
            if try stretch(from: position, 1) != nil {
                return next = try firstReadable(after: unreadable, before: position)
            }
            unreadable = position
            looks += 1
            if looks > Self.singleLooks, step < Ledger.seqMax { step *= 2 }
        }
    }

    private func firstReadable(after unreadable: Int64, before readable: Int64) throws(OutboxError) -> Int64 {
        var (low, high) = (unreadable, readable)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if try stretch(from: middle, 1) == nil { low = middle } else { high = middle }
        }
        return high
    }

    /// Rows that make sense, in order; nil when there is damage among them.
    private func stretch(from seq: Int64, _ limit: Int) throws(OutboxError) -> [QueuedLocation]? {
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
            if error.cause == .io { looks = Self.singleLooks }
            return nil
        }
    }
}

extension OutboxError {
    /// Whether the same file may be readable later. What stays unreadable for long is damage.
    fileprivate func mayPass(_ isPatient: Bool) -> Bool {
        switch cause {
        case .io: isPatient
        case .full, .locked: true
        default: false
        }
    }
}

extension Location {
    /// Whether a receiver could have reported it: before the year 2200, on the globe.
    fileprivate var isSound: Bool {
        (0...7_258_118_400_000).contains(time.milliseconds) && abs(Int64(coordinate.latitudeE7)) <= 900_000_000
            && abs(Int64(coordinate.longitudeE7)) <= 1_800_000_000
    }
}
