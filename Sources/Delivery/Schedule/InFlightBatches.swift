import Positioning

/// The batches in flight in the order in which they go out, and what their answers show about them: a refused batch is
/// taken apart until the row to blame is alone.
struct InFlightBatches: Sendable {
    private struct Part: Sendable {
        let batch: DeliverySchedule.InFlight
        /// It was refused while nothing shows that the endpoint accepts anything.
        var isRefused = false
        /// Equal failures of this batch in a row.
        var streak = Streak()

        var isSingleRow: Bool { batch.rows == 1 }
    }

    /// What answers have decided.
    struct Outcome {
        var settled: [DeliverySchedule.Settled] = []
        var doubt: Doubt?
    }

    /// Why the endpoint may be to blame, and not its rows.
    enum Doubt {
        case tooManyRejected
        case everyRecordRefused
        /// One row was refused, and none waits after it: the next one will show which is to blame.
        case soleRecord
    }

    /// What goes out next.
    enum Target {
        case batch(DeliverySchedule.InFlight)
        /// The row after what is in flight, at once.
        case following
        /// The same at the next attempt of a pause.
        case probeFollowing
    }

    private var parts: [Part]
    private var bisect: Bisect?
    /// Times that a refused batch was taken apart.
    private(set) var bisects = 0
    /// Whether the row after a failing batch is tried on its own.
    private(set) var triesSuccessor = false
    /// The place in `parts` of what a pause tries next, if that is one row alone, else the head; and whether a row
    /// after them is tried instead.
    private var probe = (place: 0, fresh: false)
    private var refusals = RecentRefusals()
    /// The queue has to list what is in flight before anything else.
    private(set) var isUnlisted: Bool
    /// Rows of batches that the queue has not listed, as far as that is known.
    private(set) var unlistedRows: Int

    private static let streakLimit = DeliverySchedule.streakLimit
    /// Times that a batch fails with 500 before the row after it is tried.
    private static let failuresBeforeSuccessor = 20
    /// Rows too large even alone, with none accepted in between, after which the server is to blame and not they.
    private static let refusedAloneMax = 3
    /// Rows that a pause tries alone stay in flight: no more than this.
    private static let aloneMax = 8

    init(_ batches: [DeliverySchedule.InFlight], unlisted: Int) {
        parts = batches.map { Part(batch: $0) }
        isUnlisted = unlisted > 0
        unlistedRows = unlisted
    }

    var isEmpty: Bool { parts.isEmpty }
    var rows: Int { parts.reduce(0) { $0 + $1.batch.rows } }
    var head: DeliverySchedule.InFlight? { parts.first?.batch }
    var firstNotRefused: DeliverySchedule.InFlight? { parts.first { !$0.isRefused }?.batch }
    var isBisecting: Bool { bisect != nil }
    /// Another row that is refused alone would show no more.
    private var hasManyAlone: Bool { parts.count { $0.isSingleRow } >= Self.aloneMax }

    func place(of id: String) -> Int? { parts.firstIndex { $0.batch.id == id } }

    subscript(place: Int) -> DeliverySchedule.InFlight { parts[place].batch }

    /// Only asked while something is in flight.
    func target(in state: EndpointState, hasWaiting: Bool) -> Target {
        if case .paused = state {
            guard state.isPausedOverRows else { return .batch(parts[0].batch) }
            if probe.fresh, hasWaiting, !hasManyAlone { return .probeFollowing }
            // Rows keep their order: only one alone may go ahead, to show whether the server is well.
            let part = parts[min(probe.place, parts.count - 1)]
            return .batch(part.isSingleRow ? part.batch : parts[0].batch)
        }
        if triesSuccessor {
            // Rows keep their order: only one alone may go ahead. One that failed as well shows nothing; others may.
            let alone = parts.dropFirst().filter(\.isSingleRow)
            if let part = alone.first(where: { $0.streak.count == 0 }) { return .batch(part.batch) }
            if hasWaiting, !hasManyAlone { return .following }
            if let part = alone.first { return .batch(part.batch) }
        }
        if let batch = firstNotRefused { return .batch(batch) }
        if let bisect, bisect.probes < bisect.probesMax, hasWaiting { return .following }
        return .batch(parts[0].batch)
    }
}

// Answers about a batch.
extension InFlightBatches {
    mutating func answered(_ place: Int, _ word: String) { parts[place].streak.add(word) }

    /// - Parameter wasDoubted: it was sent in a pause over rows.
    mutating func accepted(_ place: Int, wasDoubted: Bool, at now: EventTime) -> Outcome {
        let part = parts.remove(at: place)
        listBeforeNext()
        if triesSuccessor {
            triesSuccessor = false
            // The row after it was accepted, so the server works: the batch before it holds the cause.
            if place > 0, let head = parts.first {
                bisect = Bisect(rows: head.batch.rows, cause: head.streak.word, hasEvidence: true)
                bisects += 1
                parts[0].isRefused = true
            }
        } else if bisect == nil, wasDoubted {
            bisect = Bisect(rows: parts.first?.batch.rows ?? 1, cause: nil, hasEvidence: true)
        }
        return withEvidence(.init(batch: part.batch.id, how: .accepted), at: now)
    }

    mutating func partlyAccepted(_ place: Int, _ items: ItemVerdicts, at now: EventTime) -> Outcome {
        let part = parts.remove(at: place)
        isUnlisted = isUnlisted || !items.again.isEmpty
        unlistedRows += items.again.count
        listBeforeNext()
        return withEvidence(.init(batch: part.batch.id, how: .partly(items)), at: now)
    }

    /// - Returns: whether the server has refused so many rows of a batch of `rows` that the endpoint itself is doubtful.
    mutating func areTooManyRefused(_ count: Int, of rows: Int, at now: EventTime) -> Bool {
        quarantined(count, at: now) || (rows > 1 && count > max(2, rows / 10))
    }

    /// - Parameter cause: the failure that is taken for a refusal; nil when the status says so.
    mutating func refused(_ place: Int, cause: String?, hasWaiting: Bool, at now: EventTime) -> Outcome {
        triesSuccessor = false
        let part = parts[place]
        if bisect == nil {
            bisect = Bisect(rows: part.batch.rows, cause: cause, hasEvidence: false)
            bisects += 1
        }
        let hasCandidates = parts.contains { $0.isRefused }
        let hasEvidence = bisect?.hasEvidence ?? false
        if !hasEvidence, !part.isSingleRow, !hasCandidates { return Outcome(settled: [split(place)]) }
        parts[place].isRefused = true
        return hasEvidence ? withEvidence(at: now) : Outcome(doubt: doubtWithoutEvidence(hasWaiting))
    }

    /// One row alone may show that the server is well, whatever is wrong with those before it.
    mutating func splitForProbe() -> Outcome {
        guard !hasManyAlone, let next = parts.firstIndex(where: { !$0.isSingleRow }) else { return Outcome() }
        return Outcome(settled: [split(next)])
    }

    mutating func splitTooLarge(_ place: Int) -> Outcome {
        if bisect == nil { bisect = Bisect(rows: parts[place].batch.rows, cause: nil, hasEvidence: false) }
        return Outcome(settled: [split(place)])
    }

    /// Whether a batch was answered the same way only once: the server may still change its mind.
    func isFirstAnswer(_ place: Int) -> Bool { parts[place].streak.count < 2 }

    /// Whether so many rows are refused alone that the server is to blame.
    var hasTooManyRefusedAlone: Bool { parts.count { $0.isRefused && $0.isSingleRow } >= Self.refusedAloneMax }

    /// Whether a failure that says nothing about rows counts as a refusal of this batch; then its count starts again.
    mutating func isSuspect(_ place: Int, _ cause: Verdict.RetryCause, word: String) -> Bool {
        let part = parts[place]
        let isKnown = bisect?.cause == word
        switch cause {
        case .notConfirmed, .transport(.closedWithoutReply): break
        case .status(500) where isKnown: break
        default: return false
        }
        // Taking apart costs only requests; what is refused alone may go for good, and is tried as often as the first.
        guard part.streak.count >= (isKnown && !part.isSingleRow ? 1 : Self.streakLimit) else { return false }
        parts[place].streak.count = 0
        return true
    }

    /// A batch that always fails with 500 may hold up others that are fine: the row after it shows.
    mutating func retried(_ place: Int, _ cause: Verdict.RetryCause) {
        if triesSuccessor, place > 0 {
            triesSuccessor = false
            parts[0].streak.count = 0
        } else if cause == .status(500), bisect?.hasEvidence != true, place == 0,
            parts[0].streak.count >= Self.failuresBeforeSuccessor
        {
            triesSuccessor = true
        }
    }

    mutating func endSuccessorTrial() { triesSuccessor = false }

    /// A pause over rows: the endpoint that refused them may refuse everything, so that it proves nothing later.
    mutating func doubtRefusals() {
        forgetRefused()
        probe = (parts.isEmpty ? 0 : (probe.place + 1) % parts.count, true)
    }

    /// An operator resumed the endpoint.
    mutating func resumed() {
        if unlistedRows > 0 { isUnlisted = true }
        refusals = RecentRefusals()
        forgetRefused()
    }

    private mutating func forgetRefused() {
        bisect = nil
        for place in parts.indices { parts[place].isRefused = false }
    }

    /// What was accepted is written before another part is sent, so that a crash repeats one batch and not several.
    private mutating func listBeforeNext() {
        if !parts.isEmpty { isUnlisted = true }
    }

    private mutating func split(_ place: Int) -> DeliverySchedule.Settled {
        let batch = parts.remove(at: place).batch
        isUnlisted = true
        unlistedRows += batch.rows
        return .init(batch: batch.id, how: .split)
    }

    /// The endpoint accepts rows: what was refused alone goes, what was refused as a whole is taken apart.
    private mutating func withEvidence(_ first: DeliverySchedule.Settled? = nil, at now: EventTime) -> Outcome {
        bisect?.hasEvidence = true
        var outcome = Outcome(settled: first.map { [$0] } ?? [])
        while outcome.doubt == nil, let place = parts.firstIndex(where: \.isRefused) {
            if parts[place].isSingleRow {
                outcome.settled.append(.init(batch: parts.remove(at: place).batch.id, how: .refused))
                if quarantined(1, at: now) { outcome.doubt = .tooManyRejected }
            } else {
                outcome.settled.append(split(place))
            }
        }
        if parts.isEmpty, !isUnlisted { bisect = nil }
        return outcome
    }

    /// Everything at hand was refused and nothing accepted.
    private func doubtWithoutEvidence(_ hasWaiting: Bool) -> Doubt? {
        guard let bisect, parts.allSatisfy(\.isRefused) else { return nil }
        if bisect.probes < bisect.probesMax, hasWaiting { return nil }
        return parts.count > 1 ? .everyRecordRefused : .soleRecord
    }

    private mutating func quarantined(_ count: Int, at now: EventTime) -> Bool {
        var isTooMany = false
        for _ in 0..<min(count, RecentRefusals.most + 1) where refusals.refused(at: now) { isTooMany = true }
        guard bisect != nil else { return isTooMany }
        bisect?.quarantined += count
        return isTooMany || bisect.map { $0.quarantined > $0.quarantineMax } ?? false
    }
}

// What the queue says is in flight.
extension InFlightBatches {
    /// What a list of the batches in flight has brought.
    struct Listing {
        /// Rows of batches that were not known before.
        var newRows: Int
        /// Those of them that were waiting in no batch.
        var formedRows: Int
        /// Batches had to be listed that were in flight already.
        var wasUnlisted: Bool
        /// Other batches were in flight, with this number of rows.
        var hadOthers: Bool
        var rowsBefore: Int
    }

    mutating func list(_ batches: [DeliverySchedule.InFlight], unlisted: Int) -> Listing {
        let known = Dictionary(parts.map { ($0.batch.id, $0) }, uniquingKeysWith: { first, _ in first })
        let new = batches.filter { known[$0.id] == nil }.reduce(0) { $0 + $1.rows }
        let listing = Listing(
            newRows: new,
            // What is listed only now was not among those that wait.
            formedRows: max(0, new - max(0, unlistedRows - unlisted)), wasUnlisted: isUnlisted,
            hadOthers: !parts.isEmpty, rowsBefore: rows)
        isUnlisted = false
        unlistedRows = unlisted
        parts = batches.map { known[$0.id] ?? Part(batch: $0) }
        guard !listing.wasUnlisted else { return listing }
        if new == 0 {
            probe.fresh = false
        } else if listing.hadOthers {
            probe = (parts.count - 1, false)
        }
        if listing.hadOthers { bisect?.probes += 1 }
        return listing
    }

    /// The list does not answer the last request: what is in flight will be requested again.
    mutating func requireList() { isUnlisted = true }

    /// - Parameter inFlight: the true number of rows in batches.
    mutating func corrected(inFlight: Int, mayBeUnlisted: Bool) {
        unlistedRows = isUnlisted || unlistedRows > 0 || mayBeUnlisted ? max(0, inFlight - rows) : 0
    }

    /// All are formed again for another route.
    ///
    /// - Returns: their rows.
    mutating func dissolveAll() -> Int {
        defer {
            bisect = nil
            parts = []
        }
        return rows
    }

    mutating func dissolve(_ ids: [String]) {
        unlistedRows += parts.reduce(0) { $0 + (ids.contains($1.batch.id) ? $1.batch.rows : 0) }
        parts.removeAll { ids.contains($0.batch.id) }
        guard parts.isEmpty else { return }
        bisect = nil
        triesSuccessor = false
    }

    mutating func removeAll() {
        parts = []
        bisect = nil
        triesSuccessor = false
        isUnlisted = true
    }
}

/// A refused batch that is being taken apart until what is to blame is alone.
private struct Bisect: Sendable {
    /// Rows of the batch it began with.
    let rows: Int
    /// What counts as a refusal beside the statuses that say so: the failure that was suspected.
    let cause: String?
    /// Something was accepted since it began: what is refused alone is to blame itself.
    var hasEvidence: Bool
    /// Rows after the batch that were tried.
    var probes = 0
    var quarantined = 0

    /// A lone row is no reason to doubt the endpoint before three others were refused too.
    var probesMax: Int { rows > 1 ? 1 : 3 }
    /// More than this in quarantine is a problem of the contract and not of rows: a tenth. Two never are, nor is what was
    /// sent in batches of one.
    var quarantineMax: Int { rows > 1 ? max(2, rows / 10) : .max }
}

/// Rows that went to quarantine within the last hour.
private struct RecentRefusals: Sendable {
    static let most = 100
    private var times: [EventTime] = []

    /// - Returns: whether there are too many.
    mutating func refused(at now: EventTime) -> Bool {
        times.removeAll { $0 + .seconds(3600) <= now }
        times.append(now)
        if times.count > Self.most + 1 { times.removeFirst() }
        return times.count > Self.most
    }
}

/// Equal answers in a row.
struct Streak: Hashable, Sendable {
    private(set) var word = ""
    var count = 0

    mutating func add(_ word: String) {
        count = word == self.word ? min(count + 1, 1_000_000) : 1
        self.word = word
    }
}
