import WaypostCore

/// Which geofences the asset is inside of: ENTER, EXIT and DWELL, for each fence in strict alternation.
///
/// A side counts when two fixes in a row and 3 s agree on it, beyond the edge by more than a hysteresis that grows with
/// the accuracy; the event is dated at the first of them. No pass-through detection: a fence between two fixes is
/// not seen.
public struct GeofenceMonitor: Sendable {
    /// A fence that needs a look at each fix: the asset is inside of it, or may be about to enter.
    private struct Watch: Sendable {
        var fence: Int
        var isInside = false
        /// ENTER was recorded, so EXIT will be.
        var isRecorded = false
        var enteredTime = UTCTime(milliseconds: 0)
        /// nil after a restart until the first fix.
        var enteredAt: EventTime?
        var dwelled = false
        /// Nothing was known about this fence before.
        var isFirst = false
        /// What changed other than the position since the last decision.
        var cause: Reason?
        /// The first fix of those that say otherwise, and how many there are.
        var pending: Sighting?
        var pendingFixes = 0
        /// When DWELL is due; nil = never, or not known yet.
        var dwellDue: EventTime?
        /// Metres that the asset may move before the edge needs another look.
        var clearance = 0.0
    }

    /// The longest wait for a decision that would be dated earlier.
    static let decisionMax = Nanoseconds(seconds: 5)
    private static let debounceFixes = 2
    /// Seconds.
    private static let debounce = 3.0
    /// Metres.
    private static let hysteresis = 5.0...30.0
    /// Longer than the decision of a crossing at 1 Hz.
    private static let confirmation = Duration.seconds(10)

    private var settings: Settings
    private var fenceSet: FenceSet
    private var isWatched: [Bool]
    /// Fences that have not been looked at yet are neither inside nor outside.
    private var isUnknown: [Bool]
    private var hasUnknown = false
    private var unknownFixes = 0
    private var unknownSince: (time: UTCTime, at: EventTime)?
    private var watches: [Watch] = []
    /// Stays whose ENTER was recorded.
    private var recordedStays = 0
    private var last: Sighting?
    /// A fence has another shape than in the run before.
    private var hasOtherShapes = false
    /// Crossings that could not be recorded yet, before the first dated fix or outside the hours.
    private var owed: [Crossing] = []
    private var awaitsDwells = false
    /// The earliest fix that a decision is waiting for the confirmation of.
    public private(set) var pendingSince: EventTime?
    /// Stays that were too many at once to be recorded.
    public private(set) var unrecorded = 0

    public init(settings: Settings, restored: StoredState? = nil) {
        self.settings = settings
        fenceSet = FenceSet(settings)
        isWatched = [Bool](repeating: false, count: fenceSet.fences.count)
        isUnknown = isWatched
        guard let restored else {
            forgetAll()
            return
        }
        // Unstored means outside, but of the fences of that run only.
        if restored.fenceSet != fenceSet.number { forgetAll() }
        let indices = fenceSet.indicesByID
        for stay in restored.stays.prefix(Self.staysMax) {
            guard let index = indices[stay.fence] else {
                if stay.isRecorded { owed.append(Crossing(of: stay)) }
                continue
            }
            guard !isWatched[index] else { continue }
            let isSame = fenceSet.revisions[index] == stay.revision
            hasOtherShapes = hasOtherShapes || !isSame
            isUnknown[index] = false
            watch(
                Watch(
                    fence: index, isInside: true, isRecorded: stay.isRecorded, enteredTime: stay.entered,
                    dwelled: stay.dwelled, cause: isSame ? .restart : .changed))
        }
        awaitsDwells = !watches.isEmpty
    }

    /// The fences that can be used.
    public var fences: [Geofence] { fenceSet.fences }

    /// Fences that cannot be used.
    public var refused: Int { fenceSet.refused }

    /// There is nothing to watch.
    public var isEmpty: Bool { fenceSet.fences.isEmpty }

    /// Something waits for the next dated fix.
    var awaitsFix: Bool { awaitsDwells || !owed.isEmpty }

    /// Ids of the fences that the asset is inside of, recorded or not, in no particular order.
    public var inside: [String] { watches.compactMap { $0.isInside ? fences[$0.fence].id : nil } }
    public func isInside(_ id: String) -> Bool { watches.contains { $0.isInside && fences[$0.fence].id == id } }

    private mutating func forgetAll() {
        for index in isUnknown.indices where !isWatched[index] { isUnknown[index] = true }
        lookAgain()
    }

    private mutating func lookAgain() {
        hasUnknown = isUnknown.contains(true)
        unknownFixes = 0
        unknownSince = nil
    }

    private mutating func watch(_ watch: Watch) {
        isWatched[watch.fence] = true
        if watch.isRecorded { recordedStays += 1 }
        watches.append(watch)
    }

    /// The last one moves to its index.
    private mutating func unwatch(_ index: Int) {
        isWatched[watches[index].fence] = false
        isUnknown[watches[index].fence] = false
        if watches[index].isRecorded { recordedStays -= 1 }
        watches.swapAt(index, watches.count - 1)
        watches.removeLast()
    }

    // MARK: Positions

    /// A fix that is reported. Sightings come in order of event time.
    /// - Returns: what it decides, in order of time; EXITs before ENTERs at one time, then by id.
    public mutating func reported(_ sighting: Sighting) -> [Crossing] {
        if isEmpty { return [] }
        var crossings: [Crossing] = []
        look(sighting, atOnce: false, &crossings)
        // Fixes of the past may follow one another within one call, with deadlines in between.
        if let due = nextDeadline, due <= sighting.at { finishDwells(through: sighting.at, sighting, &crossings) }
        Self.order(&crossings)
        return crossings
    }

    /// The place where the asset is parked, known from many fixes: it decides at once.
    mutating func placed(_ sighting: Sighting) -> [Crossing] {
        if isEmpty { return [] }
        var crossings: [Crossing] = []
        look(sighting, atOnce: true, &crossings)
        Self.order(&crossings)
        return crossings
    }

    /// A fence has not been looked at since it was added, or got its shape.
    var needsPlace: Bool { hasUnknown || hasOtherShapes }

    /// What was seen before does not count any more: the asset is elsewhere, or the clock is.
    mutating func forgetEvidence() {
        for index in watches.indices.reversed() where watches[index].pending != nil {
            if watches[index].isInside { watches[index].pending = nil } else { unwatchUndecided(index) }
        }
        pendingSince = nil
        unknownFixes = 0
        unknownSince = nil
    }

    private mutating func unwatchUndecided(_ index: Int) {
        let (fence, isFirst) = (watches[index].fence, watches[index].isFirst)
        unwatch(index)
        if isFirst, hasUnknown { isUnknown[fence] = true }
    }

    private mutating func look(_ sighting: Sighting, atOnce: Bool, _ crossings: inout [Crossing]) {
        let coordinate = sighting.coordinate
        // Half as much again: the plane of a large polygon far from the equator stretches distances.
        let step = 1.5 * (last?.coordinate.distance(to: coordinate) ?? .infinity)
        last = sighting
        hasOtherShapes = false
        let hysteresis = Self.hysteresis(sighting)
        var index = watches.count
        while index > 0 {
            index -= 1
            let fence = watches[index].fence
            if watches[index].isInside, watches[index].pending == nil, !atOnce {
                watches[index].clearance -= step
                if watches[index].clearance > 0 {
                    watches[index].cause = nil
                    continue
                }
            }
            let distance = fenceSet.distance(of: fence, coordinate)
            watches[index].clearance = -distance - Self.hysteresis.upperBound
            let side = fenceSet.side(of: fence, at: distance, hysteresis: hysteresis)
            judge(index, side, sighting, atOnce, &crossings)
        }
        for fence in fenceSet.near(coordinate, leavingOut: isWatched) {
            let distance = fenceSet.distance(of: fence, coordinate)
            guard fenceSet.side(of: fence, at: distance, hysteresis: hysteresis) == .inside else { continue }
            watch(Watch(fence: fence, isFirst: isUnknown[fence]))
            judge(watches.count - 1, .inside, sighting, atOnce, &crossings)
        }
        if hasUnknown { resolveUnknown(sighting, atOnce) }
        findPending()
    }

    private mutating func findPending() {
        pendingSince = nil
        for index in watches.indices {
            guard let first = watches[index].pending?.at else { continue }
            pendingSince = min(pendingSince ?? first, first)
        }
    }

    /// The hysteresis of a large fence, in metres.
    private static func hysteresis(_ sighting: Sighting) -> Double {
        let accuracy = sighting.accuracy.flatMap { $0.isFinite ? $0 : nil } ?? FixFilter.unknownAccuracy
        return max(hysteresis.lowerBound, min(accuracy, hysteresis.upperBound))
    }

    /// What one sighting says about one watched fence. May remove the watch.
    private mutating func judge(
        _ index: Int, _ side: FenceSet.Side, _ sighting: Sighting, _ atOnce: Bool, _ crossings: inout [Crossing]
    ) {
        let isInside = watches[index].isInside
        guard side == (isInside ? .outside : .inside) else {
            watches[index].pending = nil
            if !isInside { return unwatchUndecided(index) }
            // A stored place says nothing new, a fix does.
            if side == .inside, !atOnce { watches[index].cause = nil }
            return
        }
        if watches[index].pending == nil {
            watches[index].pending = sighting
            watches[index].pendingFixes = 0
        }
        watches[index].pendingFixes += 1
        guard let first = watches[index].pending else { return }
        if !atOnce {
            let held = Elapsed.seconds(from: (first.time, first.at), to: (sighting.time, sighting.at))
            guard watches[index].pendingFixes >= Self.debounceFixes, held >= Self.debounce else { return }
        }
        if isInside { left(index, first, &crossings) } else { entered(index, first, &crossings) }
    }

    private mutating func entered(_ index: Int, _ first: Sighting, _ crossings: inout [Crossing]) {
        let fence = fences[watches[index].fence]
        watches[index].pending = nil
        watches[index].isInside = true
        watches[index].enteredTime = first.time
        watches[index].enteredAt = first.at
        isUnknown[watches[index].fence] = false
        if watches[index].isFirst, !settings.initialEnter { return }
        guard recordedStays < Self.staysMax else {
            unrecorded += 1
            return
        }
        watches[index].isRecorded = true
        recordedStays += 1
        if let dwell = fence.dwell { watches[index].dwellDue = first.at + dwell }
        let reason = watches[index].isFirst ? .initial : watches[index].cause ?? Reason(opening: first.opening)
        watches[index].cause = nil
        crossings.append(Crossing(of: fence, .enter, reason, first))
    }

    private mutating func left(_ index: Int, _ first: Sighting, _ crossings: inout [Crossing]) {
        let watch = watches[index]
        unwatch(index)
        guard watch.isRecorded else { return }
        let fence = fences[watch.fence]
        // Its time was over while it waited for another decision.
        // Of a stay that ended unseen it is not known that it lasted.
        if let due = watch.dwellDue, due < first.at, first.opening == nil {
            crossings.append(dwell(in: fence, first, due))
        }
        crossings.append(Crossing(of: fence, .exit, watch.cause ?? Reason(opening: first.opening), first))
    }

    /// Once the asset was seen for the duration of a decision, fences that it is not about to enter are outside.
    private mutating func resolveUnknown(_ sighting: Sighting, _ atOnce: Bool) {
        let since = unknownSince ?? (sighting.time, sighting.at)
        unknownSince = since
        unknownFixes += 1
        if !atOnce {
            let seen = Elapsed.seconds(from: since, to: (sighting.time, sighting.at))
            guard unknownFixes >= Self.debounceFixes, seen >= Self.debounce else { return }
        }
        for index in isUnknown.indices { isUnknown[index] = false }
        hasUnknown = false
    }

    private static func order(_ crossings: inout [Crossing]) {
        func rank(_ crossing: Crossing) -> (EventTime, Int) {
            let action =
                switch crossing.action {
                case .exit: 0
                case .enter: 1
                case .dwell: 2
                }
            return (crossing.due ?? crossing.sighting?.at ?? EventTime(nanoseconds: .max), action)
        }
        if crossings.count > 1 { crossings.sort { rank($0) == rank($1) ? $0.id < $1.id : rank($0) < rank($1) } }
    }

    // MARK: Time

    /// The next DWELL. One waits while the asset seems to have left, and for a crossing that would be dated before it.
    public var nextDeadline: EventTime? {
        var next: EventTime?
        for index in watches.indices {
            guard let due = dwellDeadline(index) else { continue }
            next = min(next ?? due, due)
        }
        return next
    }

    private func dwellDeadline(_ index: Int) -> EventTime? {
        guard let due = watches[index].dwellDue, watches[index].pending == nil else { return nil }
        guard let pendingSince, pendingSince < due else { return due }
        return max(due, pendingSince + Self.decisionMax)
    }

    private func dwell(in fence: Geofence, _ sighting: Sighting?, _ due: EventTime) -> Crossing {
        Crossing(of: fence, .dwell, .dwell, sighting, due: due)
    }

    mutating func deadlineReached(at: EventTime) -> [Crossing] {
        var crossings: [Crossing] = []
        finishDwells(through: at, nil, &crossings)
        Self.order(&crossings)
        return crossings
    }

    private mutating func finishDwells(
        through at: EventTime, _ sighting: Sighting?, _ crossings: inout [Crossing]
    ) {
        for index in watches.indices {
            guard let deadline = dwellDeadline(index), deadline <= at, let due = watches[index].dwellDue
            else { continue }
            watches[index].dwellDue = nil
            watches[index].dwelled = true
            crossings.append(dwell(in: fences[watches[index].fence], sighting, due))
        }
    }

    /// The first dated fix of this run within the hours: it dates stays that began in another run.
    mutating func firstFixReceived(time: UTCTime, at: EventTime) -> [Crossing] {
        awaitsDwells = false
        for index in watches.indices where watches[index].enteredAt == nil {
            let (elapsed, overflow) = time.milliseconds.subtractingReportingOverflow(
                watches[index].enteredTime.milliseconds)
            watches[index].enteredAt = at - .milliseconds(overflow ? 0 : max(0, elapsed))
            resetDwell(index)
            // Overdue by now, unless it is elsewhere: an EXIT must have the time to come first.
            if let due = watches[index].dwellDue { watches[index].dwellDue = max(due, at + Self.confirmation) }
        }
        defer { owed = [] }
        return owed
    }

    /// The asset was not watched for a while: a stay that would be long by now must first be seen to go on.
    mutating func resumed(at: EventTime) {
        for index in watches.indices where watches[index].dwellDue != nil {
            guard let dwell = fences[watches[index].fence].dwell else { continue }
            watches[index].dwellDue = at + dwell
        }
    }

    /// Crossings that cannot be recorded yet.
    mutating func owe(_ crossings: [Crossing]) { owed += crossings }

    private mutating func resetDwell(_ index: Int) {
        let watch = watches[index]
        watches[index].dwellDue = nil
        guard watch.isInside, watch.isRecorded, !watch.dwelled, let dwell = fences[watch.fence].dwell,
            let entered = watch.enteredAt
        else { return }
        watches[index].dwellDue = entered + dwell
    }

    // MARK: Changes of the fences

    /// The fences are others now. Stays in fences that are still there go on.
    /// - Returns: EXITs of fences that are gone, and what another shape changes where the asset was last reported.
    mutating func settingsChanged(_ settings: Settings) -> [Crossing] {
        guard settings != self.settings else { return [] }
        let before = (fences: fences, indices: fenceSet.indicesByID, watches: watches, isUnknown: isUnknown)
        self.settings = settings
        watches = []
        recordedStays = 0
        fenceSet = FenceSet(settings)
        isWatched = [Bool](repeating: false, count: fences.count)
        isUnknown = isWatched

        var crossings: [Crossing] = []
        let indices = fenceSet.indicesByID
        var changed: Set<Int> = []
        for (index, fence) in fences.enumerated() {
            guard let old = before.indices[fence.id] else {
                isUnknown[index] = true
                continue
            }
            isUnknown[index] = before.isUnknown[old]
            if before.fences[old].shape != fence.shape { changed.insert(index) }
        }
        for old in before.watches {
            let fence = before.fences[old.fence]
            guard let index = indices[fence.id] else {
                if old.isInside, old.isRecorded {
                    crossings.append(Crossing(of: fence, .exit, .removed))
                }
                continue
            }
            var kept = old
            kept.fence = index
            if changed.contains(index) {
                kept.pending = nil
                kept.cause = .changed
                kept.clearance = 0
                guard old.isInside else {
                    isUnknown[index] = old.isFirst
                    continue
                }
            }
            watch(kept)
            resetDwell(watches.count - 1)
        }
        lookAgain()
        judgeChanged(changed.sorted(), &crossings)
        findPending()
        Self.order(&crossings)
        return crossings
    }

    /// Where the asset was last reported decides about shapes that changed; nothing is decided before any report.
    private mutating func judgeChanged(_ changed: [Int], _ crossings: inout [Crossing]) {
        guard var last else { return }
        last.opening = nil
        let hysteresis = Self.hysteresis(last)
        var decided: [Crossing] = []
        for fence in changed where !isUnknown[fence] {
            let distance = fenceSet.distance(of: fence, last.coordinate)
            let side = fenceSet.side(of: fence, at: distance, hysteresis: hysteresis)
            if let index = watches.firstIndex(where: { $0.fence == fence }) {
                if side == .outside { judge(index, side, last, true, &decided) }
            } else if side == .inside {
                watch(Watch(fence: fence, cause: .changed))
                judge(watches.count - 1, side, last, true, &decided)
            }
        }
        // It happens now, not when the last fix came.
        for index in decided.indices { decided[index].sighting = nil }
        crossings += decided
    }

    // MARK: Restart

    /// Stays that must go on after a restart, and what says which fences they are of. Silent stays beyond the limit are
    /// left out, and then the fences are new to the next run.
    func store(in state: inout StoredState) {
        let inside = watches.filter(\.isInside)
        // Only what was recorded counts: an ENTER that is owed was not, and an EXIT that is owed ends a stay that was.
        let entered = Set(owed.filter { $0.action == .enter }.map(\.id))
        let left = owed.filter { $0.action == .exit }
        let leftIDs = Set(left.map(\.id))
        var stays = inside.map { watch in
            let fence = fences[watch.fence]
            return StoredState.Stay(
                fence: fence.id, revision: fenceSet.revisions[watch.fence], entered: watch.enteredTime,
                isRecorded: leftIDs.contains(fence.id) || watch.isRecorded && !entered.contains(fence.id),
                dwelled: watch.dwelled, name: fence.name, serverID: fence.serverID)
        }
        let kept = Set(stays.map(\.fence))
        for crossing in left where !kept.contains(crossing.id) && !entered.contains(crossing.id) {
            stays.append(StoredState.Stay(of: crossing))
        }
        state.fenceSet = hasUnknown || stays.count > Self.staysMax ? 0 : fenceSet.number
        state.stays = Array((stays.filter(\.isRecorded) + stays.filter { !$0.isRecorded }).prefix(Self.staysMax))
    }
}

extension StoredState.Stay {
    /// One that an EXIT would end which could not be recorded yet.
    fileprivate init(of exit: GeofenceMonitor.Crossing) {
        self.init(
            fence: exit.id, revision: 0, entered: UTCTime(milliseconds: 0), isRecorded: true, dwelled: true,
            name: exit.name, serverID: exit.serverID)
    }
}

extension GeofenceMonitor.Reason {
    fileprivate init(opening: SegmentOpening?) {
        switch opening {
        case .gap: self = .gap
        case .jump: self = .jump
        case .profile, nil: self = .crossing
        }
    }
}

extension GeofenceMonitor.Crossing {
    /// - Parameter sighting: the first of the fixes that decided; nil = no fix did.
    fileprivate init(
        of fence: Geofence, _ action: GeofenceCrossing.Action, _ reason: GeofenceMonitor.Reason,
        _ sighting: GeofenceMonitor.Sighting? = nil, due: EventTime? = nil
    ) {
        self.init(
            id: fence.id, name: fence.name, serverID: fence.serverID, action: action, reason: reason,
            sighting: sighting, due: due)
    }

    /// EXIT of a fence that is no longer there.
    fileprivate init(of stay: StoredState.Stay) {
        self.init(id: stay.fence, name: stay.name, serverID: stay.serverID, action: .exit, reason: .removed)
    }
}

extension GeofenceMonitor {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(
            isWatched.count == fences.count && isUnknown.count == fences.count,
            "marks of \(isWatched.count) and \(isUnknown.count) of \(fences.count) fences")
        invariant(isWatched.count(where: { $0 }) == watches.count, "\(watches.count) fences are watched")
        invariant(watches.allSatisfy { isWatched[$0.fence] }, "a fence is watched without its mark")
        invariant(recordedStays == watches.count(where: \.isRecorded), "\(recordedStays) stays were recorded")
        invariant(
            watches.allSatisfy { $0.isInside || !$0.isRecorded }, "a stay was recorded, and the asset is not inside")
        invariant(watches.allSatisfy { $0.isInside || $0.pending != nil }, "a fence is watched for nothing")
        invariant(
            watches.allSatisfy { $0.dwellDue == nil || $0.isRecorded && !$0.dwelled },
            "a DWELL is due of a stay that was not recorded, or again")
        invariant(hasUnknown == isUnknown.contains(true), "that a fence is unknown is \(hasUnknown)")
        invariant(unknownFixes >= 0 && unrecorded >= 0, "negative counts")
        invariant((unknownSince == nil) == (unknownFixes == 0), "\(unknownFixes) fixes have looked at unknown fences")
        invariant(pendingSince == watches.compactMap { $0.pending?.at }.min(), "the earliest fix that waits is another")
    }
}
