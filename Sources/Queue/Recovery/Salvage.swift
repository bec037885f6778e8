import Profiles
import WaypostCore

extension Location {
    /// Stands for rows that are lost: without what belongs to one of them.
    fileprivate mutating func becomeGap(reason: String) {
        event = .gap
        self.reason = reason
        (geofence, trip, network, settings) = (nil, nil, nil, nil)
    }
}

extension Database {
    /// Of a damaged file: whether all rows of a small table are there, as they were written.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    func isSound(_ table: Schema.Summed, isPatient: Bool) throws(OutboxError) -> Bool {
        try unlessDamaged(isPatient) { () throws(OutboxError) in
            try table.isSound(in: connection)
        } ?? false
    }
}

/// A row of a damaged copy, with the names of the endpoints that have had it.
struct SalvagedRow {
    var row: QueuedLocation
    var finishedFor: [String] = []
}

/// Reads what can be read of a damaged copy, for the endpoints that still need it.
final class Salvage {
    private let database: Database
    private let names: Record.Names
    /// The endpoints as they were; nil where that cannot be read.
    private let before: [Ledger.Endpoint]?
    /// `before` has all that the copy knew. Of one that is missing nothing is known, and it needs all rows.
    private let hasAllEndpoints: Bool
    private var readable: ReadableRows

    /// Rows before this one were seen, or cannot be read.
    var next: Int64 { readable.next }
    var isFinished: Bool { readable.isFinished }

    /// nil when nothing at all can be read.
    ///
    /// - Parameters:
    ///   - before: the endpoints when the file was set aside, without the batches that the new queue has; nil = as the copy has
    ///     them.
    ///   - kept: those batches.
    ///   - isDamaged: it is no sound queue that another program had put in the place of this one.
    ///   - isPatient: throws what the medium cannot read just now; otherwise that counts as damage.
    init?(
        path: String, part: SalvagePlan.Part, before: [Ledger.Endpoint]?, kept: Set<SalvagePlan.Kept> = [],
        isDamaged: Bool, isPatient: Bool = false,
        medium: any QueueMedium = SystemMedium()
    ) throws(OutboxError) {
        readable = ReadableRows(
            from: part.next, through: part.through, looksInGaps: isDamaged, isPatient: isPatient)
        do throws(OutboxError) {
            let connection = try Connection(damaged: path, isPatient: isPatient, medium: medium)
            _ = try unlessDamaged(isPatient) { () throws(OutboxError) in
                // Where the log ends early there may be no tables yet: what follows in it must not be overwritten.
                let version = Int(try connection.integer("PRAGMA user_version"))
                guard (Schema.firstVersion..<Schema.version()).contains(version) else { return }
                try Schema.migrate(connection)
                try connection.hideUnsoundRows(isPatient: isPatient)
            }
            database = try Database(damaged: connection)
        } catch {
            // Without room for what SQLite needs beside it, an intact file cannot be opened either.
            if error.mayPass(isPatient), medium.exists(path) { throw error }
            return nil
        }
        let database = database
        names = try database.readableNames(isPatient: isPatient)
        self.before =
            if let before { before } else {
                try unlessDamaged(isPatient) { () throws(OutboxError) in
                    try Self.endpoints(
                        of: database, but: kept.filter { $0.copy == part.copy }, isPatient: isPatient)
                } ?? nil
            }
        hasAllEndpoints = before != nil ? true : try database.isSound(.endpoint, isPatient: isPatient)
    }

    /// Rows of a batch may not have been accepted: the cursor is before the first batch, and none of their rows is ahead.
    private static func endpoints(
        of database: Database, but kept: Set<SalvagePlan.Kept>, isPatient: Bool
    ) throws(OutboxError) -> [Ledger.Endpoint]? {
        // Without one of its rows, what an endpoint has had cannot be told from what was on its way.
        for table in [Schema.Summed.batch, .ahead] {
            guard try database.isSound(table, isPatient: isPatient) else { return nil }
        }
        var endpoints = try database.knownEndpoints().filter { $0.removedAt == nil && !$0.isSpare }
        for index in endpoints.indices {
            let id = endpoints[index].id
            let keptFirsts = Set(kept.filter { $0.endpoint == id }.map(\.first))
            let firsts = keptFirsts.map { "\($0)" }.joined(separator: ", ")
            func bound(_ function: String) throws(OutboxError) -> Int64? {
                try database.connection.optionalInteger(
                    "SELECT \(function) FROM batch WHERE endpoint = \(id) AND origin = 0 AND first NOT IN (\(firsts))")
            }
            endpoints[index].ahead = try ahead(of: id, in: database, isPatient: isPatient)
            // The cursor is written later than the batches that it has passed.
            let batches = keptFirsts.isEmpty ? [] : try database.batchRows(of: id)
            let mine = batches.filter { $0.origin == .queue && keptFirsts.contains($0.first) }
            endpoints[index].formed = mine.reduce(endpoints[index].formed) { max($0, $1.through) }
            if let first = try bound("min(first)"), let last = try bound("max(last)") {
                guard first > 0 else { return nil }
                endpoints[index].formed = min(endpoints[index].formed, first - 1)
                endpoints[index].ahead = endpoints[index].ahead.without(first...max(first, last))
            }
            for batch in mine {
                endpoints[index].ahead.formUnion(batch.picked?.map { $0...$0 } ?? [batch.first...batch.last])
            }
            guard endpoints[index].formed <= Ledger.seqMax else { return nil }
        }
        return endpoints.isEmpty ? nil : endpoints
    }

    private static func ahead(
        of endpoint: Int64, in database: Database, isPatient: Bool
    ) throws(OutboxError) -> SequenceRanges {
        try unlessDamaged(isPatient) { () throws(OutboxError) in try database.ahead(of: endpoint) } ?? SequenceRanges()
    }

    /// Numbers that were passed since the last call, and whose rows were not found.
    func takeMissing() -> [ClosedRange<Int64>] { readable.takeMissing() }

    /// Records of its quarantine, which stays in it; nil where that cannot be read.
    var quarantined: Int64? { try? database.connection.integer("SELECT count(*) FROM quarantine") }

    /// The row next to some that are lost, as a gap; nil where none can be read.
    func gap(of lost: ClosedRange<Int64>, for endpoints: [EndpointSettings]) -> SalvagedRow? {
        let rows = database.rows
        let before = (try? rows.newest(RowRange(0, lost.lowerBound - 1), limit: 1)) ?? []
        let after = before.isEmpty ? (try? rows.rows(RowRange(lost.upperBound + 1, .max), limit: 1)) ?? [] : []
        guard let stored = before.first ?? after.first else { return nil }
        var row = stored.location(names: names)
        row.location.becomeGap(reason: SalvagePlan.lostReason)
        let had = endpoints.filter { $0.backupFor == nil && earlier($0)?.hasHad(lost.lowerBound) == true }
        return SalvagedRow(row: row, finishedFor: had.map(\.name))
    }

    private func earlier(_ settings: EndpointSettings) -> Ledger.Endpoint? {
        before?.first { $0.settings.name == settings.name && $0.removedAt == nil && !$0.isSpare }
    }

    /// The next rows that an endpoint still needs.
    ///
    /// - Parameter endpoints: the configured ones. One that the copy does not know begins with new rows.
    func rows(
        _ limit: Int, for endpoints: [EndpointSettings]
    ) throws(OutboxError) -> [SalvagedRow] {
        // One that stands in for another has no rows of its own.
        let endpoints = endpoints.filter { $0.backupFor == nil }
        guard before != nil, !endpoints.isEmpty else {
            return try readable.read(limit, of: database, names).map { SalvagedRow(row: $0) }
        }
        // Optional endpoints as well: only a queue that is short of room drops what they alone wait for, and counts it.
        let known = endpoints.compactMap(earlier)
        if hasAllEndpoints || known.count == endpoints.count {
            guard let needed = known.map(\.ackedThrough).min() else {
                readable.finish()
                return []
            }
            readable.pass(to: needed + 1)
        }
        var found: [SalvagedRow] = []
        for row in try readable.read(limit, of: database, names) {
            let had = endpoints.filter { earlier($0)?.hasHad(row.seq) ?? hasAllEndpoints }
            if had.count < endpoints.count { found.append(SalvagedRow(row: row, finishedFor: had.map(\.name))) }
        }
        return found
    }
}
