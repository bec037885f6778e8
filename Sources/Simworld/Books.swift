import WaypostCore

extension RowKey {
    init(_ location: Location) {
        self.init(ms: location.isPlaced ? location.time.milliseconds : -1, event: location.event.rawValue)
    }
}

/// What the world knows by itself: what was recorded, what each endpoint has of it, and what the daemon did wrong.
final class Books {
    /// One location that the tracker kept.
    struct Row {
        var key: RowKey
        var trackable: String?
        /// When it was kept.
        var at: EventTime
        var published: Bool
        var process: Int
        /// A commit that had it succeeded.
        var isCommitted = false
        /// A commit took it, perhaps into memory.
        var isHandedIn = false
        /// It was in memory when a process ended.
        var isGone = false
    }

    let host: SimulatedHost
    private let began: EventTime
    var rows: [Row] = []
    private(set) var byKey: [RowKey: [Int]] = [:]
    private(set) var byTime: [Int64: [Int]] = [:]
    private(set) var recorded = 0
    var accounts: [String: Account] = [:]
    /// How many rows there were when an operator last wanted the quarantine of an endpoint (nil = of each) to be sent again,
    /// whether or not it is configured: those may be some of it.
    private var retriedBefore: [String?: Int] = [:]
    /// What a disk may be blamed for.
    enum Blame: Comparable {
        case nothing
        /// What some of its small tables say is wrong: rows may come twice, but none is lost.
        case numbers
        /// It lies, or was damaged.
        case everything
    }

    private(set) var blame = Blame.nothing
    var isDiskTrusted: Bool { blame == .nothing }

    func blameDisk(for more: Blame = .everything) { blame = max(blame, more) }

    /// No other program has written to the files of the queue.
    var areFilesLeftAlone = true
    /// Processes that ended while the disk refused: what they settled may not have reached it.
    var troubledEnds: Set<Int> = []
    /// Batches that were given up, as when a failing disk lost rows of theirs: an answer to them is for none.
    var dissolved: Set<String> = []
    private(set) var violations: [Violation] = []
    /// The run may end: what follows a first violation proves nothing.
    var failed: () -> Void = {}

    init(host: SimulatedHost) {
        self.host = host
        began = host.time
    }

    func fail(_ invariant: Invariant, _ what: String) {
        violations.append(Violation(invariant: invariant, what: what, at: host.time.seconds(since: began)))
        failed()
    }

    func recorded(_ location: Location, at now: EventTime) {
        recorded += 1
        add(
            Row(
                key: RowKey(location),
                trackable: location.trackable, at: now, published: location.published, process: host.process))
    }

    func retriedQuarantine(of endpoint: String?) { retriedBefore[endpoint] = rows.count }

    func mayComeFromQuarantine(_ row: Int, of endpoint: String) -> Bool {
        row < max(retriedBefore[endpoint] ?? 0, retriedBefore[nil] ?? 0)
    }

    private func add(_ row: Row) {
        byKey[row.key, default: []].append(rows.count)
        byTime[row.key.ms, default: []].append(rows.count)
        rows.append(row)
    }
}
