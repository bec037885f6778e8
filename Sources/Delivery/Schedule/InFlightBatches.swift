import Profiles
import WaypostCore

/// The batches in flight in the order in which they go out, and what their answers show about them: a batch that is refused,
/// or fails while others are accepted, is taken apart until the row to blame is alone.
struct InFlightBatches: Sendable {
    private struct Part: Sendable {
        let batch: DeliverySchedule.InFlight
        /// It was refused while nothing shows that the endpoint accepts anything.
        var isRefused = false
        /// Equal answers to this batch in a row.
        var streak = Streak()
        /// Times that the server refused it while it was alone.
        var refusalsAlone = 0
        /// The last of them says nothing for sure about the row. See `Refusal`.
        var isWeaklyRefused = false
        /// Others were accepted after the server had refused it alone: if it is accepted too, the refusal was not about it.
        var isDoubted = false
        /// Failures in a row that may be about its rows.
        var failures = 0
        /// See `Blame`; of the last of them.
        var failuresBeforeTrial: Int?
        var failedAt = EventTime.min
        /// The last of them was that no answer came in time to a request that was written in full.
        var wasTooSlow = false
        /// Its rows were sent before, in a batch that was taken apart: they may go ahead of others again.
        var isFragment = false
        /// nil = nothing shows that the server is well when it fails over this.
        var suspicion: Suspicion?

        var isSingleRow: Bool { batch.rows == 1 }
        var isSuspect: Bool { suspicion.map { isSingleRow && $0.failures > 0 } ?? false }
        /// Others go first, also those that wait.
        var isLast: Bool { isSuspect || suspicion?.awaitsOthers == true }
    }

    /// What answers have decided.
    struct Outcome {
        var settled: [DeliverySchedule.Settled] = []
        var doubt: Doubt?
        /// Rows of a batch that is taken apart since it was not answered in time.
        var tooSlow: Int?
        /// The server has accepted what it had refused before: for no reason that is in it.
        var isContradiction = false
    }

    /// What a refusal says about a row that is alone.
    enum Refusal {
        /// That it is to blame, unless the server has accepted before what it had refused.
        case ofRecord
        /// No more than any failure: the size of a request that is as small as can be, or the word of a broker.
        case weak
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
        /// The same at the time of the next attempt.
        case probeFollowing
    }

    /// A row behind a batch that fails is tried alone, to see whether the server accepts that.
    private struct Trial {
        /// The batch that fails.
        let of: String
    }

    private var parts: [Part]
    private var bisect: Bisect?
    /// Times that a refused batch was taken apart.
    private(set) var bisects = 0
    /// Failures in a row, of whichever batch but suspect rows and trials, since anything was accepted.
    private var failures = 0
    /// After so many of them comes the next trial; nil = the first one, which depends on the kind of failure.
    private var trialAt: Int?
    /// nil = the next attempt is none.
    private var trial: Trial?
    /// What waits gave no batch for the last trial, as rows that the profile leaves out.
    private var nothingFollows = false
    /// What is listed next for the first time is what became of a batch that was taken apart.
    private var fragments: Fragments?
    /// What the queue has to write before it is sent.
    private var held = Held.nothing
    /// The place in `parts` of what a pause tries next, if that is one row alone, else the head; and whether a row
    /// after them is tried instead.
    private var probe = (place: 0, fresh: false)
    private var refusals = RecentRefusals()
    private var odds = RefusalOdds()
    /// When the server last accepted what it had refused before: what it refuses then is shown as for any failure.
    private var contradictedAt: EventTime?
    private static let contradictionHolds = Duration.seconds(86_400)
    /// Rows of further batches in flight, which cannot be sent now. See `DeliverySchedule.View`.
    private(set) var unlistedRows: Int

    private enum Fragments { case plain, suspect }

    /// What waits until the answers so far are written, so that a crash repeats one batch and not several.
    private enum Held {
        case nothing
        /// A batch that is tried last.
        case suspects
        /// Everything: what is in flight is not known before, or is a part of what was accepted in part.
        case all
    }

    /// Rises when a batch is accepted after failures, and falls when one is at the first attempt.
    private var unsteadiness = 0
    /// Failures of a batch before another row is tried, then twice as many each time. A server that fails at random does so five
    /// times in a row too.
    private var failuresBeforeTrial: Int { unsteadiness < 4 ? 5 : 10 }
    /// Suspect rows that are kept in flight; the next batch that fails blocks until one of them has gone.
    private static let suspectsMax = 32
    /// Rows too large even alone, with none accepted in between, after which the server is to blame and not they.
    private static let refusedAloneMax = 3
    /// Rows that a pause tries alone stay in flight: no more than this.
    private static let aloneMax = 8

    init(_ batches: [DeliverySchedule.InFlight], unlisted: Int) {
        parts = batches.map { Part(batch: $0) }
        held = unlisted > 0 ? .all : .nothing
        unlistedRows = unlisted
    }

    var isEmpty: Bool { parts.isEmpty }
    var list: [DeliverySchedule.InFlight] { parts.map(\.batch) }
    var rows: Int { parts.reduce(0) { $0 + $1.batch.rows } }
    /// Nothing is in flight that goes out before what waits.
    var isIdle: Bool { parts.allSatisfy(\.isLast) }
    var head: DeliverySchedule.InFlight? { (parts.first { !$0.isLast } ?? parts.first)?.batch }
    var firstNotRefused: DeliverySchedule.InFlight? { parts.first { !$0.isRefused && !$0.isLast }?.batch }
    var isBisecting: Bool { bisect != nil }
    /// A commit comes before anything is formed or sent.
    var awaitsCommit: Bool { held == .all }
    /// The next attempt shows whether another row is accepted.
    var isTrying: Bool { trial != nil }
    /// Rows that fail alone while others are accepted.
    var suspects: [String] { parts.filter(\.isSuspect).map(\.batch.id) }
    /// Another row that is refused alone would show no more.
    private var hasManyAlone: Bool { parts.count { $0.isSingleRow && !$0.isSuspect } >= Self.aloneMax }

    func place(of id: String) -> Int? { parts.firstIndex { $0.batch.id == id } }

    subscript(place: Int) -> DeliverySchedule.InFlight { parts[place].batch }

    /// Only asked while something is in flight that goes out before what waits.
    func target(in state: EndpointState, hasWaiting: Bool) -> Target {
        if state.isPausedOverRows {
            if probe.fresh, hasWaiting, !hasManyAlone { return .probeFollowing }
            // Rows keep their order: only one alone may go ahead, to show whether the server is well.
            let part = parts[min(probe.place, parts.count - 1)]
            return .batch(part.isSingleRow ? part.batch : head ?? part.batch)
        }
        if let trial, let other = other(than: trial.of, hasWaiting) { return other.target }
        if let batch = firstNotRefused { return .batch(batch) }
        if case .active = state, let bisect, bisect.probes < bisect.probesMax, hasWaiting { return .following }
        return .batch(head ?? parts[0].batch)
    }

    /// What a trial sends: a row alone, or what was sent before, since rows keep their order. One that has failed itself shows
    /// nothing if it fails again, so that a row that waits is better.
    ///
    /// - Returns: also whether it has not failed before.
    private func other(than id: String, _ hasWaiting: Bool) -> (target: Target, isUntried: Bool)? {
        guard parts.contains(where: { $0.batch.id == id }) else { return nil }
        let others = parts.filter {
            $0.batch.id != id && $0.suspicion == nil && !$0.isRefused && ($0.isSingleRow || $0.isFragment)
        }
        if let part = others.first(where: { $0.failures == 0 }) { return (.batch(part.batch), true) }
        if hasWaiting, !hasManyAlone { return (.probeFollowing, true) }
        return others.min { $0.failures < $1.failures }.map { (.batch($0.batch), false) }
    }

    /// What is tried when nothing else is to be sent, when, and whether the queue has to write before what was accepted last.
    ///
    /// - Parameter hasWaiting: what has failed since anything was accepted waits for these.
    func suspect(hasWaiting: Bool) -> (batch: DeliverySchedule.InFlight, dueAt: EventTime, needsCommit: Bool)? {
        parts.filter { $0.suspicion.map { !$0.awaitsOthers || !hasWaiting } ?? false }
            .min { ($0.suspicion?.dueAt ?? .max) < ($1.suspicion?.dueAt ?? .max) }
            .map { ($0.batch, $0.suspicion?.dueAt ?? .min, held != .nothing) }
    }
}

// Answers about a batch.
extension InFlightBatches {
    mutating func answered(_ place: Int, _ word: String) { parts[place].streak.add(word) }

    /// - Parameter wasDoubted: it was sent in a pause over rows.
    mutating func accepted(_ place: Int, wasDoubted: Bool, at now: EventTime) -> Outcome {
        let part = parts.remove(at: place)
        if part.isDoubted { contradictedAt = now }
        odds.accepted()
        if bisect == nil, wasDoubted { bisect = Bisect(rows: parts.first?.batch.rows ?? 1, hasEvidence: true) }
        var outcome = withEvidence(.init(batch: part.batch.id, how: .accepted), after: part, at: now)
        outcome.isContradiction = part.isDoubted
        return outcome
    }

    mutating func partlyAccepted(_ place: Int, _ items: ItemVerdicts, at now: EventTime) -> Outcome {
        let part = parts.remove(at: place)
        odds.accepted()
        if !items.again.isEmpty { held = .all }
        unlistedRows += items.again.count
        // The server has accepted others of the same request: what it refuses so again does not hold them up.
        if items.blamesRows { fragments = .suspect }
        return withEvidence(.init(batch: part.batch.id, how: .partly(items)), after: part, at: now)
    }

    /// - Returns: whether the server has refused so many rows of a batch of `rows` that the endpoint itself is doubtful.
    mutating func areTooManyRefused(_ count: Int, of rows: Int, at now: EventTime) -> Bool {
        quarantined(count, at: now) || (rows > 1 && count > max(2, rows / 10))
    }

    /// The server says that it refuses a row, or all of them.
    mutating func refused(_ place: Int, _ refusal: Refusal, hasWaiting: Bool, at now: EventTime) -> Outcome {
        trial = nil
        let part = parts[place]
        if bisect == nil {
            bisect = Bisect(rows: part.batch.rows, hasEvidence: false, isOverRecord: refusal == .ofRecord)
            bisects += 1
        }
        let hasCandidates = parts.contains { $0.isRefused }
        let hasEvidence = bisect?.hasEvidence ?? false
        if !hasEvidence, !part.isSingleRow, !hasCandidates { return Outcome(settled: [split(place)]) }
        if part.isSingleRow {
            if part.refusalsAlone == 0 { odds.refused() }
            parts[place].refusalsAlone += 1
        }
        parts[place].isWeaklyRefused = refusal == .weak
        parts[place].isRefused = true
        guard hasEvidence else { return Outcome(doubt: doubtWithoutEvidence(hasWaiting)) }
        var outcome = Outcome()
        settleRefused(&outcome, at: now)
        endBisect(at: now)
        return outcome
    }

    private mutating func endBisect(at now: EventTime) {
        guard isIdle, !awaitsCommit else { return }
        // Each part of what was refused as a whole was accepted.
        if let bisect, bisect.isOverRecord, bisect.hasEvidence, !bisect.hasFound { contradictedAt = now }
        bisect = nil
    }

    /// One row alone may show that the server is well, whatever is wrong with those before it.
    mutating func splitForProbe() -> Outcome {
        guard !hasManyAlone, let next = parts.firstIndex(where: { !$0.isSingleRow }) else { return Outcome() }
        return Outcome(settled: [split(next)])
    }

    mutating func splitTooLarge(_ place: Int) -> Outcome {
        if bisect == nil { bisect = Bisect(rows: parts[place].batch.rows, hasEvidence: false) }
        return Outcome(settled: [split(place)])
    }

    /// Whether a batch was answered the same way only once: the server may still change its mind.
    func isFirstAnswer(_ place: Int) -> Bool { parts[place].streak.count < 2 }

    /// Whether so many rows are refused alone that the server is to blame.
    func areTooManyRefusedAlone(at now: EventTime) -> Bool {
        parts.count { $0.isRefused && $0.isSingleRow } >= Self.refusedAloneMax * (isUnsteady(at: now) ? 2 : 1)
    }

    /// The server has lately accepted what it had refused.
    private func isUnsteady(at now: EventTime) -> Bool {
        contradictedAt.map { now < $0 + Self.contradictionHolds } ?? false
    }

    /// An attempt failed, and nothing was concluded from the answer.
    ///
    /// - Parameters:
    ///   - wasTooSlow: no answer came in time, although the request was written in full.
    ///   - hasWaiting: rows wait that could be tried instead.
    ///   - backoff: of the endpoint.
    mutating func failed(
        _ place: Int, _ blame: Blame, wasTooSlow: Bool, hasWaiting: Bool, _ backoff: Backoff, jitter: Double,
        at now: EventTime
    ) -> Outcome {
        guard blame != .noRow else { return Outcome() }
        let wasTrial = trial.map { $0.of != parts[place].batch.id } ?? false
        trial = nil
        parts[place].failures = min(parts[place].failures + 1, 1_000_000)
        parts[place].failuresBeforeTrial = isKnownOfRows(place, blame) ? 1 : blame.failuresBeforeTrial
        parts[place].failedAt = now
        parts[place].wasTooSlow = wasTooSlow
        let part = parts[place]
        if let suspicion = part.suspicion {
            let pace = part.isSingleRow ? Suspicion.pace : backoff
            parts[place].suspicion?.failed(
                pause: pace.delay(failures: suspicion.failures + 1, jitter: jitter), at: now)
            if part.isSingleRow { return Outcome() }
            if parts[place].suspicion?.isReason(toDivideOver: blame) == true { return divide(place, .suspect) }
        }
        guard !wasTrial else { return Outcome() }
        failures = min(failures + 1, 1_000_000)
        if part.isFragment, part.suspicion == nil, hasUntriedFragment(beside: place) {
            trial = Trial(of: part.batch.id)
        }
        guard failures >= trialAt ?? part.failuresBeforeTrial ?? failuresBeforeTrial else { return Outcome() }
        let other = other(than: part.batch.id, hasWaiting && !nothingFollows)
        // A row that comes before the next attempt is tried then.
        trialAt = other == nil && part.isSingleRow ? failures : blame.nextTrial(after: failures)
        // Where nothing else is to be tried, one half shows about the other.
        if !part.isSingleRow, other?.isUntried != true {
            return divide(place, part.suspicion == nil ? .plain : .suspect)
        }
        trial = Trial(of: part.batch.id)
        return Outcome()
    }

    /// A half that was not tried shows about the other one.
    private func hasUntriedFragment(beside place: Int) -> Bool {
        parts.indices.contains { other in
            let part = parts[other]
            return other != place && part.isFragment && part.suspicion == nil && !part.isRefused && part.failures == 0
        }
    }

    /// Whether what failed is a part of a batch that was shown to fail while others are accepted.
    func isSuspicious(_ place: Int) -> Bool { parts[place].suspicion != nil }

    /// Whether this fails for the first time, and as the server is known to fail over rows.
    func isKnownAtOnce(_ place: Int, _ blame: Blame) -> Bool {
        parts[place].failures == 0 && isKnownOfRows(place, blame)
    }

    /// The server gives the same answer to a part while it accepts others, and does not give it by chance.
    private func isKnownOfRows(_ place: Int, _ blame: Blame) -> Bool {
        blame == .rowOrAddress
            && parts.contains { $0.suspicion != nil && $0.streak.word == parts[place].streak.word }
    }

    /// Whether nothing shows that an answer is about more than rows: no other batch has got it, or some do while others are
    /// accepted.
    func mayBeOfRows(_ place: Int, _ blame: Blame) -> Bool {
        let part = parts[place]
        return isKnownOfRows(place, blame)
            || !parts.contains { other in
                other.batch.id != part.batch.id && other.failures > 0 && other.suspicion == nil
                    && other.streak.word == part.streak.word
            }
    }

    private mutating func divide(_ place: Int, _ fragments: Fragments) -> Outcome {
        let part = parts[place]
        self.fragments = fragments
        return Outcome(settled: [split(place)], tooSlow: part.wasTooSlow ? part.batch.rows : nil)
    }

    /// A pause over rows: the endpoint that refused them may refuse everything, so that it proves nothing later.
    mutating func doubtRefusals() {
        forgetRefused()
        probe = (parts.isEmpty ? 0 : (probe.place + 1) % parts.count, true)
    }

    /// An operator resumed the endpoint: whatever failed before, another row is tried as soon as after the first failures.
    mutating func resumed() {
        if unlistedRows > 0 { held = .all }
        (failures, trialAt, trial) = (0, nil, nil)
        refusals = RecentRefusals()
        contradictedAt = nil
        forgetRefused()
        for place in parts.indices { parts[place].suspicion?.makeDue() }
    }

    private mutating func forgetRefused() {
        bisect = nil
        for place in parts.indices { parts[place].isRefused = false }
    }

    private mutating func split(_ place: Int) -> DeliverySchedule.Settled {
        let batch = parts.remove(at: place).batch
        held = .all
        unlistedRows += batch.rows
        return .init(batch: batch.id, how: .split)
    }

    /// The endpoint accepts rows: what was refused alone goes, what was refused as a whole is taken apart, and what has failed
    /// again and again is suspect.
    ///
    /// What was accepted is written before another part is sent, so that a crash repeats one batch and not several.
    private mutating func withEvidence(
        _ first: DeliverySchedule.Settled, after part: Part, at now: EventTime
    ) -> Outcome {
        var outcome = Outcome(settled: [first])
        if part.suspicion == nil {
            unsteadiness = part.failures > 0 ? min(unsteadiness + 2, 8) : max(unsteadiness - 1, 0)
        }
        (failures, trialAt, trial, nothingFollows) = (0, nil, nil, false)
        bisect?.hasEvidence = true
        settleRefused(&outcome, at: now)
        suspect(&outcome, afterFailures: part.failures > 0 || part.refusalsAlone > 0, at: now)
        if !isIdle { held = .all } else if held != .all { held = parts.isEmpty ? .nothing : .suspects }
        endBisect(at: now)
        return outcome
    }

    private mutating func settleRefused(_ outcome: inout Outcome, at now: EventTime) {
        let isUnsteady = isUnsteady(at: now)
        while outcome.doubt == nil, let place = parts.firstIndex(where: \.isRefused) {
            guard parts[place].isSingleRow else {
                outcome.settled.append(split(place))
                continue
            }
            parts[place].isRefused = false
            parts[place].isDoubted = true
            // A weak refusal proves nothing at all, only that the row is better tried last.
            let proof = parts[place].isWeaklyRefused ? RefusalOdds.refusalsLeast : odds.proof
            guard parts[place].refusalsAlone >= proof else { continue }
            guard isUnsteady || parts[place].isWeaklyRefused else {
                setAside(place, &outcome, at: now)
                continue
            }
            // Sent again without a pause, it would be refused as fast as the server answers.
            guard parts[place].isSuspect || suspects.count < Self.suspectsMax else {
                outcome.doubt = .tooManyRejected
                continue
            }
            bisect?.hasFound = true
            var suspicion = parts[place].suspicion ?? Suspicion()
            suspicion.failed(pause: Suspicion.pace.base, at: now)
            parts[place].suspicion = suspicion
        }
    }

    private mutating func setAside(_ place: Int, _ outcome: inout Outcome, at now: EventTime) {
        bisect?.hasFound = true
        outcome.settled.append(.init(batch: parts.remove(at: place).batch.id, how: .refused))
        if quarantined(1, at: now) { outcome.doubt = .tooManyRejected }
    }

    /// Another batch was accepted: counts that against each that has failed.
    private mutating func suspect(_ outcome: inout Outcome, afterFailures: Bool, at now: EventTime) {
        for place in parts.indices.reversed() where !parts[place].isRefused {
            if parts[place].suspicion == nil {
                // A half has the failures of the whole behind it.
                let least = parts[place].isFragment ? 1 : parts[place].failuresBeforeTrial ?? failuresBeforeTrial
                guard parts[place].failures >= least else { continue }
                if parts[place].isSingleRow {
                    guard suspects.count < Self.suspectsMax else { continue }
                    var suspicion = Suspicion()
                    suspicion.failed(pause: Suspicion.pace.base, at: parts[place].failedAt)
                    parts[place].suspicion = suspicion
                } else {
                    bisects += 1
                    join(divide(place, .suspect), to: &outcome)
                    continue
                }
            }
            parts[place].suspicion?.otherAccepted(afterFailures: afterFailures)
            guard let suspicion = parts[place].suspicion else { continue }
            if parts[place].isSingleRow {
                if suspicion.isProof, outcome.doubt == nil { setAside(place, &outcome, at: now) }
            } else if suspicion.isReason(toDivideOver: .anyRow) {
                join(divide(place, .suspect), to: &outcome)
            }
        }
    }

    private func join(_ other: Outcome, to outcome: inout Outcome) {
        outcome.settled += other.settled
        outcome.tooSlow = outcome.tooSlow ?? other.tooSlow
    }

    /// Everything at hand was refused and nothing accepted.
    private func doubtWithoutEvidence(_ hasWaiting: Bool) -> Doubt? {
        guard let bisect, parts.allSatisfy({ $0.isRefused || $0.isLast }) else { return nil }
        if bisect.probes < bisect.probesMax, hasWaiting { return nil }
        return parts.count(where: \.isRefused) > 1 ? .everyRecordRefused : .soleRecord
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
        /// Other batches were in flight that go out before what waits.
        var hadOthers: Bool
        /// Rows of all that were in flight.
        var rowsBefore: Int
    }

    mutating func list(_ view: DeliverySchedule.View) -> Listing {
        let known = Dictionary(parts.map { ($0.batch.id, $0) }, uniquingKeysWith: { first, _ in first })
        let new = view.batches.filter { known[$0.id] == nil }.reduce(0) { $0 + $1.rows }
        let listing = Listing(newRows: new, hadOthers: !isIdle, rowsBefore: rows)
        let isGone = parts.contains { part in !view.batches.contains { $0.id == part.batch.id } }
        unlistedRows = view.unlisted
        parts = view.batches.map { batch in
            known[batch.id]
                ?? Part(
                    batch: batch, isFragment: fragments != nil, suspicion: fragments == .suspect ? Suspicion() : nil)
        }
        if view.hasAllAnswers { (held, fragments) = (.nothing, nil) }
        if view.lacksRows { held = .all }
        invariant(parts.count == view.batches.count, "\(parts.count) batches of \(view.batches.count) are in flight")
        invariant(new >= 0 && new <= rows, "\(new) new rows of \(rows)")
        if isGone, parts.isEmpty {
            bisect = nil
            startOver()
        }
        return listing
    }

    /// A batch was requested, and this has come of it.
    mutating func formed(_ listing: Listing) {
        if listing.newRows == 0 {
            if trial != nil { (nothingFollows, trialAt, trial) = (true, failures, nil) }
            probe.fresh = false
        } else {
            nothingFollows = false
            if listing.hadOthers { probe = (parts.count - 1, false) }
        }
        if listing.hadOthers { bisect?.probes += 1 }
    }

    /// All are formed again for another route.
    ///
    /// - Returns: their rows.
    mutating func dissolveAll() -> Int {
        defer {
            bisect = nil
            parts = []
            startOver()
        }
        return rows
    }

    /// What is in flight from now on has not failed yet.
    private mutating func startOver() {
        (failures, trialAt, trial) = (0, nil, nil)
        fragments = nil
        if held == .suspects { held = .nothing }
    }
}

/// A refused batch that is being taken apart until what is to blame is alone.
private struct Bisect: Sendable {
    /// Rows of the batch it began with.
    let rows: Int
    /// Something was accepted since it began: what is refused alone is to blame itself.
    var hasEvidence: Bool
    /// It began with a refusal that was not for the size.
    var isOverRecord = false
    /// A row was found that is to blame, or suspect.
    var hasFound = false
    /// Rows after the batch that were tried.
    var probes = 0
    var quarantined = 0

    /// A lone row is no reason to doubt the endpoint before three others were refused too.
    var probesMax: Int { rows > 1 ? 1 : 3 }
    /// More than this in quarantine is a problem of the contract and not of rows: a tenth. Two never are, nor is what was
    /// sent in batches of one.
    var quarantineMax: Int { rows > 1 ? max(2, rows / 10) : .max }
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

extension InFlightBatches {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(Set(parts.map(\.batch.id)).count == parts.count, "a batch is in flight twice")
        invariant(parts.allSatisfy { $0.batch.rows > 0 }, "a batch without rows")
        invariant(parts.allSatisfy { $0.batch.route >= 0 }, "a batch of no route")
        invariant(parts.allSatisfy { $0.failures >= 0 && $0.refusalsAlone >= 0 }, "negative counts")
        invariant(parts.allSatisfy { $0.refusalsAlone == 0 || $0.isSingleRow }, "several rows were refused alone")
        invariant(unlistedRows >= 0, "\(unlistedRows) rows are not listed")
        invariant((0...8).contains(unsteadiness), "an unsteadiness of \(unsteadiness)")
        invariant(
            failures >= 0 && (trialAt.map { $0 >= 0 } ?? true),
            "\(failures) failures, the next trial at \(trialAt ?? 0)")
        invariant(bisects >= 0, "\(bisects) batches were taken apart")
        invariant(suspects.count <= Self.suspectsMax + 1, "\(suspects.count) rows fail alone")
        invariant(
            bisect.map { $0.rows >= 1 && $0.probes >= 0 && $0.quarantined >= 0 } ?? true, "a search among no rows")
        invariant(probe.place >= 0, "a probe at \(probe.place)")
    }
}
