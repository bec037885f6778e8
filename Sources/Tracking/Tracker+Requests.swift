import Positioning

extension Tracker {
    mutating func paceRequested(_ pace: Pace, _ effects: inout [Effect]) {
        // Outside its hours it is parked, whatever is said.
        guard windowOpen else { return }
        guard pace != .auto else {
            pendingPace = nil
            return
        }
        guard let fix = lastFix, let time = fix.time, let at = lastFixAt else {
            pendingPace = pace
            if pace == .moving { awaken(&effects) }
            return
        }
        if pace == .moving { return moveAtOnce(.pace, &effects) }
        guard !motion.isParked else { return }
        let place =
            ring.recentPlace(accuracyMax: settings.motion.anchorAccuracy)
            ?? StoredState.Anchor(coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy)
        motion.forgetEvidence()
        ring.keepNewest()
        let standstill = halt ?? MotionDetector.Moment(at: at, time: time)
        perform(motion.park(.pace, at: place, standstill: standstill.time), &effects)
    }

    private mutating func moveAtOnce(_ reason: MotionReason, _ effects: inout [Effect]) {
        let here = utc(at: now).map { MotionDetector.Moment(at: now, time: $0) }
        if let transition = motion.moveAtOnce(reason, now: here) { perform(transition, &effects) }
    }

    mutating func panicRequested(_ effects: inout [Effect]) {
        guard let time = utc(at: now), let location = here(time: time, event: .panic, reason: "panic") else {
            counters.panicsRefused += 1
            effects.append(.count(.panicRefused))
            return
        }
        recordAll(location, &effects)
    }

    /// A starter motor makes the voltage dip: a change counts when it has lasted so long.
    private static let debounce = Duration.seconds(3)

    mutating func externalPowerChanged(_ value: Bool?, _ effects: inout [Effect]) {
        guard let value else { return }
        guard let known = power.externalPower else {
            power.externalPower = value
            board.powerChanged(power)
            recompute(&effects)
            return
        }
        if value == known {
            pendingPower = nil
        } else if pendingPower?.value != value {
            pendingPower = PendingPower(value: value, due: now + Self.debounce)
        }
    }

    mutating func batteryChanged(percent: Int?, charging: Bool?, _ effects: inout [Effect]) {
        power.batteryPercent = percent.map { max(0, min(100, $0)) }
        power.charging = charging
        board.batteryRead(at: now)
        board.powerChanged(power)
        recompute(&effects)
        batteryAlarm.observe(power, settings.batteryAlarm)
        tellLowBattery(&effects)
    }

    /// The announcement waits for nothing; the record for a place and for the hours, and it carries the level of then.
    mutating func tellLowBattery(_ effects: inout [Effect]) {
        guard batteryAlarm.isDue(power, settings.batteryAlarm) else { return }
        if !batteryAlarm.isAnnounced {
            batteryAlarm.announced()
            effects.append(.announceLowBattery(power))
        }
        guard windowOpen, let time = utc(at: now), let location = here(time: time, event: .power, reason: "battery-low")
        else { return }
        batteryAlarm.told()
        recordAll(location, &effects)
    }

    mutating func confirmPower(_ value: Bool, _ effects: inout [Effect]) {
        power.externalPower = value
        board.powerChanged(power)
        recompute(&effects)
        defer { tellLowBattery(&effects) }
        guard windowOpen else { return }
        if let time = utc(at: now), motion.hasPlace,
            let location = here(time: time, event: .power, reason: value ? "power-on" : "power-off")
        {
            recordAll(location, &effects)
        }
        if value {
            motion.externalPowerCame()
            trip?.withoutPower = false
            guard !motion.isMoving else { return }
            if settings.motion.powerStartsTrip, lastFix != nil {
                moveAtOnce(.power, &effects)
            } else {
                prime(.power, &effects)
            }
        } else {
            motion.externalPowerWentOff(at: now)
        }
    }
}
