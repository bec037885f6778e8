import Profiles
import WaypostCore

/// The queue while the disk refuses: rows that came since, above those on disk, as far as these can still be read.
///
/// It is an ordinary queue in a database of SQLite in memory, of a bounded number of rows. Numbers, batches and ids go on as
/// on disk, so that the disk can store what became of them.
final class MemoryQueue {
    let database: Database
    let below: RowsOnDisk
    let settings: OutboxSettings
    /// Rows on disk when it began to refuse.
    private(set) var rowsOnDisk: Int
    /// Why the disk refuses, as of its last answer.
    var refusal: OutboxError
    /// Answers about records of the quarantine, which the disk does not know yet.
    var deferred: [BatchAnswer] = []
    /// What the disk holds is not known.
    let isBlind: Bool
    /// Some rows on disk could not be read when those that wait were counted, so that more may be counted than there are.
    private(set) var isMiscounted = false
    /// What was to be brought back when the disk began to refuse: a commit that brought rows back may have been stored
    /// although it failed, and they leave again. nil = the disk knows.
    var plan: SalvagePlan?
    /// The queue on disk that was to get the rows, and its last number before that: the try failed, or seemed to.
    var found: (uuid: [UInt8], lastSeq: Int64)?
    /// Damaged files that were set aside since, by the numbers of their copies.
    var copies: Set<Int64> = []

    /// Most rows: about 2 MB.
    static let rowsMax = 10_000
    /// From this many rows on, a full disk gives up older ones.
    private static let crowd = 5000

    /// - Parameters:
    ///   - last: the last row on disk as of the last commit that it stored.
    ///   - hasNoOtherWriter: no other process writes the file.
    ///   - kept: has the files open whose names lead elsewhere.
    init(
        _ settings: OutboxSettings, after last: Int64, rowsOnDisk: Int = 0, isBlind: Bool = false,
        hasNoOtherWriter: Bool, held: HeldQueue, kept: Database? = nil, medium: any QueueMedium, _ refusal: OutboxError
    ) throws(OutboxError) {
        below = RowsOnDisk(
            path: settings.path, last: last, hasNoOtherWriter: hasNoOtherWriter, held: held, kept: kept, medium: medium)
        database = try Database(inMemoryFor: settings.path, above: below)
        self.rowsOnDisk = rowsOnDisk
        self.isBlind = isBlind
        self.refusal = refusal
        var settings = settings
        settings.maxRecords = min(settings.maxRecords ?? .max, Self.rowsMax)
        settings.maxBytes = nil
        settings.minFree = nil
        self.settings = settings
    }

    /// Of a disk that has refused from the start.
    struct Start {
        var queue: MemoryQueue
        var opened: Database.Opened
        var inFlight: [Batch]

        /// - Parameter newUUID: names the queue where it is not known what the disk holds.
        init(
            _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], hasNoOtherWriter: Bool,
            held: HeldQueue, medium: any QueueMedium, processRun: inout ProcessRun, _ refusal: OutboxError
        ) throws(OutboxError) {
            if let known = try? Start(
                reading: settings, endpoints: endpoints, hasNoOtherWriter: hasNoOtherWriter, held: held, medium: medium,
                processRun: &processRun, refusal)
            {
                self = known
                return
            }
            processRun.beginInMemory(isStart: true, above: 0)
            queue = try MemoryQueue(
                settings, after: 0, isBlind: true, hasNoOtherWriter: hasNoOtherWriter, held: held, medium: medium,
                refusal)
            opened = try queue.database.load(endpoints: endpoints, newUUID: newUUID)
            inFlight = []
        }

        private init(
            reading settings: OutboxSettings, endpoints: [EndpointSettings], hasNoOtherWriter: Bool, held: HeldQueue,
            medium: any QueueMedium, processRun: inout ProcessRun, _ refusal: OutboxError
        ) throws(OutboxError) {
            let isFlushed = (try? QueueFiles(path: settings.path, medium: medium).dropFromPageCache(.unknown)) != nil
            held.noteDatabase()
            let disk = try Database(
                reading: Connection(
                    path: settings.path, access: hasNoOtherWriter ? .readOnlyAlone : .readOnly, medium: medium))
            guard let uuid = try disk.blob(.uuid), uuid.count == 16 else {
                throw OutboxError(.cannotOpen, path: settings.path, message: "it has no name yet")
            }
            let names = try disk.names()
            queue = try MemoryQueue(
                settings, after: try disk.lastSeq(), hasNoOtherWriter: hasNoOtherWriter, held: held, medium: medium,
                refusal)
            let database = queue.database
            for table in ["state", "endpoint", "batch", "ahead"] { try database.copy(table, from: disk) }
            // The quarantine stays on disk, and so do the batches of its records.
            try database.connection.execute("DELETE FROM batch WHERE origin <> \(BatchRow.Origin.queue.rawValue)")
            opened = try database.load(endpoints: endpoints, newUUID: uuid)
            queue.isMiscounted = queue.below.hasFailed
            processRun.beginInMemory(isStart: true, above: opened.ledger.highestGeneration)
            queue.rowsOnDisk = try disk.rowCount(mark: try disk.mark())
            inFlight = []
            for index in opened.ledger.endpoints.indices {
                let endpoint = opened.ledger.endpoints[index]
                opened.ledger.endpoints[index].quarantine = try disk.quarantineCount(of: endpoint.id)
                for (place, found) in endpoint.batches.enumerated() {
                    var batch = found
                    let stored = try disk.connection.optionalInteger(
                        "SELECT generation FROM batch WHERE endpoint = \(endpoint.id) AND first = \(batch.first)")
                    if stored != Int64(batch.generation) || !isFlushed {
                        // What differs from the disk may never get there, and what was not flushed may be lost: another
                        // start must not reuse the id.
                        batch.generation = max(batch.generation, processRun.memoryGeneration)
                        opened.ledger.endpoints[index].batches[place] = batch
                        try database.write(batch, endpoint: endpoint.id)
                    }
                    let rows = try disk.rows(of: batch, endpoint: endpoint.id, names: names)
                    inFlight.append(try disk.batch(batch, rows, of: endpoint, outbox: uuid, names: names))
                }
            }
            opened.ledger.leaveDisk()
        }
    }

    func rules(generation: Int, passesUnreadable: Bool) -> MemoryRules {
        MemoryRules(
            refusal: refusal, generation: generation, isBlind: isBlind, passesUnreadable: passesUnreadable,
            deferred: deferred)
    }

    /// Memory is filling up too: a full disk gives up older rows for these.
    func isCrowded(_ ledger: Ledger) -> Bool { refusal.cause == .full && ledger.rows >= Self.crowd }
}
