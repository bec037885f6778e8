import Delivery
import Outbox
import Positioning

/// Judges what the daemon does by what goes in and what comes out, with a ledger of its own.
final class Oracle {
    /// One location that the tracker kept.
    private struct Row {
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

    /// What the world knows of one cursor.
    fileprivate final class Account {
        var endpoint: WorldEndpoint
        /// The first row that it is to have.
        let since: Int
        /// Rows that a server has, and how often each was stored again.
        var stored: Set<Int> = []
        /// Rows before this one were stored, or were not for it.
        var floor: Int
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
        /// Rows that had not been sent when an operator wanted the quarantine to be sent again: they may be some of it.
        var retried: Set<Int> = []
        var digests: [String: UInt64] = [:]
        var inFlight = 0
        /// Its last request was accepted.
        var wasTaken = false
        /// When it was last asked or a row refused, and since when rows wait for it after the faults.
        var asked: EventTime?
        var waitsSince: EventTime?
        var notBefore: EventTime?
        var notBeforeProcess = 0
        /// Settled without being sent, by reason, in this process and in those before.
        var unsent: [String: Int] = [:]
        var unsentBefore = 0
        /// By its profile, in this process.
        var refused = 0
        var quarantined = 0
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
        /// Rows of batches that were accepted, and how many commits have ended since: the second one has settled them.
        var answered: [String: (rows: Int, commits: Int)] = [:]
        /// Rows of the quarantine wait again, and are counted in both places, or an order to drop them may have been stored.
        var isQuarantineUnsure = false

        init(_ endpoint: WorldEndpoint, since: Int) {
            self.endpoint = endpoint
            self.since = since
            floor = since
        }

        var givenUp: Int { unsentBefore + unsent.values.reduce(0, +) + quarantined + droppedFromQuarantine }
    }

    /// Requests in an hour to a server that takes nothing. What is refused is taken apart, and each part asks once.
    private static let requestsMax = 300
    /// Seconds without a request while rows wait: the longest window and back-off, and a credential that is to be renewed.
    private static let quietMax = 1200.0
    /// The same where the last request was taken: the longest window, and the commit before it.
    private static let windowMax = 500.0
    private let host: SimulatedHost
    private let began: EventTime
    private var rows: [Row] = []
    private var byKey: [RowKey: [Int]] = [:]
    private var byTime: [Int64: [Int]] = [:]
    private var accounts: [String: Account] = [:]
    private var identities: [String: RowKey] = [:]
    private var rowNamed: [String: Int] = [:]
    /// Rows that retention took, whoever waited for them.
    private var dropped = DropCounts()
    private var settings: OutboxConfigFacts
    /// What this disk lost does not count: it lies, or was damaged.
    var isDiskTrusted = true
    /// The receiver and the host told the same wrong time: what is too old by both is.
    var clocksErredAlike = false
    /// Commits of which it is not known what they counted: they ended with their process, or were refused and perhaps stored.
    private var unknownCommits = 0
    /// The disk has refused something, or was slow, since this instant; nil = it is well.
    var diskTroubleSince: EventTime?
    var diskTroubleUntil: EventTime?
    private(set) var violations: [Violation] = []
    /// The run may end: what follows a first violation proves nothing.
    var failed: () -> Void = {}
    /// Rows that commits took while the disk refused.
    private var inMemory: [Int] = []
    /// Batches that were given up, as when a failing disk lost rows of theirs: an answer to them is for none.
    private var dissolved: Set<String> = []
    private var isRefusing = false
    /// The disk has refused since the process started: what it holds is counted when it is back. nil = not known yet.
    private var refusesFromStart: Bool?
    /// An endpoint is no longer configured: its rows may stand in the way of others until it is forgotten.
    private var hasRemoved = false
    /// Processes that ended while the disk refused: what they settled may not have reached it.
    private var troubledEnds: Set<Int> = []
    private(set) var recorded = 0
    private(set) var accepted = 0
    private(set) var duplicates = 0

    init(host: SimulatedHost, settings: OutboxConfigFacts) {
        self.host = host
        began = host.time
        self.settings = settings
    }

    func fail(_ invariant: Invariant, _ what: String) {
        violations.append(Violation(invariant: invariant, what: what, at: host.time.seconds(since: began)))
        failed()
    }

    // What goes in.

    /// What a reload lets a running process do.
    func reloaded(_ endpoints: [WorldEndpoint]) {
        for endpoint in endpoints where endpoint.freshHead { accounts[endpoint.name]?.endpoint.freshHead = true }
    }

    /// A process starts with these.
    func started(_ endpoints: [WorldEndpoint], _ settings: OutboxConfigFacts) {
        self.settings = settings
        let primaries = endpoints.filter { $0.backupFor == nil }
        for endpoint in primaries {
            if let known = accounts[endpoint.name], known.endpoint.identity == endpoint.identity {
                known.endpoint = endpoint
                continue
            }
            accounts[endpoint.name] = Account(endpoint, since: rows.count)
        }
        if diskTroubleSince != nil { for account in accounts.values { account.unseenBefore = rows.count } }
        let names = Set(primaries.map(\.name))
        for name in accounts.keys where !names.contains(name) {
            accounts[name] = nil
            // One that stands in for another now has given its rows up.
            if !endpoints.contains(where: { $0.name == name }) { hasRemoved = true }
        }
    }

    func recorded(_ location: Location, at now: EventTime) {
        recorded += 1
        let key = RowKey(ms: location.time.milliseconds, event: location.event.rawValue)
        byKey[key, default: []].append(rows.count)
        byTime[key.ms, default: []].append(rows.count)
        rows.append(
            Row(
                key: key, trackable: location.trackable, at: now, published: location.published, process: host.process))
    }

    /// Rows that a process before the first one left on disk, for every endpoint.
    func inherited(_ times: [Int64], epochMs: Int64) {
        for ms in times {
            let key = RowKey(ms: ms, event: "none")
            byKey[key, default: []].append(rows.count)
            byTime[ms, default: []].append(rows.count)
            let at = EventTime(nanoseconds: (ms - epochMs) * 1_000_000)
            rows.append(Row(key: key, at: at, published: true, process: 0, isCommitted: true, isHandedIn: true))
        }
    }

    /// A commit came to its end on the disk, whether or not anybody hears of it.
    func committed(_ commit: Commit, _ result: Result<CommitReply, OutboxError>, isCut: Bool) {
        // What the disk had of it by then is not known, nor what was counted.
        if isCut { unknownCommits += 1 }
        guard case .success(let reply) = result else { return }
        for row in commit.rows {
            let key = RowKey(ms: row.location.time.milliseconds, event: row.location.event.rawValue)
            let index = byKey[key]?.first { index in
                !rows[index].isHandedIn && !rows[index].isGone && rows[index].trackable == row.location.trackable
            }
            guard let index else { continue }
            rows[index].isHandedIn = true
            inMemory.append(index)
        }
        // What the disk refuses is committed once it has been taken over.
        if reply.refusal == nil {
            for index in inMemory { rows[index].isCommitted = true }
            inMemory = []
        }
        dissolved.formUnion(reply.dissolved)
        isRefusing = reply.refusal != nil
        let isBack = refusesFromStart == true && reply.refusal == nil
        if isBack || refusesFromStart == nil { refusesFromStart = reply.refusal != nil }
        // Rows on disk could not be read for ten minutes: newer ones no longer wait for them.
        if reply.passedUnreadable { for account in accounts.values { account.unseenBefore = rows.count } }
        judge(reply.dropped, reply, commit)
        dropped += reply.dropped
        for depth in reply.depths {
            guard let account = accounts[depth.endpoint] else { continue }
            audit(account, depth, commit, isNews: isBack || reply.wasFoundLate)
            let unsent = Self.unsent(depth)
            let more = unsent.values.reduce(0, +) - account.unsent.values.reduce(0, +)
            account.unsentInMemory = isRefusing ? account.unsentInMemory + max(0, more) : 0
            account.unsent = unsent
            // What its profile refuses is dealt with, without a request.
            let refused = depth.settledUnsent["refused"] ?? 0
            if refused > account.refused { account.asked = host.time }
            account.refused = refused
            // Until the disk has been read, what lies there is not known.
            if refusesFromStart != true { account.quarantined = depth.quarantined }
        }
        for (order, result) in zip(commit.orders, reply.orders) {
            // What the disk refused may have been stored all the same.
            var count: Int? = reply.refusal == nil ? 0 : nil
            if case .done(let done, _, _) = result { count = done }
            switch order {
            case .dropQuarantined(let endpoint, _):
                for account in accounts.values where endpoint == nil || endpoint == account.endpoint.name {
                    account.droppedFromQuarantine += count ?? account.quarantined
                    if count == nil { account.isQuarantineUnsure = true }
                }
            case .retryQuarantined(let endpoint, _) where count != 0:
                for account in accounts.values where endpoint == nil || endpoint == account.endpoint.name {
                    account.isQuarantineUnsure = true
                    account.retried.formUnion((account.since..<rows.count).filter { !account.attempted.contains($0) })
                }
            default: break
            }
        }
    }

    /// Rows given up, by reason. What a profile refuses is counted as that too, and lies in quarantine.
    private static func unsent(_ depth: EndpointDepth) -> [String: Int] {
        depth.settledUnsent.filter { $0.key != "refused" }
    }

    /// Every row that is offered is somewhere: what is gone without a count was acknowledged.
    ///
    /// - Parameter isNews: what the disk holds was not known before.
    private func audit(_ account: Account, _ depth: EndpointDepth, _ commit: Commit, isNews: Bool) {
        let open = depth.waiting + depth.inFlight + depth.quarantined + Self.unsent(depth).values.reduce(0, +)
        let before = account.open
        account.open = open
        account.held = depth.waiting + depth.inFlight
        account.answered = account.answered.filter { $0.value.commits == 0 }.mapValues { ($0.rows, 1) }
        guard let before, isDiskTrusted, !account.isQuarantineUnsure, commit.orders.isEmpty, !isNews else { return }
        let offered = commit.rows.count { $0.location.published || account.endpoint.isEngine }
        var answered = 0
        for settlement in commit.settlements {
            switch settlement.how {
            case .accepted, .partly: answered += account.sizes[settlement.batchID] ?? 0
            case .split, .refused: break
            }
        }
        let left = before + offered - open
        // What could not be counted at the start is put right when a batch is formed.
        let forms = commit.forms.contains { $0.endpoint == depth.endpoint }
        let isCorrected = refusesFromStart == true && (left < 0 || forms)
        if left < 0 || left > answered, !isCorrected {
            fail(
                .numbersAddUp,
                "\(depth.endpoint): of \(before) rows and \(offered) new ones \(open) are accounted for, and at most "
                    + "\(answered) were acknowledged")
        }
    }

    /// How many rows wait for an endpoint, as `status` says it, while no commit is under way.
    func said(_ waiting: Int, of name: String) {
        // A disk that has refused since the start may not be known: then there is no quarantine, and what a server refuses goes
        // out again with the next batch.
        guard let account = accounts[name], account.open != nil, isDiskTrusted, refusesFromStart != true else { return }
        let new = rows.reversed().prefix { !$0.isHandedIn && !$0.isGone }
            .count { $0.published || account.endpoint.isEngine }
        let answered = account.answered.values.reduce(0) { $0 + $1.rows }
        guard waiting < account.held + new - answered || waiting > account.held + new else { return }
        fail(
            .numbersAddUp,
            "\(name): \(waiting) rows are said to wait, of \(account.held) on disk, \(new) new and "
                + "\(answered) answered ones")
    }

    private func judge(_ counts: DropCounts, _ reply: CommitReply, _ commit: Commit) {
        if counts.expired > 0, !clocksErredAlike {
            let age = settings.maxAge ?? .seconds(Int64.max / 2_000_000_000)
            let old = rows.count { $0.isHandedIn && host.time.duration(since: $0.at) >= age - .seconds(60) }
            if dropped.expired + counts.expired > old {
                fail(.honestAge, "\(counts.expired) rows expired, but \(old) were ever as old as \(age)")
            }
        }
        let removed = counts.oldest + counts.newest + counts.thinned
        guard removed > 0, let most = settings.maxRecords, isDiskTrusted, !hasRemoved else { return }
        let required = accounts.values.filter { $0.endpoint.required }
        let lost = required.map { account in
            (reply.depths.first { $0.endpoint == account.endpoint.name }?.settledUnsent["evicted"] ?? 0)
                - (account.unsent["evicted"] ?? 0)
        }
        // Rows leave from the oldest on: what a required endpoint has not had keeps those behind it.
        let needed = required.map { max(span($0), $0.held) }.max() ?? most
        if (lost.max() ?? 0) > 0, needed + commit.rows.count + removed < most * 8 / 10 {
            fail(
                .isolation,
                "\(removed) rows went for want of space, of \(most), while required endpoints keep \(needed)")
        }
    }

    /// Rows from the oldest on that an endpoint has not had.
    private func span(_ account: Account) -> Int {
        while account.floor < rows.count {
            let row = rows[account.floor]
            let wants = row.published || account.endpoint.isEngine
            if wants, !row.isGone || row.isCommitted, account.acked[account.floor] == nil { break }
            account.floor += 1
        }
        return rows.count - account.floor
    }

    private var hasRequired: Bool { accounts.values.contains { $0.endpoint.required } }

    /// The process has ended.
    /// - Parameter isClean: it committed all it had.
    ///   - longestCommit: as far as the disk was that slow lately.
    func processEnded(isClean: Bool, window: Duration, longestCommit: Duration) {
        // A row waits for its window, for the commit before its own, and for its own.
        let slack = window + .seconds(5) + longestCommit * 2
        for index in rows.indices where !rows[index].isCommitted && !rows[index].isGone {
            rows[index].isGone = true
            let age = host.time.duration(since: rows[index].at)
            guard !rows[index].isHandedIn, isDiskTrusted, age > slack || isClean && diskTroubleSince == nil else {
                continue
            }
            fail(
                .nothingLost,
                "\(rows[index].key) was kept \(age.inSeconds) s before the process ended, and not committed")
        }
        if isRefusing || diskTroubleSince != nil { troubledEnds.insert(host.process) }
        // What the first commit that was refused gave up may be stored, and was counted by memory alone.
        if isRefusing { unknownCommits += 1 }
        for account in accounts.values {
            // What was given up in memory alone waits again after the start.
            account.unsentUndone += account.unsentInMemory
            account.unsentInMemory = 0
            account.unsentBefore += account.unsent.values.reduce(0, +)
            account.unsent = [:]
            account.refused = 0
            account.inFlight = 0
            account.notBefore = nil
            account.open = nil
            // Until the next process tells: what it settled last may not have reached the disk.
            account.held = 1 << 30
            account.answered = [:]
            account.requests = []
        }
        inMemory = []
        isRefusing = false
        refusesFromStart = nil
    }

    // What comes out.

    /// An attempt as a server sees it.
    struct Attempt {
        fileprivate var account: Account?
        /// Of the endpoint that sent it.
        var profile = ""
        /// Of the newest rows, which come again in their order.
        fileprivate var isPreview = false
        /// -1 = not one of ours, as the gap where others went.
        var rows: [Int] = []
        var id = ""
        /// Its records say of which trackable they are.
        fileprivate var namesTrackables = false

        var isNobodys: Bool { account == nil }
    }

    /// An operator asked for a request, or for the end of a pause.
    func operatorSpoke() {
        for account in accounts.values { account.requests = [] }
    }

    func sent(_ request: UplinkRequest, to endpoint: WorldEndpoint) -> Attempt {
        let name = endpoint.backupFor ?? endpoint.name
        guard let account = accounts[name] else {
            fail(.numbersAddUp, "a request for \(name), which is not configured")
            return Attempt()
        }
        account.requests = account.requests.filter { host.time.seconds(since: $0) < 3600 } + [host.time]
        if account.requests.count > Self.requestsMax {
            fail(.politeness, "\(account.requests.count) requests in an hour for \(name), which takes nothing")
        }
        asks(account)
        guard let records = WireBody.records(request.body, endpoint.profile) else {
            fail(.numbersAddUp, "a body that is not of the profile \(endpoint.profile)")
            return Attempt()
        }
        // A string of structured fields: between quotation marks.
        let key = request.headers.first { $0.name.lowercased() == "idempotency-key" }?.value ?? ""
        let id = String(key.drop { $0 == "\"" }.prefix { $0 != "\"" })
        let digest = WireBody.digest(request.body)
        if let known = account.digests.updateValue(digest, forKey: id), known != digest, !id.isEmpty,
            isDiskTrusted
        {
            fail(.oneIDOneContent, "two bodies under the id \(id) of \(endpoint.name)")
        }
        account.sizes[id] = records.count
        let isPreview = account.endpoint.freshHead && id.contains("-preview-")
        let rows = records.map { look($0, account, id: id, isAlone: records.count == 1, isPreview) ?? -1 }
        return Attempt(
            account: account, profile: endpoint.profile, isPreview: isPreview, rows: rows, id: id,
            namesTrackables: records.allSatisfy { $0.trackable != nil })
    }

    /// A request that binds the device to the asset; it bears no rows.
    func sentBind(to endpoint: WorldEndpoint) -> Attempt {
        guard let account = accounts[endpoint.name] else {
            fail(.numbersAddUp, "a bind for \(endpoint.name), which is not configured")
            return Attempt()
        }
        asks(account)
        return Attempt(account: account, profile: endpoint.profile, id: "bind of \(endpoint.name)")
    }

    private func asks(_ account: Account) {
        let name = account.endpoint.name
        account.asked = host.time
        account.inFlight += 1
        if account.inFlight > 1 { fail(.politeness, "\(account.inFlight) attempts of \(name) at a time") }
        guard let notBefore = account.notBefore, notBefore > host.time + .seconds(1),
            account.notBeforeProcess == host.process
        else { return }
        fail(.politeness, "\(name) was asked to wait \(notBefore.seconds(since: host.time)) s longer than it did")
    }

    private static func isOfAnotherQueue(_ one: String, _ other: String) -> Bool {
        guard let end = one.lastIndex(of: "/"), let otherEnd = other.lastIndex(of: "/") else { return false }
        return one[..<end] != other[..<otherEnd]
    }

    private func look(
        _ record: WireBody.Record, _ account: Account, id: String, isAlone: Bool, _ isPreview: Bool
    ) -> Int? {
        // Where rows before it went a record becomes a gap. What memory made of it may end with the process.
        if let known = identities.updateValue(record.key, forKey: record.identity), known != record.key, isDiskTrusted,
            known.ms != record.key.ms || record.key.event != "gap" && (known.event != "gap" || troubledEnds.isEmpty)
        {
            fail(.oneIDOneContent, "\(record.identity) names \(known) and \(record.key)")
        }
        var indexes = byKey[record.key] ?? []
        // A full queue makes gaps of fixes, which then look like any gap of that time.
        if record.key.event == "gap" {
            let others = (byTime[record.key.ms] ?? []).filter { index in
                !indexes.contains(index) && (rows[index].published || account.endpoint.isEngine)
            }
            indexes += others
        }
        if record.mayBeCrossing, record.key.event == "none" {
            indexes += byKey[RowKey(ms: record.key.ms, event: "geofence")] ?? []
        }
        if let trackable = record.trackable {
            indexes.removeAll { rows[$0].trackable.map { $0 != trackable } ?? false }
        }
        guard !indexes.isEmpty else {
            fail(.neverSettledByAStranger, "\(record.key) was sent and never recorded")
            return nil
        }
        // Two records may look the same, as the gaps of two starts: one that ended with its process is the last choice.
        // What waited in memory gets another name on the disk.
        func isRenamed(_ index: Int) -> Bool {
            account.named[index].map { Self.isOfAnotherQueue($0, record.identity) } ?? false
        }
        let fresh = indexes.filter {
            $0 >= account.since && (!account.attempted.contains($0) || isRenamed($0) && account.acked[$0] == nil)
        }
        // Not every profile says of which trackable a record is: two of the same time are told apart by their names.
        func isFree(_ index: Int) -> Bool {
            account.named[index].map { $0 == record.identity || isRenamed(index) } ?? true
        }
        let index =
            rowNamed[record.identity].flatMap { indexes.contains($0) && isFree($0) ? $0 : nil }
            ?? fresh.first { !rows[$0].isGone && isFree($0) } ?? fresh.first { !rows[$0].isGone }
            ?? fresh.first ?? indexes.last ?? 0
        account.named[index] = record.identity
        rowNamed[record.identity] = index
        guard !isPreview else { return index }
        let name = account.endpoint.name
        let newest = account.newest[rows[index].trackable] ?? -1
        if account.attempted.insert(index).inserted {
            if index < newest, index >= account.unseenBefore, indexes.count == 1, account.endpoint.isOrdered,
                isDiskTrusted
            {
                if account.retried.contains(index) {
                    // Out of its order as it was asked for.
                } else if account.unsentUndone > 0, rows[index].process != host.process {
                    account.unsentUndone -= 1
                } else {
                    fail(.inOrder, "\(name): row \(index) comes for the first time, behind row \(newest)")
                }
            }
            // One row alone may be a probe of what is behind a batch that is refused.
            if !isAlone { account.newest[rows[index].trackable] = max(newest, index) }
        } else if let process = account.acked[index], indexes.count == 1, account.endpoint.isOrdered, isDiskTrusted {
            duplicates += 1
            if process == host.process {
                fail(
                    .duplicatesExplained, "\(name): row \(index) is sent again in \(id), though its acceptance was seen"
                )
            } else if !troubledEnds.contains(process),
                // A repeated batch that is refused is taken apart: its parts bring no other rows.
                account.repeatedRows[process, default: []].insert(index).inserted,
                account.repeated[process, default: []].insert(id).inserted, account.repeated[process]?.count ?? 0 > 2
            {
                fail(
                    .duplicatesExplained, "\(name): more than two batches are sent again after process \(process) ended"
                )
            }
        }
        return index
    }

    /// Rows that a server refuses whose poison is this.
    func isPoisoned(_ attempt: Attempt, _ divisor: Int64) -> [Int] {
        attempt.rows.filter { $0 >= 0 && rows[$0].key.ms % divisor == 0 }
    }

    /// - Parameter refused: places in the body that the server did not take.
    func stored(_ attempt: Attempt, but refused: Set<Int> = []) {
        for (place, row) in attempt.rows.enumerated() where !refused.contains(place) && row >= 0 {
            attempt.account?.stored.insert(row)
            if !attempt.namesTrackables { attempt.account?.storedTwins[rows[row].key, default: 0] += 1 }
        }
    }

    /// The daemon hears of an answer, or gives the attempt up.
    /// - Parameters:
    ///   - accepts: it says that rows were stored.
    ///   - retryAfter: seconds that it asks for.
    func answered(_ attempt: Attempt, accepts: Bool, but refused: Set<Int> = [], retryAfter: Int? = nil) {
        guard let account = attempt.account else { return }
        account.inFlight = max(0, account.inFlight - 1)
        account.notBefore = retryAfter.map { host.time + .seconds(Int64($0)) }
        account.notBeforeProcess = host.process
        account.wasTaken = accepts
        guard accepts else { return }
        account.requests = []
        guard !dissolved.contains(attempt.id) else { return }
        if !attempt.isPreview { account.answered[attempt.id] = (attempt.rows.count, 0) }
        for (place, row) in attempt.rows.enumerated() where !refused.contains(place) && row >= 0 {
            accepted += 1
            if !attempt.isPreview { account.acked[row] = host.process }
        }
    }

    // The end.

    /// After the faults stopped: so many rows wait for an endpoint that nothing holds back.
    func waits(_ count: Int, for name: String) {
        guard let account = accounts[name] else { return }
        account.waitsSince = count > 0 ? account.waitsSince ?? host.time : nil
        guard let since = account.waitsSince else { return }
        let quiet = host.time.seconds(since: max(since, account.asked ?? since, account.notBefore ?? since))
        // Rows that cannot be read are waited for.
        if quiet > (account.wasTaken && isDiskTrusted ? Self.windowMax : Self.quietMax) {
            fail(.liveness, "\(count) rows wait for \(name), which was not asked for \(quiet) s")
        }
    }

    /// - Parameter waiting: by endpoint: rows that the daemon says it still has for it.
    func ended(waiting: [String: Int]) {
        guard isDiskTrusted else { return }
        for (name, account) in accounts.sorted(by: { $0.key < $1.key }) where account.endpoint.required || !hasRequired
        {
            let missing = rows.indices.filter { index in
                index >= account.since && rows[index].isCommitted && !account.stored.contains(index)
                    && (rows[index].published || account.endpoint.isEngine)
                    // A gap and the fix that became one of the same time cannot be told apart.
                    && !(byTime[rows[index].key.ms] ?? []).contains { other in
                        account.stored.contains(other) && rows[other].trackable == rows[index].trackable
                    }
                    && account.storedTwins[rows[index].key] ?? 0 < byKey[rows[index].key]?.count ?? 0
            }
            let explained = account.givenUp + (waiting[name] ?? 0)
            guard missing.count > explained, unknownCommits == 0 || explained == 0 && settings.maxRecords == nil else {
                continue
            }
            fail(
                .nothingLost,
                "\(name) misses \(missing.count) of \(rows.count) rows, of which \(explained) are explained; the first is row "
                    + "\(missing[0]), \(rows[missing[0]].key)")
        }
    }
}
