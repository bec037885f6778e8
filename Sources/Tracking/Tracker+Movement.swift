import Positioning

// What other witnesses than the receiver say of movement, and what follows for the receiver.
extension Tracker {
    /// After another source told movement, a little evidence starts a trip for so long.
    private static let primed = Duration.seconds(300)
    /// Moving for so long without external power is no trip of the asset's own.
    private static let towedAfter = Duration.seconds(120)

    /// A source that knows nothing of places can hint at a departure, never make one, and never a stop.
    mutating func movementSourceChanged(moving: Bool, _ effects: inout [Effect]) {
        guard moving, windowOpen, !motion.isMoving else { return }
        prime(.movementSource, &effects)
    }

    /// Less evidence is asked for a while, and the receiver looks.
    mutating func prime(_ reason: MotionReason, _ effects: inout [Effect]) {
        motion.expectDeparture(reason, until: now + Self.primed)
        perform(cycle.roused(for: Self.primed, at: now), &effects)
    }

    mutating func perform(_ order: ReceiverCycle.Order?, _ effects: inout [Effect]) {
        switch order {
        case nil: break
        case .sleep(let until): effects.append(.sleepReceiver(until: until))
        case .wake: effects.append(.wakeReceiver)
        }
    }

    mutating func receiverDeadlineReached(_ effects: inout [Effect]) {
        // What was restless minutes ago says nothing now.
        let isFresh = lastFixAt.map { now.seconds(since: $0) <= max(10, 3 * interval.seconds) } ?? false
        perform(cycle.deadlineReached(at: now, isRestless: isFresh && motion.isRestless), &effects)
    }

    /// The asset was parked when the process ended: its receiver goes on sleeping, or settles anew.
    mutating func resumeReceiver(_ effects: inout [Effect]) {
        guard motion.isParked else {
            if motion.isMoving { perform(cycle.departed(at: now), &effects) }
            return
        }
        let released = restoredRelease && settings.motion.stopOnStationary && pendingPace != .moving
        perform(cycle.parked(released: released, at: now), &effects)
    }

    mutating func reloadReceiver(_ effects: inout [Effect]) {
        perform(cycle.reload(settings.receiver, isParked: motion.isParked, at: now), &effects)
        if cycle.isReleased, !settings.motion.stopOnStationary { awaken(&effects) }
    }

    /// A fix is wanted now.
    mutating func awaken(_ effects: inout [Effect]) {
        if cycle.isAsleep { perform(cycle.parked(released: false, at: now), &effects) }
    }

    /// A trip that began without power may be a tow truck's.
    var towDue: EventTime? {
        guard windowOpen, trip?.withoutPower == true, let departedAt else { return nil }
        return departedAt + Self.towedAfter
    }

    mutating func towDeadlineReached(_ effects: inout [Effect]) {
        guard let due = towDue, due <= now else { return }
        trip?.withoutPower = false
        guard let time = utc(at: now), let location = here(time: time, event: .power, reason: "moved-without-power")
        else { return }
        recordAll(location, &effects)
    }

    /// Event times mean nothing after a restart: when a trip began follows from its date.
    mutating func redateDeparture(_ time: UTCTime) {
        guard departedAt == nil, let trip, motion.isMoving else { return }
        let ago = min(max(0, time.milliseconds(since: trip.start)), Self.towedAfter.milliseconds)
        departedAt = now + .milliseconds(-ago)
    }

    /// The trip so far keeps its length.
    mutating func odometerSet(_ metres: Double) {
        guard metres.isFinite else { return }
        let before = odometer.metres
        odometer.set(metres)
        recordedOdometer = odometer.metres
        trip?.startOdometer += odometer.metres - before
    }
}
