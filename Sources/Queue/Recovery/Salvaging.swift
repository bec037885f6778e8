import Profiles
import WaypostCore

/// What became of a queue that was damaged, since it was opened.
package struct Recovery: Hashable, Sendable {
    /// Damaged queues that were set aside.
    package var corruptRecovered = 0
    /// Rows that were brought back from them.
    package var salvaged = 0
    /// Of these, rows that are older than the row before them.
    package var inversions = 0
    /// Rows that were given up, because they were read as wrong again and again, or because the copies took too much space; also before
    /// this start.
    package var lostRows = 0
    /// When the last of them were given up; nil = no time was trusted then.
    package var lostAt: UTCTime?
    /// Copies in which rows were not found, oldest first. They are read again from time to time.
    package var incomplete: [String] = []
    /// Rows that were not found in them, as far as their number is known.
    package var missing = 0
    /// Rows are still being brought back, some with each commit.
    package var isSalvaging = false
    /// After this another commit should bring back more, even if nothing is recorded; nil = no need.
    package var nextStepIn: Duration?
    /// The last one that was set aside, and what was wrong with it.
    package var copy: String?
    package var reason: String?

    package init() {}
}

/// How far what can be read of damaged copies has been brought back.
struct Salvaging {
    /// Rows to store, and what is known once they are.
    struct Step {
        var rows: [SalvagedRow] = []
        /// Records in the place of rows that are given up.
        var gaps: [SalvagedRow] = []
        var next: SalvagePlan
    }

    private(set) var plan = SalvagePlan()
    /// The last step may be on the medium, although it failed.
    private(set) var isUncertain = false
    private var reader: Salvage?
    /// A read has failed below SQLite since the reader began to open its copy. It may have been of a page that leads to rows, whatever
    /// SQLite made of it, so that nothing that was not found was read as wrong.
    private var hasFailedReads = false
    /// Failed attempts to read the first copy.
    private var tries = 0
    /// Commits until the next step.
    private var pause = 0
    /// The endpoints when a copy was set aside, by its number. After a restart only the copy has them.
    private var before: [Int64: [Ledger.Endpoint]] = [:]
    private var counts = Recovery()
    /// Copies may have to be deleted.
    private var prunes = true
    /// Names this process.
    private let life: Int64
    /// Boot clock, nanoseconds: when parts that are missing are read again; nil: it was not decided yet.
    private var rereadAt: Int64?
    /// Boot clock, nanoseconds: before this only parts are read again of which a read failed.
    private var nextWrongAt: Int64 = .min
    /// Those whose turn has not come in this round.
    private var round: [SalvagePlan.Part] = []
    /// Boot clock: when this process first read parts of a copy as wrong.
    private var firstWrong: [Int64: Int64] = [:]
    /// Rounds in a row in which a read failed.
    private var failedRounds = 0

    /// Most rows that are brought back with one commit.
    static let rowsMax = 250
    /// What cannot be read of a copy after so many tries is read later. The pause before each is twice as long as the last one.
    private static let triesMax = 4
    /// Commits after which a disk is asked again that has refused what was brought back.
    private static let pauseAfterRefusal = 16
    private static let hour: Int64 = 3_600_000_000_000
    /// Until the next round after one in which a read failed; then twice as long each time, up to 34 hours.
    private static let pauseAfterFailure: Int64 = 15_000_000_000
    private static let failedRoundsMax = 13
    /// Rows are given up once they were read as wrong so often, at least an hour apart, by two processes or over so long a time
    /// by one.
    private static let wrongMax = 3
    private static let longest = 7 * 24 * hour

    /// - Parameter life: any number that another process does not have.
    init(life: Int64 = 0) { self.life = life }

    /// - Parameters:
    ///   - onDisk: the queue itself is on disk at present.
    ///   - now: boot clock, nanoseconds.
    func report(onDisk: Bool, at now: Int64, of files: QueueFiles) -> Recovery {
        var report = counts
        report.isSalvaging = plan.isUnderWay
        report.lostRows = Int(clamping: plan.lost)
        report.lostAt = plan.lostMs > 0 ? UTCTime(milliseconds: plan.lostMs) : nil
        for (copy, rows) in plan.missing {
            report.incomplete.append(files.copy(copy))
            report.missing += Int(rows ?? 0)
        }
        guard onDisk, !plan.parts.isEmpty else { return report }
        if plan.isUnderWay || !round.isEmpty {
            report.nextStepIn = pause == 0 ? .seconds(1) : .seconds(60)
        } else {
            report.nextStepIn = .nanoseconds(max(1_000_000_000, rereadDue(at: now) - now))
        }
        return report
    }

    /// What has not come back of a copy.
    enum Rest {
        case nothing
        /// It is being brought back.
        case underWay
        /// Rows; nil = it is not known how many.
        case missing(Int?)

        /// Of the queue that was written again.
        var words: String {
            switch self {
            case .nothing: " with its rows"
            case .underWay: ", and what can be read of its rows is brought back"
            case .missing(let rows):
                " without \(rows.map { InWords.count($0, "location") } ?? "some locations") that could not be read"
            }
        }
    }

    /// - Parameter lostBefore: rows that had been given up before the copy was made.
    func rest(of copy: Int64, lostBefore: Int64) -> Rest {
        if plan.parts.contains(where: { $0.copy == copy && $0.readings == nil }) { return .underWay }
        let lost = plan.lost - lostBefore
        guard let missing = plan.missing.first(where: { $0.copy == copy }) else {
            return lost > 0 ? .missing(Int(lost)) : .nothing
        }
        return .missing(missing.rows.map { Int($0 + lost) })
    }

    mutating func count(_ setAside: (copy: String, reason: String)?) {
        guard let (copy, reason) = setAside else { return }
        counts.corruptRecovered += 1
        counts.copy = copy
        counts.reason = reason
    }

    mutating func note(_ endpoints: [Ledger.Endpoint], before copies: Set<Int64>) {
        for copy in copies { before[copy] = endpoints }
    }

    mutating func adopt(_ new: SalvagePlan) {
        if new.parts.first?.copy != plan.parts.first?.copy { (tries, pause) = (0, 0) }
        if new.copies != plan.copies { prunes = true }
        plan = new
        before = before.filter { copy, _ in new.parts.contains { $0.copy == copy } }
        round.removeAll { !new.parts.contains($0) }
        closeReader()
        isUncertain = false
    }

    mutating func closeReader() { reader = nil }

    /// The next step; nil = none is due, or the copy cannot be read just now.
    mutating func read(for endpoints: [EndpointSettings], of files: QueueFiles, maxBytes: Int64?) -> Step? {
        if prunes, let step = prune(files, maxBytes, for: endpoints) { return step }
        guard let part = nextPart(at: files.medium.now) else { return nil }
        guard pause == 0 else {
            pause -= 1
            return nil
        }
        guard files.medium.exists(files.copy(part.copy)) else { return giveUp(copy: part.copy, of: files) }
        let isPatient = part.readings == nil && tries < Self.triesMax
        let failed = files.medium.failedReads.count
        do throws(OutboxError) {
            if reader == nil {
                hasFailedReads = false
                reader = try Salvage(
                    path: files.copy(part.copy), part: part, before: before[part.copy], kept: plan.kept,
                    isDamaged: plan.counts[part.copy] != nil, isPatient: isPatient, medium: files.medium)
            }
            let rows = try reader?.rows(Self.rowsMax, for: endpoints) ?? []
            if files.medium.failedReads.count != failed { hasFailedReads = true }
            return step(rows, of: part, for: endpoints, files)
        } catch {
            closeReader()
            tries = min(tries + 1, Self.triesMax)
            pause = 1 << tries
            guard !isPatient else { return nil }
            // What does not depend on a few sectors is tried again much later.
            tries = 0
            return step([], of: part, for: endpoints, files, isUnreadable: true)
        }
    }

    /// The part to be read now.
    private mutating func nextPart(at now: Int64) -> SalvagePlan.Part? {
        if let part = plan.parts.first(where: { $0.readings == nil }) { return part }
        guard !plan.parts.isEmpty else { return nil }
        if rereadAt == nil { rereadAt = now + Self.hour }
        if round.isEmpty, now >= rereadDue(at: now) {
            let areAllDue = now >= nextWrongAt
            round = plan.parts.filter { !waits($0, at: now) && (areAllDue || $0.readings?.wrong == 0) }
            rereadAt = round.isEmpty ? nextWrongAt : now + Self.hour
            if areAllDue { nextWrongAt = now + Self.hour }
        }
        return round.first
    }

    private func rereadDue(at now: Int64) -> Int64 {
        guard plan.parts.allSatisfy({ waits($0, at: now) }), let first = firstWrong.values.min() else {
            return rereadAt ?? now + Self.hour
        }
        return first + Self.longest
    }

    /// This process has read a part as wrong often enough: another one has to, or a week has to pass.
    private func waits(_ part: SalvagePlan.Part, at now: Int64) -> Bool {
        guard let readings = part.readings, let first = firstWrong[part.copy] else { return false }
        return readings.wrong >= Self.wrongMax && readings.life == life && now - first < Self.longest
    }

    /// - Parameter isUnreadable: the copy cannot be opened.
    private mutating func step(
        _ rows: [SalvagedRow], of part: SalvagePlan.Part, for endpoints: [EndpointSettings], _ files: QueueFiles,
        isUnreadable: Bool = false
    ) -> Step {
        let now = files.medium.now
        var step = Step(rows: rows, next: plan)
        step.next.counts[part.copy, default: .init()].returned += Int64(rows.count)
        let isFinished = reader?.isFinished ?? true
        var missing = reader?.takeMissing() ?? [part.next...max(part.next, part.through)]
        let hasFailed = isUnreadable || hasFailedReads
        var rest: SalvagePlan.Part?
        if let place = step.next.parts.firstIndex(of: part) {
            if !isFinished, let reader { step.next.parts[place].next = reader.next }
            rest = isFinished ? nil : step.next.parts[place]
            if isFinished { step.next.parts.remove(at: place) }
        }
        let readings = readings(after: part, hasFailed: hasFailed, at: now, isMissing: !missing.isEmpty)
        var lost: [SalvagePlan.Part] = []
        if isGivenUp(readings, of: part.copy, at: now) {
            lost = missing.map { .init(copy: part.copy, next: $0.lowerBound, through: $0.upperBound) }
            missing = []
        }
        step.next.parts += missing.map {
            .init(copy: part.copy, next: $0.lowerBound, through: $0.upperBound, readings: readings)
        }
        let later = step.next.parts.filter { $0.readings != nil && $0.copy == part.copy }
        lost += later.dropFirst(SalvagePlan.missingMax)
        if step.next.giveUp(lost, atMost: Self.rows(in: part.copy, of: files)) > 0 {
            step.gaps = lost.compactMap { reader?.gap(of: $0.next...$0.through, for: endpoints) }
        }
        if isFinished { finish(part.copy, in: &step.next) }
        guard part.readings != nil else {
            if isFinished {
                nextWrongAt = now + Self.hour
                rereadAt = hasFailed ? now + Self.pauseAfterFailure : nextWrongAt
            }
            return step
        }
        if let rest { round[0] = rest } else { round.removeFirst() }
        guard round.isEmpty else { return step }
        // A card that cannot be read is asked less and less.
        failedRounds = hasFailed ? min(failedRounds + 1, Self.failedRoundsMax) : 0
        rereadAt = hasFailed ? now + Self.pauseAfterFailure << Int64(failedRounds) : max(now, nextWrongAt)
        return step
    }

    private mutating func readings(
        after part: SalvagePlan.Part, hasFailed: Bool, at now: Int64, isMissing: Bool
    ) -> SalvagePlan.Readings {
        var readings = part.readings ?? .init(wrong: 0, lives: 0, life: 0)
        guard !hasFailed, isMissing else { return readings }
        if readings.lives == 0 || readings.life != life { readings.lives = min(2, readings.lives + 1) }
        readings.wrong += 1
        readings.life = life
        if firstWrong[part.copy] == nil { firstWrong[part.copy] = now }
        return readings
    }

    private func isGivenUp(_ readings: SalvagePlan.Readings, of copy: Int64, at now: Int64) -> Bool {
        guard readings.wrong >= Self.wrongMax else { return false }
        return readings.lives > 1 || now - (firstWrong[copy] ?? now) >= Self.longest
    }

    /// Nothing more is to be brought back from a copy.
    private func finish(_ copy: Int64, in next: inout SalvagePlan) {
        guard !next.copies.contains(copy) else { return }
        next.counts[copy] = nil
        // Its quarantine stays in it.
        if reader?.quarantined == 0 { next.finished.insert(copy) }
    }

    mutating func stored(_ step: Step, inversions: Int) {
        if reader?.isFinished == true { closeReader() }
        let isSameCopy = step.next.parts.first?.copy == plan.parts.first?.copy
        if isSameCopy { plan = step.next } else { adopt(step.next) }
        if tries < Self.triesMax { tries = 0 }
        counts.salvaged += step.rows.count
        counts.inversions += inversions
        if !step.next.finished.isEmpty { prunes = true }
    }

    /// The rows that were read last could not be stored.
    mutating func refused(isUncertain: Bool) {
        closeReader()
        pause = Self.pauseAfterRefusal
        self.isUncertain = isUncertain
    }

    // Deleting copies.

    /// Deletes copies that are finished, all but the newest two. Those that take more space together than the queue may are
    /// given up, the oldest first.
    ///
    /// - Returns: what has to be stored before the oldest is deleted; nil = nothing.
    private mutating func prune(_ files: QueueFiles, _ maxBytes: Int64?, for endpoints: [EndpointSettings]) -> Step? {
        files.prune(finished: plan.finished)
        guard let maxBytes, let oldest = files.oldest(ifMoreThan: maxBytes) else {
            prunes = false
            return nil
        }
        guard plan.copies.contains(oldest) else { return giveUpQuarantine(of: oldest, files) }
        return giveUp(copy: oldest, of: files, for: endpoints)
    }

    /// Of a copy that is there for its quarantine alone, or that an earlier version has left.
    @inline(never)
    private func giveUpQuarantine(of copy: Int64, _ files: QueueFiles) -> Step? {
        let left =
            plan.finished.contains(copy)
            ? nil
            : try? Connection(path: files.copy(copy), access: .readOnly, medium: files.medium)
                .integer("SELECT count(*) FROM quarantine")
        guard let left, left > 0 else {
            files.remove(copy)
            return nil
        }
        var step = Step(next: plan)
        step.next.lost += min(left, Self.rows(in: copy, of: files))
        step.next.finished.insert(copy)
        return step
    }

    /// - Parameter endpoints: to record a gap for.
    private mutating func giveUp(copy: Int64, of files: QueueFiles, for endpoints: [EndpointSettings] = []) -> Step {
        closeReader()
        var step = Step(next: plan)
        let parts = plan.parts.filter { $0.copy == copy }
        var quarantined: Int64 = 0
        if let part = parts.first, !endpoints.isEmpty {
            let reader = try? Salvage(
                path: files.copy(copy), part: part, before: before[copy], kept: plan.kept, isDamaged: true,
                medium: files.medium)
            step.gaps = parts.compactMap { reader?.gap(of: $0.next...max($0.next, $0.through), for: endpoints) }
            quarantined = min(max(0, reader?.quarantined ?? 0), Self.rows(in: copy, of: files))
        }
        if step.next.giveUp(parts, atMost: Self.rows(in: copy, of: files)) == 0 { step.gaps = [] }
        step.next.lost += quarantined
        step.next.counts[copy] = nil
        step.next.finished.insert(copy)
        round.removeAll { $0.copy == copy }
        return step
    }

    /// More rows than a copy can have.
    private static func rows(in copy: Int64, of files: QueueFiles) -> Int64 { files.bytes(of: copy) / 8 }
}
