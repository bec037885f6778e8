import Positioning

// What happens to the fences.
extension GeofenceMonitor {
    /// The fences are others now. Stays in fences that are still there go on.
    /// - Returns: EXITs of fences that are gone, and what another shape changes where the asset was last reported.
    mutating func settingsChanged(_ settings: Settings) -> [Crossing] {
        guard settings != self.settings else { return [] }
        let before = (fences: fences, watches: watches, isUnknown: isUnknown)
        self.settings = settings
        watches = []
        told = 0
        arm(settings.fences)

        var crossings: [Crossing] = []
        let known = Dictionary(before.fences.indices.map { (before.fences[$0].id, $0) }) { first, _ in first }
        var numbers: [String: Int] = [:]
        var changed: [Int] = []
        for (index, fence) in fences.enumerated() {
            numbers[fence.id] = index
            guard let old = known[fence.id] else {
                isUnknown[index] = true
                continue
            }
            isUnknown[index] = before.isUnknown[old]
            if before.fences[old].shape != fence.shape { changed.append(index) }
        }
        let changedFences = Set(changed)
        for old in before.watches {
            let fence = before.fences[old.fence]
            guard let index = numbers[fence.id] else {
                if old.isInside, old.isTold {
                    crossings.append(Crossing(id: fence.id, name: fence.name, action: .exit, reason: .removed))
                }
                continue
            }
            var kept = old
            kept.fence = index
            if changedFences.contains(index) {
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
        lookAnew()
        judgeChanged(changed, &crossings)
        findPending()
        if crossings.count > 1 { Self.order(&crossings) }
        return crossings
    }

    /// Where the asset was last reported decides about shapes that changed; nothing is decided before any report.
    private mutating func judgeChanged(_ changed: [Int], _ crossings: inout [Crossing]) {
        guard var last else { return }
        last.opening = nil
        let reach = Self.reach(last)
        var decided: [Crossing] = []
        for fence in changed where !isUnknown[fence] {
            let side = side(of: fence, distance(of: fence, last.coordinate), reach)
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
}

// What survives a restart.
extension GeofenceMonitor {
    /// Stays that must go on after a restart, and what says which fences they are of. Silent stays beyond the limit are
    /// left out, and then the fences are new to the next run.
    func store(in state: inout StoredState) {
        let inside = watches.filter(\.isInside)
        state.fenceSet = hasUnknown || inside.count > Self.staysMax ? 0 : setNumber
        state.stays = (inside.filter(\.isTold) + inside.filter { !$0.isTold }).prefix(Self.staysMax).map { watch in
            StoredState.Stay(
                fence: fences[watch.fence].id, revision: revisions[watch.fence], entered: watch.enteredTime,
                isTold: watch.isTold, dwelled: watch.dwelled)
        }
    }
}
