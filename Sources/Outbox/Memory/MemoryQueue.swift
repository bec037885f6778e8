import Delivery
import Positioning

/// The queue while the disk refuses: rows that came since, above those on disk, as far as these can still be read.
///
/// It is an ordinary queue in a database of SQLite in memory, of a bounded number of rows. Numbers, batches and ids go on as
/// on disk, so that the disk can take over what became of them.
final class MemoryQueue {
    let database: Database
    let below: RowsOnDisk
    let settings: OutboxSettings
    /// Rows on disk when it began to refuse.
    let rowsOnDisk: Int
    /// Why the disk refuses, as of its last answer.
    var refusal: OutboxError
    /// Answers about records of the quarantine, which the disk has not heard of.
    var deferred: [BatchAnswer] = []
    /// What the disk holds is not known.
    let isBlind: Bool
    /// What was to be brought back when the disk began to refuse: a commit that brought rows back may have been stored
    /// although it failed, and they leave again. nil = the disk knows.
    var plan: SalvagePlan?
    /// The queue on disk that was to get the rows, and its last number before that: the try failed, or seemed to.
    var found: (uuid: [UInt8], lastSeq: Int64)?
    /// Damaged files that were set aside since, by the numbers of their copies.
    var copies: Set<Int64> = []
    private let generation: Int

    /// Most rows: about 2 MB.
    static let rowsMax = 10_000
    /// More rows than this make room on a disk that has been full for long.
    private static let crowd = 5000

    private init(
        _ settings: OutboxSettings, _ database: Database, above below: RowsOnDisk, rowsOnDisk: Int, isBlind: Bool,
        generation: Int, _ refusal: OutboxError
    ) {
        self.database = database
        self.below = below
        self.rowsOnDisk = rowsOnDisk
        self.isBlind = isBlind
        self.generation = generation
        self.refusal = refusal
        var settings = settings
        settings.maxRecords = min(settings.maxRecords ?? .max, Self.rowsMax)
        settings.maxBytes = nil
        settings.minFree = nil
        self.settings = settings
    }

    /// - Parameters:
    ///   - ledger: as of the last commit that the disk took.
    ///   - isAlone: no other process writes the file.
    ///   - generation: of the batches that are formed here.
    convenience init(
        _ settings: OutboxSettings, above ledger: Ledger, isAlone: Bool, medium: any QueueMedium, generation: Int,
        _ refusal: OutboxError
    ) throws(OutboxError) {
        let below = RowsOnDisk(path: settings.path, last: ledger.lastSeq, isAlone: isAlone, medium: medium)
        self.init(
            settings, try Database(inMemoryFor: settings.path, above: below), above: below, rowsOnDisk: ledger.rows,
            isBlind: false, generation: generation, refusal)
    }

    /// Of a disk that has refused from the start.
    struct Start {
        var queue: MemoryQueue
        var opened: Database.Opened
        var inFlight: [Batch]

        /// - Parameter newUUID: names the queue where it is not known what the disk holds.
        init(
            _ settings: OutboxSettings, endpoints: [EndpointSettings], newUUID: [UInt8], isAlone: Bool,
            medium: any QueueMedium, life: inout Life, _ refusal: OutboxError
        ) throws(OutboxError) {
            if let known = try? Start(
                reading: settings, endpoints: endpoints, isAlone: isAlone, medium: medium, life: &life, refusal)
            {
                self = known
                return
            }
            life.beginInMemory(isStart: true, above: 0)
            let below = RowsOnDisk(path: settings.path, last: 0, isAlone: isAlone, medium: medium)
            let database = try Database(inMemoryFor: settings.path, above: below)
            opened = try database.load(endpoints: endpoints, newUUID: newUUID)
            inFlight = []
            queue = MemoryQueue(
                settings, database, above: below, rowsOnDisk: 0, isBlind: true,
                generation: life.memoryGeneration, refusal)
        }

        private init(
            reading settings: OutboxSettings, endpoints: [EndpointSettings], isAlone: Bool, medium: any QueueMedium,
            life: inout Life, _ refusal: OutboxError
        ) throws(OutboxError) {
            let isFlushed = (try? QueueFiles(path: settings.path, medium: medium).forget(.unknown)) != nil
            let disk = try Database(
                reading: Connection(path: settings.path, access: isAlone ? .readOnlyAlone : .readOnly, medium: medium))
            guard let uuid = try disk.blob(.uuid), uuid.count == 16 else {
                throw OutboxError(.cannotOpen, path: settings.path, message: "it has no name yet")
            }
            let names = try disk.names()
            let below = RowsOnDisk(path: settings.path, last: try disk.lastSeq(), isAlone: isAlone, medium: medium)
            let database = try Database(inMemoryFor: settings.path, above: below)
            for table in ["state", "endpoint", "batch", "ahead"] { try database.copy(table, from: disk) }
            // The quarantine stays on disk, and so do the batches of its records.
            try database.connection.execute("DELETE FROM batch WHERE origin <> \(BatchRow.Origin.queue.rawValue)")
            opened = try database.load(endpoints: endpoints, newUUID: uuid)
            life.beginInMemory(isStart: true, above: opened.ledger.highestGeneration)
            let generation = life.memoryGeneration
            let rows = try disk.rowCount(mark: try disk.mark())
            inFlight = []
            for index in opened.ledger.endpoints.indices {
                let endpoint = opened.ledger.endpoints[index]
                opened.ledger.endpoints[index].quarantine = try disk.quarantineCount(of: endpoint.id)
                for (place, found) in endpoint.batches.enumerated() {
                    var batch = found
                    let stored = try disk.connection.optionalInteger(
                        "SELECT generation FROM batch WHERE endpoint = \(endpoint.id) AND first = \(batch.first)")
                    if stored != Int64(batch.generation) || !isFlushed {
                        // What is other than on disk the disk may never hear of, and what it does not flush it may lose:
                        // another start must not repeat the id.
                        batch.generation = max(batch.generation, generation)
                        opened.ledger.endpoints[index].batches[place] = batch
                        try database.write(batch, endpoint: endpoint.id)
                    }
                    let rows = try disk.rows(of: batch, endpoint: endpoint.id, names: names)
                    inFlight.append(try disk.batch(batch, rows, of: endpoint, outbox: uuid, names: names))
                }
            }
            opened.ledger.leaveDisk()
            queue = MemoryQueue(
                settings, database, above: below, rowsOnDisk: rows, isBlind: false, generation: generation, refusal)
        }
    }

    func rules(passesUnreadable: Bool) -> MemoryRules {
        MemoryRules(
            refusal: refusal, generation: generation, isBlind: isBlind, passesUnreadable: passesUnreadable,
            deferred: deferred)
    }

    /// Memory is filling up too: older rows on a full disk make room for these.
    func isCrowded(_ ledger: Ledger) -> Bool { refusal.cause == .full && ledger.rows >= Self.crowd }
}
