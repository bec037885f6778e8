import Positioning

// What time does.
extension GeofenceMonitor {
    /// The longest wait for a decision that would be dated earlier.
    static let decisionMax = Nanoseconds(seconds: 5)

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

    func dwell(in fence: Geofence, _ sighting: Sighting?, _ due: EventTime) -> Crossing {
        Crossing(id: fence.id, name: fence.name, action: .dwell, reason: .dwell, sighting: sighting, due: due)
    }

    mutating func deadlineReached(at: EventTime) -> [Crossing] {
        var crossings: [Crossing] = []
        takeDwells(through: at, nil, &crossings)
        if crossings.count > 1 { Self.order(&crossings) }
        return crossings
    }

    mutating func takeDwells(through at: EventTime, _ sighting: Sighting?, _ crossings: inout [Crossing]) {
        for index in watches.indices {
            guard let deadline = dwellDeadline(index), deadline <= at, let due = watches[index].dwellDue
            else { continue }
            watches[index].dwellDue = nil
            watches[index].dwelled = true
            crossings.append(dwell(in: fences[watches[index].fence], sighting, due))
        }
    }

    /// Longer than a crossing takes to be decided at 1 Hz.
    private static let confirmation = Duration.seconds(10)

    /// The first dated fix of this run within the hours: from here on the time of stays that began in another run can be told.
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

    mutating func resetDwell(_ index: Int) {
        let watch = watches[index]
        watches[index].dwellDue = nil
        guard watch.isInside, watch.isTold, !watch.dwelled, let dwell = fences[watch.fence].dwell,
            let entered = watch.enteredAt
        else { return }
        watches[index].dwellDue = entered + dwell
    }
}
