import Positioning

extension Tracker {
    /// A due heartbeat waits so long for a departure that the last fixes hint at: else it would be recorded at the old
    /// place, dated after the true start.
    private static let restlessDelay = Duration.seconds(30)

    /// A receiver that tells a fix a minute is not silent for a minute.
    var gapAfterSeconds: Double { max(gapAfter, 3 * interval.seconds) }

    var gapDue: EventTime? {
        guard windowOpen, !gap.isOpen, !cycle.isAsleep, let lastFixAt else { return nil }
        let from = max(lastFixAt, cycle.wokenAt ?? lastFixAt, openedAt ?? lastFixAt)
        return from + Nanoseconds(seconds: gapAfterSeconds)
    }

    mutating func noteVoid() {
        gap.voidEpochs += 1
        gap.lastVoid = now
    }

    var heartbeatDue: EventTime? {
        guard windowOpen, motion.isParked, heartbeatEvery.count > 0, let base = lastRecordAt
        else { return nil }
        let due = base + heartbeatEvery
        return motion.isRestless ? due + Self.restlessDelay : due
    }

    mutating func deadlineReached(_ effects: inout [Effect]) {
        if let pending = pendingPower, pending.due <= now {
            pendingPower = nil
            confirmPower(pending.value, &effects)
        }
        if let due = pendingDue, due <= now { keepOverdue(&effects) }
        if let due = gapDue, due <= now { gapBegan(&effects) }
        // A halt that is dated anew from its last creep may be over by that date too.
        for _ in 0..<2 {
            if windowOpen, let transition = motion.deadlineReached(at: now, plane: plane) {
                perform(transition, &effects)
            }
        }
        towDeadlineReached(&effects)
        if let due = heartbeatDue, due <= now { heartbeat(&effects) }
        fenceDeadlineReached(&effects)
        receiverDeadlineReached(&effects)
        if let due = board.nextDeadline, due <= now {
            board.deadlineReached(at: now)
            recompute(&effects)
        }
    }

    /// A halt that was dated by a clock that has stepped since is dated anew.
    func present(_ standstill: UTCTime) -> UTCTime {
        guard let halt, halt.time == standstill, let present = utc(at: halt.at) else { return standstill }
        return abs(present.milliseconds(since: standstill)) > 2000 ? present : standstill
    }

    mutating func heartbeat(_ effects: inout [Effect]) {
        guard let time = utc(at: now),
            let location = here(time: time, event: .heartbeat, reason: hasFixSinceRecord ? "heartbeat" : "no-fix")
        else { return }
        recordAll(location, &effects)
    }

    private mutating func gapBegan(_ effects: inout [Effect]) {
        gap.isOpen = true
        counters.gaps += 1
        guard var time = lastFix?.time, mayRecordGap(nil) else { return }
        // Silence outside the hours is nobody's business.
        if let openedAt, let opened = utc(at: openedAt) { time = max(time, opened) }
        // A receiver that told of no sky and then went silent is silent.
        let hearsNoSky = gap.lastVoid.map { now.seconds(since: $0) <= max(10, 3 * interval.seconds) } ?? false
        let reason = hearsNoSky ? "no-sky" : power.externalPower == false ? "power" : "receiver-lost"
        recordGap(time: time, reason: reason, &effects)
    }

    private mutating func recordGap(time: UTCTime, reason: String, _ effects: inout [Effect]) {
        guard let location = here(time: time, event: .gap, reason: reason) else { return }
        gap.recordedAt = now
        gap.recordedTime = utc(at: now)
        recordAll(location, &effects)
    }

    /// While parked one in a heartbeat: a flapping plug must not write.
    private func mayRecordGap(_ time: UTCTime?) -> Bool {
        guard motion.isParked else { return motion.isMoving }
        let heartbeat = profiles.stationary.heartbeat
        let pause = heartbeat > .zero ? heartbeat : .seconds(600)
        if let recordedAt = gap.recordedAt { return now.duration(since: recordedAt) >= pause }
        if let recordedTime = gap.recordedTime, let time {
            let elapsed = time.milliseconds(since: recordedTime)
            return elapsed < 0 || elapsed >= pause.milliseconds
        }
        return true
    }

    /// The time without a process is a gap like another; its place and time are those of the last fix before it.
    mutating func firstFixAfterRestart(_ restored: StoredState.LastFix, _ effects: inout [Effect]) {
        restoredFix = nil
        // Earlier than what an earlier run saw: another log, or a clock that was mended. Then nothing lies between, and
        // records that are dated later are no limit to a departure.
        if let time = lastFix?.time, time.milliseconds < restored.time.milliseconds - 2000 {
            forgetRecords(from: time)
            return
        }
        guard windowOpen, mayRecordGap(lastFix?.time) else { return }
        segmentReason = "gap"
        let fix = Fix(
            time: restored.time, timeOfDay: restored.time.timeOfDay, at: now, coordinate: restored.coordinate,
            altitudeMSL: restored.altitudeMSL, altitudeHAE: restored.altitudeHAE,
            horizontalAccuracy: restored.accuracy)
        var location = location(fix, time: restored.time, at: heldAnchor, event: .gap, reason: "restart")
        location.speed = heldAnchor == nil ? nil : 0
        location.mode = nil
        location.quality = nil
        gap.recordedAt = now
        gap.recordedTime = lastFix?.time
        recordAll(location, &effects)
    }
}
