import Delivery
import Profiles
import TestSupport
import WaypostCore

/// A server and a queue in memory around a real schedule: what is on disk survives a crash, the schedule does not.
struct ModelDelivery {
    enum Answer {
        case verdict(Verdict)
        /// It took the rows, and the reply was lost.
        case storedThenLost
    }

    struct Stored {
        var batches: [(id: String, rows: [Int])] = []
        var waiting: [Int] = []
    }

    let settings: EndpointSettings
    /// Answers a request for these rows; what it accepts is stored.
    var answer: ([Int], inout SeededGenerator) -> Answer
    var generator: SeededGenerator
    var schedule: DeliverySchedule
    var now = EventTime.zero
    var disk = Stored()
    /// Settlements that wait for a commit; a crash loses them.
    var pending: [DeliverySchedule.Settled] = []
    var recorded = 0
    /// What the server has, in the order of first arrival.
    private(set) var received: [Int] = []
    private var has: Set<Int> = []
    var quarantine: [Int] = []
    /// How often the server failed over a row that came alone, or refused it.
    var refusedAlone: [Int: Int] = [:]
    /// Rows that left the queue without being stored or quarantined.
    var lost: [Int] = []
    var requests = 0
    /// Rows behind this one are left out by the profile: no batch has them.
    var lastSent = Int.max
    /// The answer to compressed bodies; nil = as to others.
    var refusesCompressed: Verdict?
    /// The requests, and whether their bodies were compressed.
    private(set) var sent: [(rows: [Int], wasCompressed: Bool, at: EventTime)] = []
    /// Commits that a form request made.
    private(set) var commits = 0

    init(
        size: Int, seed: UInt64, delivery: EndpointSettings.Delivery = .all,
        answer: @escaping ([Int], inout SeededGenerator) -> Answer
    ) {
        settings = EndpointSettings(baseURL: "http://x", device: "d", batchSize: size, delivery: delivery)
        self.answer = answer
        generator = SeededGenerator(seed: seed)
        schedule = DeliverySchedule(settings: settings, at: .zero)
    }

    mutating func record(_ count: Int) {
        guard count > 0 else { return }
        disk.waiting += recorded + 1...recorded + count
        recorded += count
        schedule.rowsRecorded(count, at: now)
    }

    mutating func crash() {
        pending = []
        schedule = DeliverySchedule(
            settings: settings, state: schedule.state, waiting: disk.waiting.count, inFlight: listed, at: now)
    }

    private var listed: [DeliverySchedule.InFlight] { disk.batches.map { .init(id: $0.id, rows: $0.rows.count) } }

    /// One step of the schedule.
    /// - Parameter crashes: the power fails somewhere within it.
    /// - Returns: whether anything was done; otherwise time has passed.
    @discardableResult
    mutating func step(crashes: Bool = false) -> Bool {
        switch schedule.next(at: now) {
        case .form(let limit): commit(limit, dissolving: false, crashes: crashes)
        case .reform(let limit): commit(limit, dissolving: true, crashes: crashes)
        case .send(let batch): send(batch, crashes: crashes)
        case .preview, .position: break
        case .bind: break
        case .refreshCredentials:
            schedule.startsRefresh(at: now)
            schedule.credentialsRefreshed(isNew: Bool.random(using: &generator), jitter: jitter, at: now)
        case .wait(let until):
            switch schedule.state {
            case .stopped, .taken: schedule.resumed(at: now)
            default: break
            }
            now = until.map { max($0, now) } ?? now + .seconds(1)
            return false
        }
        return true
    }

    private var jitter: Double { mutating get { Double.random(in: 0..<1, using: &generator) } }

    private mutating func commit(_ limit: Int, dissolving: Bool, crashes: Bool) {
        if crashes { return crash() }
        commits += 1
        for settled in pending { settle(settled) }
        pending = []
        if dissolving {
            disk.waiting = disk.batches.flatMap(\.rows) + disk.waiting
            disk.batches = []
        }
        schedule.formRequested(limit, at: now)
        if limit > 0 { disk.waiting.removeAll { $0 > lastSent } }
        let rows = Array(disk.waiting.prefix(limit))
        disk.waiting.removeFirst(rows.count)
        if !rows.isEmpty { disk.batches.append(("\(rows[0])-\(rows[rows.count - 1])", rows)) }
        schedule.committed(
            .init(waiting: disk.waiting.count, batches: listed), answering: [schedule.formNumber ?? 0], at: now)
    }

    private mutating func settle(_ settled: DeliverySchedule.Settled) {
        guard let place = disk.batches.firstIndex(where: { $0.id == settled.batch }) else { return }
        let (gone, refused, parts) = settled.divide(disk.batches.remove(at: place).rows)
        leave(gone)
        quarantine += refused
        disk.batches.insert(contentsOf: parts.map { (id: "\($0[0])-\($0[$0.count - 1])", rows: $0) }, at: place)
    }

    private mutating func leave(_ rows: [Int]) { lost += rows.filter { !has.contains($0) } }

    private mutating func send(_ id: String, crashes: Bool) {
        schedule.sends(id, at: now)
        let rows = disk.batches.first { $0.id == id }?.rows ?? []
        requests += 1
        let wasCompressed = rows.count > 4 && schedule.compresses(id, at: now)
        sent.append((rows, wasCompressed, now))
        var verdict: Verdict
        switch wasCompressed
            ? refusesCompressed.map({ .verdict($0) }) ?? answer(rows, &generator) : answer(rows, &generator)
        {
        case .verdict(let answered): verdict = answered
        case .storedThenLost:
            store(rows)
            verdict = .retry(.transport(.broken("")), after: nil)
        }
        switch verdict {
        case .accepted: store(rows)
        case .partlyAccepted(let items):
            store(rows.filter { items.refused[Int64($0)] == nil && !items.again.contains(Int64($0)) })
            for seq in items.refused.keys { refusedAlone[Int(seq), default: 0] += 1 }
        default: if rows.count == 1, verdict.usualBlame != .noRow { refusedAlone[rows[0], default: 0] += 1 }
        }
        now = now + .milliseconds(50)
        if crashes { return crash() }
        pending += schedule.attemptFinished(
            verdict, .init(wasCompressed: wasCompressed, blame: verdict.usualBlame), jitter: jitter, at: now)
    }

    private mutating func store(_ rows: [Int]) {
        for row in rows where has.insert(row).inserted { received.append(row) }
    }

    /// Lets it run until nothing waits, or no longer than this many steps.
    mutating func drain(steps: Int = 20_000) {
        for _ in 0..<steps {
            if schedule.waiting == 0, schedule.inFlight == 0, schedule.next(at: now) == .wait(until: nil) { break }
            step()
        }
        for settled in pending { settle(settled) }
        pending = []
    }

    /// Lets it run for a time in which a row comes each `pause`.
    mutating func run(for time: Duration, aRowEach pause: Duration) {
        let end = now + time
        var nextRow = now + pause
        while now < end {
            if case .wait(let until) = schedule.next(at: now), until.map({ $0 > nextRow }) ?? true {
                now = max(now, nextRow)
                nextRow = nextRow + pause
                record(1)
            } else {
                step()
            }
        }
    }

    /// Pairs in which a later row came first.
    var inversions: [Int] { zip(received, received.dropFirst()).filter { $0 > $1 }.map(\.1) }
}
