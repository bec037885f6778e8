import Positioning

extension Tracker {
    mutating func paceRequested(_ pace: Pace, _ effects: inout [Effect]) {
        guard pace != .auto else {
            pendingPace = nil
            return
        }
        guard let fix = lastFix, let time = fix.time, let at = lastFixAt else {
            pendingPace = pace
            return
        }
        let here = MotionDetector.Moment(at: at, time: time)
        switch (pace, motion.state) {
        case (.moving, .waiting), (.moving, .settling), (.moving, .stationary):
            guard windowOpen else { return }
            perform(motion.departAtOnce(.pace), &effects)
        case (.moving, .stopping(let since)):
            motion.forgetEvidence()
            perform(motion.resumeAtOnce(since), &effects)
        case (.stationary, .waiting), (.stationary, .settling), (.stationary, .moving), (.stationary, .stopping):
            motion.anchor =
                ring.recentPlace(accuracyMax: settings.motion.anchorAccuracy)
                ?? StoredState.Anchor(coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy)
            motion.forgetEvidence()
            ring.keepNewest()
            let standstill = halt ?? here
            perform(motion.stop(.pace, standstill: standstill.time), &effects)
        case (.moving, .moving), (.stationary, .stationary), (.auto, _):
            break
        }
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
    /// After power came on, a little evidence starts a trip for so long.
    private static let primed = Duration.seconds(300)

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

    mutating func confirmPower(_ value: Bool, _ effects: inout [Effect]) {
        power.externalPower = value
        board.powerChanged(power)
        recompute(&effects)
        if let time = utc(at: now), motion.hasPlace,
            let location = here(time: time, event: .power, reason: value ? "power-on" : "power-off")
        {
            recordAll(location, &effects)
        }
        guard windowOpen else { return }
        if value {
            motion.powerOff = nil
            guard motion.state == .stationary else { return }
            if settings.motion.powerStartsTrip, lastFix != nil {
                perform(motion.departAtOnce(.power), &effects)
            } else {
                motion.primedUntil = now + Self.primed
            }
        } else {
            motion.primedUntil = nil
            // Lost in full motion it is a fuse, a plug or a tow, not a stop.
            if motion.window.evidence < settings.motion.resumeEvidence { motion.powerOff = now }
        }
    }

    /// Outside its hours the asset counts as parked, without heartbeats; fixes only keep the time.
    mutating func timeWindowChanged(open: Bool, _ effects: inout [Effect]) {
        guard open != windowOpen else { return }
        if !open { paceRequested(.stationary, &effects) }
        windowOpen = open
        pendingPace = nil
        motion.forgetEvidence()
        ring.removeAll()
    }
}
