import TestSupport
import WaypostCore

@testable import Delivery
@testable import Profiles

/// A queue, a server and people around a real schedule, each of which takes its time: what happens next is drawn.
struct EventWorld {
    struct Batch {
        var id: String
        var rows: [Int]
        var route: Int
    }

    /// A commit that was asked for and has not ended.
    enum Commit {
        case form(number: Int, limit: Int, route: Int)
        /// An operator, or the rule for a collision: the rows stay under other ids, or are given up.
        case order(dropping: Bool)
        /// The queue is read at last, and holds what it held.
        case found
    }

    /// A request that the server has, or will never have.
    struct Request {
        var attempt: Attempt
        var batch: Batch?
        var verdict: Verdict
    }

    /// How the server is for a while.
    enum Mood: CaseIterable {
        case well, any, unreachable, busy, refusing, narrow, failing, gone
    }

    let settings: EndpointSettings
    let routes: Int
    var mood = Mood.any
    var generator: SeededGenerator
    var schedule: DeliverySchedule
    var now = EventTime.zero

    var waiting: [Int] = []
    var batches: [Batch] = []
    var settlements: [DeliverySchedule.Settled] = []
    var commits: [Commit] = []
    /// On its way; nil = nothing is.
    var request: Request?
    /// Given up, or answered: what comes of these now comes too late.
    var late: [Request] = []
    var recorded = 0
    var generation = 0

    /// Rows that the server has, that it refused when they came alone, that were given up.
    var stored: Set<Int> = []
    var refused: Set<Int> = []
    var quarantined: [Int] = []
    var dropped: Set<Int> = []
    /// Before when each way wants no request, and the schedule may make none after a failure.
    var rests: [EventTime]
    var backsOffUntil = EventTime(nanoseconds: .min)
    var isHealthy = false
    /// What must never be.
    var breaches: [String] = []
    /// How often something was tried here.
    var counts: [String: Int] = [:]

    init(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let size = [1, 2, 5, 20].randomElement(using: &generator)!
        routes = Int.random(in: 1...2, using: &generator)
        settings = EndpointSettings(
            baseURL: "http://x", device: "d", batchSize: size, freshHead: Bool.random(using: &generator))
        schedule = DeliverySchedule(settings: settings, routes: routes, at: .zero)
        rests = [EventTime](repeating: EventTime(nanoseconds: .min), count: routes)
        self.generator = generator
    }

    mutating func chance(_ one: Int, of many: Int) -> Bool { Int.random(in: 0..<many, using: &generator) < one }

    private var jitter: Double { mutating get { Double.random(in: 0..<1, using: &generator) } }

    private mutating func breach(_ text: String) {
        if breaches.count < 5 { breaches.append("\(text) at \(now)") }
    }

    private mutating func count(_ what: String) { counts[what, default: 0] += 1 }

    /// When the schedule has something to do by itself, or a moment later.
    mutating func pass() {
        if case .wait(let until?) = schedule.next(at: now), chance(1, of: 2) { return now = max(now, until) }
        now = now + .milliseconds(Int.random(in: 1...20_000, using: &generator))
    }

    /// Does what the schedule says, as its owner would: until it waits.
    mutating func step() {
        for _ in 0..<100 {
            switch schedule.next(at: now) {
            case .form(let limit), .reform(let limit): form(limit)
            case .send(let id): send(id)
            case .preview:
                if let attempt = schedule.previewStarted(waiting.last.map(Int64.init), at: now) { begin(attempt, nil) }
            case .position: schedule.positionSought(hasMore: false, at: now)
            case .bind: begin(schedule.bindStarted(at: now), nil)
            case .refreshCredentials: begin(schedule.refreshStarted(at: now), nil)
            case .wait: return
            }
        }
        breach("it never waits: \(schedule.next(at: now))")
    }

    private mutating func form(_ limit: Int) {
        if request != nil { breach("a list is asked for beside \(request!.attempt)") }
        let number = schedule.formRequested(limit, at: now)
        if schedule.route > 0 { count("spare") }
        commits.append(.form(number: number, limit: limit, route: schedule.route))
    }

    private mutating func send(_ id: String) {
        let attempt = schedule.attemptStarted(id, at: now)
        guard let batch = batches.first(where: { $0.id == id }) else { return breach("there is no batch \(id)") }
        if now < backsOffUntil { breach("\(id) before its back-off ends") }
        begin(attempt, batch)
    }

    private mutating func begin(_ attempt: Attempt, _ batch: Batch?) {
        count("\(attempt.purpose)".prefix { $0 != "(" }.description)
        if let other = request { breach("\(attempt) beside \(other.attempt)") }
        let server = server(of: attempt, batch)
        if attempt.purpose != .refresh, now < rests[server] { breach("\(attempt) before Retry-After ends") }
        let verdict = isHealthy ? .accepted : draw(batch?.rows ?? [])
        request = Request(attempt: attempt, batch: batch, verdict: verdict)
        guard let batch else { return }
        switch verdict {
        case .accepted: stored.formUnion(batch.rows)
        case .partlyAccepted(let items):
            stored.formUnion(batch.rows.filter { items.refused[Int64($0)] == nil && !items.again.contains(Int64($0)) })
            refused.formUnion(items.refused.keys.map { Int($0) })
        // Stored, and the answer is lost.
        case .retry(.transport(.broken), _): stored.formUnion(batch.rows)
        default: break
        }
        if verdict != .accepted, batch.rows.count == 1, verdict.usualBlame != .noRow { refused.insert(batch.rows[0]) }
    }

    /// The route by which a request goes.
    private func server(of attempt: Attempt, _ batch: Batch?) -> Int {
        attempt.purpose == .bind ? 0 : batch?.route ?? schedule.route
    }

    private mutating func draw(_ rows: [Int]) -> Verdict {
        let after: Duration? = chance(1, of: 3) ? .seconds(Int.random(in: 1...5000, using: &generator)) : nil
        switch chance(1, of: 10) ? .any : mood {
        case .well: return .accepted
        case .any: break
        case .unreachable: return .retry(.transport(chance(1, of: 2) ? .connect("") : .resolve("")), after: nil)
        case .busy: return .retry(.status(429), after: after)
        case .refusing: return .split(status: 422)
        case .narrow:
            return rows.count > 2 || rows.contains { $0 % 3 == 0 } ? .tooLarge(status: 413, after: nil) : .accepted
        case .failing: return rows.contains { $0 % 5 == 0 } ? .retry(.status(500), after: nil) : .accepted
        case .gone: return .goneStop(status: 410)
        }
        switch Int.random(in: 0..<20, using: &generator) {
        case 0: return .split(status: 400)
        case 1: return .tooLarge(status: 413, after: after)
        case 2: return .retry(.transport(.broken("")), after: nil)
        case 3: return .retry(.transport(.connect("")), after: nil)
        case 4: return .retry(.transport(.timeout("")), after: nil)
        case 5: return .retry(.status(503), after: after)
        case 6: return .retry(.status(500), after: nil)
        case 7: return .authStop(status: 401)
        case 8: return [.goneStop(status: 410), .goneStop(status: 404), .collision].randomElement(using: &generator)!
        case 9: return .misconfigured(status: 405)
        case 10 where rows.count > 2:
            return .partlyAccepted(.init(refused: [Int64(rows[0]): "x"], again: [Int64(rows[1])], after: after))
        case 11: return .retry(.redirected(status: 302, host: nil), after: after)
        case 12: return .encodingRefused()
        default: return .accepted
        }
    }
}

// What comes when it comes.
extension EventWorld {
    /// The request that is under way is answered.
    mutating func answer() {
        guard let request else { return }
        self.request = nil
        late.append(request)
        if late.count > 20 { late.removeFirst() }
        hear(request, isCurrent: true)
    }

    /// An answer to what was given up or answered before.
    mutating func answerLate() {
        guard let request = late.randomElement(using: &generator) else { return }
        let strays = schedule.strayAnswers
        hear(request, isCurrent: false)
        if schedule.strayAnswers != strays + 1 { breach("a stray answer was not counted") }
    }

    private mutating func hear(_ request: Request, isCurrent: Bool) {
        let route = schedule.route
        let server = server(of: request.attempt, request.batch)
        let before = (schedule.inFlight, schedule.waiting, schedule.state, schedule.attempt, schedule.restsUntil)
        switch request.attempt.purpose {
        case .batch(let id):
            let settled = schedule.attemptFinished(
                request.attempt, request.verdict, .init(blame: request.verdict.usualBlame), jitter: jitter, at: now)
            if (settled != nil) != isCurrent { breach("\(id) was heard: \(settled != nil), current: \(isCurrent)") }
            for settled in settled ?? [] where settled.batch != id {
                // Only what was refused alone before may go by what the server says of another.
                if settled.how != .refused, settled.how != .split { breach("\(settled) by an answer to \(id)") }
            }
            settlements += settled ?? []
            if isCurrent, case .retry = request.verdict, schedule.route == route {
                backsOffUntil = now + .seconds(1)
            } else if isCurrent {
                backsOffUntil = now
            }
        case .preview: schedule.previewFinished(request.attempt, request.verdict, jitter: jitter, at: now)
        case .refresh:
            schedule.credentialsRefreshed(
                request.attempt, chance(1, of: 2) ? .new : chance(1, of: 2) ? .none : .later, jitter: jitter, at: now)
            if isCurrent { backsOffUntil = now }
        case .bind where isCurrent:
            schedule.bindAnswered(asked: request.verdict.asked, at: now)
            schedule.bindEnded()
        case .bind: _ = schedule.receives(request.attempt)
        }
        if isCurrent, request.attempt.purpose != .refresh, let asked = request.verdict.asked {
            rests[server] = max(rests[server], now + min(asked, .seconds(3600)))
        }
        let after = (schedule.inFlight, schedule.waiting, schedule.state, schedule.attempt, schedule.restsUntil)
        if !isCurrent, before != after { breach("a stray answer changed \(before) to \(after)") }
    }

    /// The reload of credentials, or whatever else gives up what is under way.
    mutating func abandon() {
        guard let attempt = schedule.abandonAttempt() else {
            if let request { breach("\(request.attempt) cannot be given up") }
            return
        }
        if attempt != request?.attempt {
            breach("\(attempt) was given up, not \(String(describing: request?.attempt))")
        }
        if let request { late.append(request) }
        request = nil
    }

    /// The oldest commit ends.
    mutating func commit(fails: Bool) {
        guard !commits.isEmpty else { return }
        let commit = commits.removeFirst()
        if fails {
            if case .form(let number, _, _) = commit { schedule.notFormed(number, at: now) }
            return
        }
        writeSettlements()
        switch commit {
        case .form(let number, let limit, let route):
            // Who only wants a list changes nothing.
            let others = limit > 0 ? batches.filter { $0.route != route } : []
            waiting = (others.flatMap(\.rows) + waiting).sorted()
            if limit > 0 { batches.removeAll { $0.route != route } }
            if !others.isEmpty { generation += 1 }
            let rows = Array(waiting.prefix(limit))
            waiting.removeFirst(rows.count)
            if !rows.isEmpty { batches.append(batch(rows, route: route)) }
            if !schedule.committed(view(), answering: [number], at: now) {
                breach("the list \(number) was not waited for")
            }
        case .order(let dropping):
            abandon()
            generation += 1
            if dropping { dropped.formUnion(waiting + batches.flatMap(\.rows)) }
            if dropping { (waiting, batches) = ([], []) }
            batches = batches.map { batch($0.rows, route: $0.route) }
            startOver()
            schedule.resumed(at: now)
            backsOffUntil = now
        case .found:
            abandon()
            startOver()
        }
    }

    /// What the queue says, without what an answer has settled that it has not got.
    private func view() -> DeliverySchedule.View {
        var view = DeliverySchedule.View(waiting: waiting.count, hasAllAnswers: settlements.isEmpty)
        for batch in batches {
            if let settled = settlements.first(where: { $0.batch == batch.id }) {
                view.unlisted += settled.divide(batch.rows).parts.reduce(0) { $0 + $1.count }
            } else {
                view.batches.append(.init(id: batch.id, rows: batch.rows.count, route: batch.route))
            }
        }
        return view
    }

    /// A commit of another endpoint, which was taken before the last answers: it says what is in flight here too.
    mutating func otherCommit() { schedule.committed(view(), answering: [-1], at: now) }

    private mutating func startOver() {
        schedule.committed(
            .init(
                waiting: waiting.count, unlisted: batches.reduce(0) { $0 + $1.rows.count }, lacksRows: true), at: now)
        schedule.stateChanged(to: .active, acceptedBefore: false)
    }

    mutating func writeSettlements() {
        for settled in settlements { settle(settled) }
        settlements = []
    }

    private func batch(_ rows: [Int], route: Int) -> Batch {
        Batch(id: "\(route)-\(rows[0])-\(rows[rows.count - 1])-\(rows.count)-g\(generation)", rows: rows, route: route)
    }

    private mutating func settle(_ settled: DeliverySchedule.Settled) {
        guard let place = batches.firstIndex(where: { $0.id == settled.batch }) else { return }
        let batch = batches.remove(at: place)
        let (gone, refused, parts) = settled.divide(batch.rows)
        quarantined += refused
        for row in gone where !stored.contains(row) { breach("row \(row) left, and the server never had it") }
        batches.insert(contentsOf: parts.map { self.batch($0, route: batch.route) }, at: place)
    }

    mutating func record(_ count: Int) {
        waiting += recorded + 1...recorded + count
        recorded += count
        schedule.rowsRecorded(count, at: now)
    }

    /// The queue of an endpoint that is not required gives up a batch, perhaps the one that is on its way.
    mutating func dissolve() {
        guard let batch = batches.randomElement(using: &generator) else { return }
        batches.removeAll { $0.id == batch.id }
        dropped.formUnion(batch.rows)
        schedule.committed(view(), at: now)
    }

    /// The program ends and starts again; what was under way is never heard of.
    mutating func restart() {
        (request, late, commits, settlements) = (nil, [], [], [])
        var state = schedule.state
        if case .rebind = state { state = .active }
        schedule = DeliverySchedule(
            settings: settings, state: state, waiting: waiting.count,
            inFlight: batches.map { .init(id: $0.id, rows: $0.rows.count, route: $0.route) }, routes: routes, at: now)
        rests = [EventTime](repeating: EventTime(nanoseconds: .min), count: routes)
        backsOffUntil = now
    }
}
