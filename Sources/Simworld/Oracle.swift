import Queue
import WaypostCore

/// Judges what becomes of the rows that were recorded: none is lost, and the numbers that the daemon says add up.
final class Oracle {
    private let books: Books
    /// Seconds without a request while rows wait: the longest window and back-off, and a credential that is to be renewed.
    private static let quietMax = 1200.0
    /// The same where the last request was taken: the longest window, and the commit before it.
    private static let windowMax = 500.0
    /// Rows that retention took, whoever waited for them.
    private var dropped = DropCounts()
    private var settings: OutboxConfigFacts
    /// The receiver and the host had the same wrong time: what is too old by both is.
    var clocksErredAlike = false
    /// Commits of which it is not known what they counted: they ended with their process, or were refused and perhaps stored.
    private var unknownCommits = 0
    /// The disk has refused something, or was slow, since this instant; nil = it is well.
    var diskTroubleSince: EventTime?
    var diskTroubleUntil: EventTime?
    /// Rows that commits took while the disk refused.
    private var inMemory: [Int] = []
    private var isRefusing = false
    /// The disk has refused since the process started: what it holds is counted when it is back. nil = not known yet.
    private var refusesFromStart: Bool?

    init(_ books: Books, settings: OutboxConfigFacts) {
        self.books = books
        self.settings = settings
    }

    /// What a reload lets a running process do.
    func reloaded(_ endpoints: [WorldEndpoint]) {
        for endpoint in endpoints where endpoint.freshHead { books.accounts[endpoint.name]?.endpoint.freshHead = true }
    }

    /// A process starts with these.
    func started(_ endpoints: [WorldEndpoint], _ settings: OutboxConfigFacts) {
        self.settings = settings
        let primaries = endpoints.filter { $0.backupFor == nil }
        for endpoint in primaries {
            if let known = books.accounts[endpoint.name], known.endpoint.identity == endpoint.identity {
                // What it has passed by is not sent because its feed is another now.
                if endpoint.isEngine, !known.endpoint.isEngine { known.unpublishedFrom = books.rows.count }
                known.endpoint = endpoint
                continue
            }
            books.accounts[endpoint.name] = Account(endpoint, since: books.rows.count)
        }
        for (name, account) in books.accounts { account.hasSpare = endpoints.contains { $0.backupFor == name } }
        if diskTroubleSince != nil { for account in books.accounts.values { account.unseenBefore = books.rows.count } }
        let names = Set(primaries.map(\.name))
        for name in books.accounts.keys where !names.contains(name) {
            books.accounts[name] = nil
        }
    }

    /// A commit came to its end on the disk, whether or not the daemon hears of it.
    func committed(_ commit: Commit, _ result: Result<CommitReply, OutboxError>, isCut: Bool) {
        // What the disk had of it by then is not known, nor what was counted.
        if isCut {
            unknownCommits += 1
            for case .drop(let endpoint) in commit.orders { books.accounts[endpoint]?.isDropUnsure = true }
            for case .clear(let endpoint) in commit.orders { books.accounts[endpoint]?.isDropUnsure = true }
        }
        guard case .success(let reply) = result else { return }
        for row in commit.rows {
            let key = RowKey(row.location)
            let index = books.byKey[key]?.first { index in
                !books.rows[index].isHandedIn && !books.rows[index].isGone
                    && books.rows[index].trackable == row.location.trackable
            }
            guard let index else { continue }
            books.rows[index].isHandedIn = true
            inMemory.append(index)
        }
        // What the disk refuses is committed once it has been taken over.
        if reply.refusal == nil {
            for index in inMemory { books.rows[index].isCommitted = true }
            inMemory = []
        }
        for answer in commit.answers {
            guard case .refused = answer.outcome else { continue }
            for account in books.accounts.values {
                guard let alone = account.alone[answer.batchID], !alone.isProof else { continue }
                books.fail(
                    .neverSettledByAStranger,
                    "\(answer.batchID) goes to quarantine, after \(alone.proofs) failures alone that others were accepted after"
                )
            }
        }
        books.dissolved.formUnion(reply.dissolved)
        if reply.recovery.corruptRecovered > 0, books.isDiskTrusted {
            books.fail(.nothingLost, "a sound queue was set aside: \(reply.recovery.reason ?? "")")
        }
        if reply.replacement.count > 0, books.areFilesLeftAlone {
            books.fail(
                .nothingLost,
                "a change of its own was taken for one of another program: \(reply.replacement.words ?? "")")
        }
        isRefusing = reply.refusal != nil
        let isBack = refusesFromStart == true && reply.refusal == nil
        if isBack || refusesFromStart == nil { refusesFromStart = reply.refusal != nil }
        // Rows on disk could not be read for ten minutes: newer ones no longer wait for them.
        if reply.passedUnreadable { for account in books.accounts.values { account.unseenBefore = books.rows.count } }
        judge(reply.dropped, reply, commit)
        dropped += reply.dropped
        for depth in reply.depths {
            guard let account = books.accounts[depth.endpoint] else { continue }
            audit(account, depth, commit, isNews: isBack || reply.wasFoundLate)
            if !isRefusing {
                let new = books.rows.reversed().prefix { !$0.isHandedIn && !$0.isGone }.count
                if account.held == 0 { account.floor = max(account.floor, books.rows.count - new) }
                account.floor = firstMissing(account, account.floor, account.had)
                account.committed()
            }
            let unsent = Self.unsent(depth)
            let more = unsent.values.reduce(0, +) - account.unsent.values.reduce(0, +)
            account.unsentInMemory = isRefusing ? account.unsentInMemory + max(0, more) : 0
            account.unsent = unsent
            // What its profile refuses is dealt with, without a request.
            let refused = depth.finishedUnsent["refused"] ?? 0
            if refused > account.refused { account.asked = books.host.time }
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
                for account in books.accounts.values where endpoint == nil || endpoint == account.endpoint.name {
                    account.droppedFromQuarantine += count ?? account.quarantined
                    if count == nil { account.isQuarantineUnsure = true }
                }
            case .retryQuarantined(let endpoint, _) where count != 0:
                books.retriedQuarantine(of: endpoint)
                for account in books.accounts.values where endpoint == nil || endpoint == account.endpoint.name {
                    account.hasRetries = true
                }
            default: break
            }
        }
    }

    /// Rows given up, by reason. What a profile refuses is counted as that too, and lies in quarantine.
    private static func unsent(_ depth: EndpointDepth) -> [String: Int] {
        depth.finishedUnsent.filter { $0.key != "refused" }
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
        guard let before, books.isDiskTrusted, !account.isQuarantineUnsure, commit.orders.isEmpty, !isNews else {
            return
        }
        let offered = commit.rows.count { $0.location.published || account.endpoint.isEngine }
        var answered = 0
        for answer in commit.answers {
            switch answer.outcome {
            case .accepted, .partly: answered += account.sizes[answer.batchID] ?? 0
            case .split, .refused: break
            }
        }
        let left = before + offered - open
        // What could not be counted at the start is put right when a batch is formed.
        let forms = commit.forms.contains { $0.endpoint == depth.endpoint }
        let isCorrected = refusesFromStart == true && (left < 0 || forms)
        if left < 0 || left > answered, !isCorrected {
            books.fail(
                .numbersAddUp,
                "\(depth.endpoint): of \(before) rows and \(offered) new ones \(open) are accounted for, and at most "
                    + "\(answered) were acknowledged")
        }
    }

    /// How many rows wait for an endpoint, as `status` says it, while no commit is under way.
    func said(_ waiting: Int, of name: String) {
        guard let account = books.accounts[name], account.open != nil, books.isDiskTrusted else { return }
        let new = books.rows.reversed().prefix { !$0.isHandedIn && !$0.isGone }
            .count { $0.published || account.endpoint.isEngine }
        let answered = account.answered.values.reduce(0) { $0 + $1.rows }
        guard waiting < account.held + new - answered || waiting > account.held + new else { return }
        books.fail(
            .numbersAddUp,
            "\(name): \(waiting) rows are said to wait, of \(account.held) on disk, \(new) new and "
                + "\(answered) answered ones")
    }

    private func judge(_ counts: DropCounts, _ reply: CommitReply, _ commit: Commit) {
        // What a lying disk forgets is counted again.
        if counts.expired > 0, !clocksErredAlike, books.isDiskTrusted {
            let age = settings.maxAge ?? .seconds(Int64.max / 2_000_000_000)
            let old = books.rows.count { $0.isHandedIn && books.host.time.duration(since: $0.at) >= age - .seconds(60) }
            if dropped.expired + counts.expired > old {
                books.fail(.honestAge, "\(counts.expired) rows expired, but \(old) were ever as old as \(age)")
            }
        }
        guard let most = settings.maxRecords, books.isDiskTrusted else { return }
        let removed = counts.oldest + counts.newest + counts.thinned
        // An endpoint loses rows only where the queue is full of what those who may keep it so have not had. Of optional ones
        // rows go uncounted; where others were counted too, it is not known which.
        for (isRequired, name) in [(true, "required endpoints"), (false, "endpoints")] {
            let accounts = books.accounts.values.filter { $0.endpoint.required || !isRequired }
            var lost = accounts.map { evicted($0, reply) }.max() ?? 0
            if reply.hasReturned { lost -= min(lost, oldEnough) }
            guard lost > 0, isRequired ? removed > 0 : counts == DropCounts() else { continue }
            let needed = accounts.map(needed).max() ?? most
            if needed + commit.rows.count + max(removed, lost) < most * 8 / 10 {
                books.fail(
                    .isolation,
                    "\(max(removed, lost)) rows went for want of space, of \(most), while \(name) keep \(needed)")
            }
        }
    }

    /// Rows that may have expired with a commit that was stored although it failed, and whose count is not known: some may have been
    /// old enough for long, since each check removes half of the queue at most.
    private var oldEnough: Int {
        guard let age = settings.maxAge else { return 0 }
        return books.rows.count { $0.isHandedIn && $0.at + age <= books.host.time + .seconds(60) }
    }

    /// Rows that went in this commit without the endpoint having had them.
    private func evicted(_ account: Account, _ reply: CommitReply) -> Int {
        (reply.depths.first { $0.endpoint == account.endpoint.name }?.finishedUnsent["evicted"] ?? 0)
            - (account.unsent["evicted"] ?? 0)
    }

    /// Rows leave from the oldest on: what an endpoint has not had keeps those behind it. What it was given while a commit was
    /// under way, the commit does not know.
    private func needed(_ account: Account) -> Int {
        max(books.rows.count - firstMissing(account, account.seen.floor, account.seen.had), account.held)
    }

    /// The oldest row that an endpoint is to have and has not had.
    private func firstMissing(_ account: Account, _ floor: Int, _ had: Set<Int>) -> Int {
        (floor..<books.rows.count).first { index in
            let row = books.rows[index]
            return (row.published || account.endpoint.isEngine) && (!row.isGone || row.isCommitted)
                && !had.contains(index)
        } ?? books.rows.count
    }

    private var hasRequired: Bool { books.accounts.values.contains { $0.endpoint.required } }

    /// The process has ended.
    /// - Parameter isClean: it committed all it had.
    ///   - longestCommit: as far as the disk was that slow lately.
    func processEnded(isClean: Bool, window: Duration, longestCommit: Duration) {
        // A row waits for its window, for the commit before its own, and for its own.
        let slack = window + .seconds(5) + longestCommit * 2
        for index in books.rows.indices where !books.rows[index].isCommitted && !books.rows[index].isGone {
            books.rows[index].isGone = true
            let age = books.host.time.duration(since: books.rows[index].at)
            guard !books.rows[index].isHandedIn, books.isDiskTrusted, age > slack || isClean && diskTroubleSince == nil
            else {
                continue
            }
            books.fail(
                .nothingLost,
                "\(books.rows[index].key) was kept \(age.inSeconds) s before the process ended, and not committed")
        }
        if isRefusing || diskTroubleSince != nil { books.troubledEnds.insert(books.host.process) }
        // What the first commit that was refused gave up may be stored, and was counted by memory alone.
        if isRefusing { unknownCommits += 1 }
        let isTroubled = books.troubledEnds.contains(books.host.process)
        for account in books.accounts.values { account.processEnded(forgets: isTroubled || !isClean) }
        // What memory alone gave up stands on disk, under the same id.
        books.dissolved = []
        inMemory = []
        isRefusing = false
        refusesFromStart = nil
    }

    // The end.

    /// After the faults stopped: rows wait for an endpoint that nothing holds back.
    func waits(_ count: Int, for name: String) {
        guard let account = books.accounts[name] else { return }
        // What an operator wants sent again is in the quarantine, which memory has not, until the disk takes it out. Rows on
        // damaged pages are brought back once it does.
        let canBeHad = count > 0 && !(isRefusing && (account.hasRetries || !books.isDiskTrusted))
        account.waitsSince = canBeHad ? account.waitsSince ?? books.host.time : nil
        guard let since = account.waitsSince else { return }
        let quiet = books.host.time.seconds(
            since: max(since, account.asked ?? since, account.notBefore.values.max() ?? since))
        // Rows that cannot be read are waited for.
        // What an operator wants sent again waits for the endpoint itself, which is asked less often while another stands in.
        let isPrompt = account.wasTaken && books.isDiskTrusted && !(account.hasSpare && account.hasRetries)
        if quiet > (isPrompt ? Self.windowMax : Self.quietMax) {
            books.fail(.liveness, "\(count) rows wait for \(name), which was not asked for \(quiet) s")
        }
    }

    /// - Parameter waiting: by endpoint: rows that the daemon says it still has for it.
    func ended(waiting: [String: Int]) {
        guard books.blame < .everything else { return }
        for (name, account) in books.accounts.sorted(by: { $0.key < $1.key })
        where (account.endpoint.required || !hasRequired) && !account.isDropUnsure {
            let missing = books.rows.indices.filter { index in
                index >= account.since && books.rows[index].isCommitted && !account.stored.contains(index)
                    && (books.rows[index].published
                        || account.endpoint.isEngine && index >= account.unpublishedFrom)
                    // A gap and the fix that became one of the same time cannot be told apart.
                    && !(books.byTime[books.rows[index].key.ms] ?? []).contains { other in
                        account.stored.contains(other) && books.rows[other].trackable == books.rows[index].trackable
                    }
                    && account.storedTwins[books.rows[index].key] ?? 0 < books.byKey[books.rows[index].key]?.count ?? 0
            }
            let explained = account.givenUp + (waiting[name] ?? 0)
            // Such a commit may have removed rows for want of room, or because a newer one supersedes them.
            let isCounted = explained == 0 && settings.maxRecords == nil && account.endpoint.isOrdered
            guard missing.count > explained, unknownCommits == 0 || isCounted else { continue }
            books.fail(
                .nothingLost,
                "\(name) misses \(missing.count) of \(books.rows.count) rows, of which \(explained) are explained; the first is row "
                    + "\(missing[0]), \(books.rows[missing[0]].key)")
        }
    }
}
