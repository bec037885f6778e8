import WaypostCore

/// What the world knows of one cursor.
final class Account {
    var endpoint: WorldEndpoint
    /// The first row that it is to have.
    let since: Int
    /// Rows that are not published are for it from here on, where it is fed by the engine.
    var unpublishedFrom: Int
    /// Rows that a server has, and how often each was stored again.
    var stored: Set<Int> = []
    /// Rows before this one were accepted, or were not for it.
    var floor: Int
    /// Rows from there on that were accepted.
    var had: Set<Int> = []
    /// Floor and rows as the disk knows them, and as it does with the next commit.
    var onDisk: (floor: Int, had: Set<Int>)
    var seen: (floor: Int, had: Set<Int>)
    /// How often one of several rows was stored that look the same, where nothing says of which trackable they are.
    var storedTwins: [RowKey: Int] = [:]
    /// Rows whose acceptance the daemon has seen, and in which process.
    var acked: [Int: Int] = [:]
    /// The last row of each trackable that came for the first time.
    var newest: [String?: Int] = [:]
    var attempted: Set<Int> = []
    /// By which record a row was last taken to be.
    var named: [Int: String] = [:]
    /// Rows before this one could not be seen when the process started: they come when they can.
    var unseenBefore = 0
    /// Rows given up unsent since the disk has refused, and those of them that a process took along when it ended.
    var unsentInMemory = 0
    var unsentUndone = 0
    /// Another endpoint may stand in for it.
    var hasSpare = false
    var digests: [String: UInt64] = [:]
    var inFlight = 0
    /// Its last request was accepted.
    var wasTaken = false
    /// When it was last asked or a row refused, and since when rows wait for it after the faults.
    var asked: EventTime?
    var waitsSince: EventTime?
    /// What each of its servers asked for.
    var notBefore: [String: EventTime] = [:]
    /// When each of its servers last failed.
    var failed: [String: EventTime] = [:]
    /// Settled without being sent, by reason, in this process and in those before.
    var unsent: [String: Int] = [:]
    var unsentBefore = 0
    /// By its profile, in this process.
    var refused = 0
    var quarantined = 0
    /// Of queues that were set aside: it stays in them.
    var quarantinedInCopies = 0
    var droppedFromQuarantine = 0
    /// Batches that were sent again after a process ended, by process.
    var repeated: [Int: Set<String>] = [:]
    var repeatedRows: [Int: Set<Int>] = [:]
    /// When it was asked since it last took something, in the hour before.
    var requests: [EventTime] = []
    /// Rows of a request, by its id.
    var sizes: [String: Int] = [:]
    /// As of the last commit: rows that wait, are under way, in quarantine or given up; nil = not known.
    var open: Int?
    /// As of the last commit: rows that wait or are under way.
    var held = 0
    /// Rows of batches that were accepted, or refused alone, and how many commits have ended since: the second one has settled them.
    var answered: [String: (rows: Int, commits: Int)] = [:]
    /// What became of requests with one row, by their ids, in this process.
    var alone: [String: Alone] = [:]
    /// An operator wanted rows of the quarantine to be sent again.
    var hasRetries = false
    /// An order to drop rows of the quarantine may have been stored.
    var isQuarantineUnsure = false
    /// An order to give its rows up may have been stored.
    var isDropUnsure = false

    /// What a server answered to a row that came alone.
    struct Alone {
        var isRefused = false
        /// Failures after each of which another request was accepted, and when the first and the last of them were.
        var proofs = 0
        var first: EventTime?
        var last = EventTime.zero
        /// Nothing was accepted since it failed then.
        var failedAt: EventTime?

        /// Enough for a row to go to quarantine.
        var isProof: Bool {
            isRefused || proofs >= 5 && first.map { last.seconds(since: $0) >= 1800 } == true
        }
    }

    init(_ endpoint: WorldEndpoint, since: Int) {
        self.endpoint = endpoint
        self.since = since
        unpublishedFrom = since
        floor = since
        onDisk = (since, [])
        seen = (since, [])
    }

    var givenUp: Int {
        unsentBefore + unsent.values.reduce(0, +) + quarantined + quarantinedInCopies + droppedFromQuarantine
    }

    /// A commit has come to the disk: it bears the answers that were seen before the commit before it.
    func committed() {
        if had.contains(where: { $0 < floor }) { had = had.filter { $0 >= floor } }
        onDisk = seen
        seen = (floor, had)
    }

    /// - Parameter forgets: what was accepted and is not on the disk waits again after the start.
    func processEnded(forgets: Bool) {
        if forgets {
            (floor, had) = onDisk
            seen = onDisk
        }
        // What was given up in memory alone waits again after the start.
        unsentUndone += unsentInMemory
        unsentInMemory = 0
        unsentBefore += unsent.values.reduce(0, +)
        unsent = [:]
        refused = 0
        inFlight = 0
        notBefore = [:]
        failed = [:]
        open = nil
        // Until the next process reports: what it finished last may not have reached the disk.
        held = 1 << 30
        answered = [:]
        alone = [:]
        requests = []
    }
}
