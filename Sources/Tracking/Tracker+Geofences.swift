import Positioning

// Geofences see what is reported: held while standing, and back-dated fixes in their order.
extension Tracker {
    private static let heldBackMax = 64

    /// A fix that waits so that a crossing before it is recorded before it.
    struct HeldBack: Sendable {
        var sighting: GeofenceMonitor.Sighting
        var late: Bool
    }

    /// Lets the fences see a reported fix, and records what it decides.
    ///
    /// A crossing is dated at the first of the fixes that decide it. So the fixes between that one and the decision are not
    /// sampled before the decision: else times would run back, or the crossing would be dated late.
    /// - Returns: whether the fix waits for a decision; then it is sampled later.
    mutating func watchFences(_ sighting: GeofenceMonitor.Sighting, late: Bool, _ effects: inout [Effect]) -> Bool {
        let crossings = geofences.reported(sighting)
        for crossing in crossings { record(crossing, &effects) }
        if !crossings.isEmpty { recompute(&effects) }
        guard let since = geofences.pendingSince, heldBack.count < Self.heldBackMax,
            sighting.at < since + GeofenceMonitor.patience
        else {
            release(through: EventTime(nanoseconds: .max), &effects)
            return false
        }
        release(through: since, &effects)
        guard since < sighting.at else { return false }
        heldBack.append(HeldBack(sighting: sighting, late: late))
        return true
    }

    /// Samples the fixes that waited, up to and with an instant.
    mutating func release(through end: EventTime, _ effects: inout [Effect]) {
        guard let first = heldBack.first, first.sighting.at <= end else { return }
        let released = heldBack.prefix { $0.sighting.at <= end }
        heldBack.removeFirst(released.count)
        // What began since does not begin with them.
        let opening = segmentReason
        segmentReason = nil
        for entry in released {
            let sighting = entry.sighting
            pastOdometer = sighting.odometer
            sample(sighting.fix, time: sighting.time, held: sighting.held, late: entry.late, &effects)
        }
        pastOdometer = nil
        segmentReason = opening
    }

    mutating func releaseAll(_ effects: inout [Effect]) {
        if !heldBack.isEmpty { release(through: EventTime(nanoseconds: .max), &effects) }
    }

    var heldBackDue: EventTime? {
        guard !heldBack.isEmpty, let since = geofences.pendingSince else { return nil }
        return since + GeofenceMonitor.patience
    }

    var dwellDue: EventTime? { windowOpen ? geofences.nextDeadline : nil }

    mutating func fenceDeadlineReached(_ effects: inout [Effect]) {
        if let due = heldBackDue, due <= now { releaseAll(&effects) }
        guard let due = dwellDue, due <= now, utc(at: now) != nil else { return }
        for crossing in geofences.deadlineReached(at: now) { record(crossing, &effects) }
    }

    /// The first dated fix of this run within the hours.
    mutating func fencesSawFirstFix(_ effects: inout [Effect]) {
        guard let time = lastFix?.time else { return }
        for crossing in geofences.firstFixReceived(time: time, at: now) { record(crossing, &effects) }
    }

    mutating func fencesChanged(_ fences: GeofenceMonitor.Settings, _ effects: inout [Effect]) {
        settings.geofences = fences
        releaseAll(&effects)
        let crossings = geofences.settingsChanged(fences)
        if utc(at: now) == nil || !windowOpen {
            geofences.owe(crossings)
        } else {
            for crossing in crossings { record(crossing, &effects) }
        }
        if windowOpen, motion.isParked, let place = motion.place { placed(at: place, &effects) }
        recompute(&effects)
    }

    /// Where the asset is parked decides at once about fences that were not looked at yet.
    mutating func placed(at anchor: StoredState.Anchor, _ effects: inout [Effect]) {
        guard !geofences.isEmpty, let fix = lastFix, let time = utc(at: now) else { return }
        let sighting = GeofenceMonitor.Sighting(
            fix: fix, time: time, at: now, held: anchor, odometer: odometer.metres)
        let crossings = geofences.placed(sighting)
        for crossing in crossings { record(crossing, &effects) }
        if !crossings.isEmpty { recompute(&effects) }
    }

    private mutating func record(_ crossing: GeofenceMonitor.Crossing, _ effects: inout [Effect]) {
        release(through: crossing.due ?? crossing.sighting?.at ?? now, &effects)
        var location: Location
        let reason = crossing.reason.rawValue
        if let sighting = crossing.sighting {
            let time = crossing.due.map { sighting.time + $0.duration(since: sighting.at) } ?? sighting.time
            pastOdometer = sighting.odometer
            location = self.location(
                sighting.fix, time: time, at: sighting.held, event: .geofence, reason: reason)
            pastOdometer = nil
        } else {
            guard let time = utc(at: crossing.due.map { min($0, now) } ?? now),
                let here = here(time: time, event: .geofence, reason: reason)
            else { return }
            location = here
        }
        location.geofence = GeofenceCrossing(id: crossing.id, name: crossing.name, action: crossing.action)
        // What waits still is of later times.
        let waiting = heldBack
        heldBack = []
        recordAll(location, &effects)
        heldBack = waiting
    }
}
