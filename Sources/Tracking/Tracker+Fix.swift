import Positioning

extension Tracker {
    mutating func fixReceived(_ fix: Fix, _ effects: inout [Effect]) {
        let verdict = filter.admit(fix, at: now)
        guard isAdmitted(verdict, &effects), let time = fix.time else { return }
        counters.admitted += 1

        let silence = silence(before: time)
        if let lastFixAt, gap.voidEpochs == 0 { interval.observe(now.seconds(since: lastFixAt)) }
        follow(fix.coordinate)
        let stepped = clockStepped(to: time)
        if (silence ?? 0) >= Odometer.gap { haltWasUnseen = true }
        let afterGap = gap.isOpen || (silence ?? 0) >= gapAfterSeconds
        if afterGap || stepped || verdict != .admitted {
            // Nothing is known about the way between the fixes on both sides.
            closeSegments(&effects)
            for index in tracks.indices { tracks[index].sampler.restart() }
            // Not before: a fix that waited is recorded by the old clock.
            if stepped || verdict == .admittedAfterClockStep { forgetRecords(from: time) }
            ring.removeAll()
            if verdict == .admittedAfterJump || stepped {
                motion.forgetEvidence()
                geofences.forgetEvidence()
            }
            if verdict == .admittedAfterJump {
                odometer.stop()
                segmentReason = "jump"
            } else if afterGap {
                segmentReason = "gap"
            }
        }
        ring.append(fix, time: time, at: now)
        lastFix = fix
        lastFixAt = now
        averageSpeed.observe(fix.speed, at: now)
        // After a restart the heartbeat counts from here: no other time is known.
        lastRecordAt = lastRecordAt ?? now
        gap.isOpen = false
        gap.voidEpochs = 0
        gap.lastVoid = nil
        cycle.fixReceived(at: now)
        redateDeparture(time)
        if let restored = restoredFix { firstFixAfterRestart(restored, &effects) }
        hasFixSinceRecord = true
        if windowOpen, geofences.awaitsFix { fencesSawFirstFix(&effects) }

        guard windowOpen else {
            stopOutsideHours(&effects)
            return
        }
        let sighting = Sighting(
            fix: fix, time: time, at: now, plane: plane, interval: interval.seconds, silence: silence)
        if let transition = motion.observe(sighting) {
            perform(transition, &effects)
        } else {
            take(fix, time: time, &effects)
        }
        if let pace = pendingPace {
            pendingPace = nil
            paceRequested(pace, &effects)
        }
        if batteryAlarm.isLow { tellLowBattery(&effects) }
    }

    private mutating func isAdmitted(_ verdict: FixFilter.Verdict, _ effects: inout [Effect]) -> Bool {
        switch verdict {
        case .admitted:
            return true
        case .admittedAfterJump:
            counters.jumps += 1
            effects.append(.count(.jump))
            return true
        case .admittedAfterClockStep:
            counters.clockSteps += 1
            effects.append(.count(.clockStep))
            return true
        case .rejected(let reason):
            counters.countRejection(reason)
            // A dateless fix, or one told twice, is no sign of a missing sky.
            if reason != .duplicate, reason != .dateless { noteVoid() }
            effects.append(.count(.rejected(reason)))
            return false
        }
    }

    /// Seconds since the last believed fix; across a restart by the receiver's time, since no other clock knows.
    private func silence(before time: UTCTime) -> Double? {
        if let lastFixAt { return now.seconds(since: lastFixAt) }
        guard let restoredFix else { return nil }
        let (elapsed, overflow) = time.milliseconds.subtractingReportingOverflow(restoredFix.time.milliseconds)
        return overflow ? 0 : max(0, Double(elapsed) / 1000)
    }

    /// The plane moves with the asset, so that its scale stays good to a part in a thousand.
    private mutating func follow(_ coordinate: Coordinate) {
        let north = abs(Int64(coordinate.latitudeE7) - Int64(plane.origin.latitudeE7))
        let east = abs(Int64(coordinate.longitudeE7) - Int64(plane.origin.longitudeE7))
        if north > 300_000 || east > 10_000_000 { plane = LocalPlane(origin: coordinate) }
    }

    /// The receiver's clock no longer agrees with the event time: what was dated before is of another clock.
    private mutating func clockStepped(to time: UTCTime) -> Bool {
        guard let lastFixAt, let last = lastFix?.time else { return false }
        let told = Double(time.milliseconds) - Double(last.milliseconds)
        let step = told - 1000 * now.seconds(since: lastFixAt)
        guard abs(step) > 2000 else { return false }
        // A trip keeps its length. Less may be a reader that was held up, and comes right by itself.
        if abs(step) > 10_000, abs(step) < 1e15, let start = trip?.start {
            trip?.start = start + .milliseconds(Int64(step))
        }
        return true
    }

    /// A departure is never dated before the last record, unless that record is of a clock that was ahead.
    mutating func forgetRecords(from time: UTCTime) {
        for index in tracks.indices where (tracks[index].recorded ?? time) >= time { tracks[index].recorded = nil }
        if engineRecorded ?? time >= time { engineRecorded = nil }
    }

    mutating func perform(_ transition: MotionDetector.Transition, _ effects: inout [Effect]) {
        switch transition {
        case .settled(let reason, let place):
            since = lastFix?.time
            announceStop(reason, at: place, standstill: since, &effects)
        case .departed(let reason, let place):
            departed(reason, from: place, &effects)
        case .departedAtOnce(let reason, let place):
            ring.keepNewest()
            departed(reason, from: place, at: utc(at: now), &effects)
        case .halted(let moment, let noise):
            halt = moment
            haltWasUnseen = false
            odometer.takeBack(noise)
            if let fix = lastFix, let time = fix.time { take(fix, time: time, &effects) }
        case .crept(let moment, let metres):
            if let halt { trip?.idle += max(0, moment.at.seconds(since: halt.at)) }
            halt = moment
            odometer.add(metres)
            if let fix = lastFix, let time = fix.time, now == lastFixAt { take(fix, time: time, &effects) }
        case .resumed(let moment, let place):
            resumed(from: place, since: moment, &effects)
        case .stoodOn(let moment):
            halt = moment
            trip?.idle -= lastIdle
            lastIdle = 0
            if let fix = lastFix, let time = fix.time { take(fix, time: time, &effects) }
        case .stopped(let reason, let place, let standstill):
            announceStop(reason, at: place, standstill: present(standstill), &effects)
        case .stoppedAndDeparted(let place, let standstill):
            announceStop(.gap, at: place, standstill: standstill, &effects)
            if let fix = lastFix { odometer.addGap(place.coordinate.distance(to: fix.coordinate)) }
            departed(.gap, from: place, &effects)
        }
    }

    /// An ordinary fix in the present state.
    mutating func take(_ fix: Fix, time: UTCTime, _ effects: inout [Effect]) {
        switch motion.phase {
        case .waiting, .settling:
            break
        case .stationary:
            reported(at: heldAnchor?.coordinate ?? fix.coordinate, &effects)
            if geofences.needsPlace, let place = motion.place { placed(at: place, &effects) }
            if let due = heartbeatDue, due <= now { heartbeat(&effects) }
            if boostUntil != nil { sample(fix, time: time, held: heldAnchor, late: false, &effects) }
        case .moving:
            advance(fix, time: time, at: now, &effects)
        case .stopping:
            report(fix, time: time, at: now, held: heldAnchor, &effects)
        }
    }

    private mutating func advance(_ fix: Fix, time: UTCTime, at: EventTime, _ effects: inout [Effect]) {
        odometer.advance(
            to: fix, time: time, at: at, speedMax: settings.admission.speedMax, noise: motion.noiseSpeed)
        if let speed = motion.dopplerSpeed, speed > trip?.maxSpeed ?? 0,
            speed <= settings.admission.speedMax
        {
            trip?.maxSpeed = speed
        }
        report(fix, time: time, at: at, held: nil, &effects)
    }

    /// - Parameters:
    ///   - anchor: the place that it left; nil = none was known.
    ///   - told: the departure where it was told and not found.
    private mutating func departed(
        _ reason: MotionReason, from anchor: StoredState.Anchor?, at told: UTCTime? = nil, _ effects: inout [Effect]
    ) {
        guard let fix = lastFix, let fixTime = fix.time else { return }
        let index = ring.departure(
            notBefore: nil, plane: plane, interval: interval.seconds, noise: motion.noiseSpeed)
        let departure = index.map { ring[$0] }
        let from = departure?.fix ?? fix
        var time = told ?? from.time ?? fixTime
        // A heartbeat may have been recorded since: time does not run back within a trackable.
        if let recorded = lastRecordedTime, recorded >= time { time = recorded + .milliseconds(1) }
        let parked = anchor.flatMap { anchor in
            let distance = anchor.coordinate.distance(to: from.coordinate)
            let radius = settings.motion.stationaryRadius
            // A fix far off in the midst of others that lie here is a reflection: the asset was seen to leave from here.
            let left = index.map { ring.lay(within: radius, of: anchor.coordinate, before: $0) } ?? false
            return left || distance <= radius + Tuning.gapMargin ? anchor : nil
        }
        let coordinate = parked?.coordinate ?? from.coordinate
        counters.trips += 1
        since = time
        halt = nil
        departedAt = told == nil ? departure?.at ?? now : now
        trip = StoredState.Trip(
            start: time, startCoordinate: coordinate, startOdometer: odometer.metres, idle: 0, maxSpeed: nil,
            withoutPower: anchor != nil && power.externalPower == false)
        // Nobody saw how it got there; after a gap that has been counted.
        if parked == nil, reason != .gap, let anchor {
            odometer.addGap(anchor.coordinate.distance(to: coordinate))
        }
        effects.append(
            .announceMotion(
                MotionChange(
                    moving: true, reason: reason, at: now, decided: utc(at: now), since: time,
                    coordinate: coordinate, evidence: motion.evidence)))
        perform(cycle.departed(at: now), &effects)
        recompute(&effects)
        recordAll(
            location(from, time: time, at: parked, event: .motionchange, reason: reason.rawValue), &effects)
        odometer.start(at: from, time: from.time ?? fixTime, at: departure?.at ?? now)
        segmentReason = nil
        replay(after: index, &effects)
    }

    private mutating func resumed(
        from anchor: StoredState.Anchor, since halt: MotionDetector.Moment, _ effects: inout [Effect]
    ) {
        counters.halts += 1
        self.halt = nil
        guard
            let index = ring.departure(
                notBefore: halt.at, plane: plane, interval: interval.seconds, noise: motion.noiseSpeed)
        else { return }
        let from = ring[index]
        lastIdle = max(0, from.at.seconds(since: halt.at))
        trip?.idle += lastIdle
        let moved = anchor.coordinate.distance(to: from.coordinate)
        if haltWasUnseen {
            odometer.addGap(moved)
        } else if moved > from.horizontalAccuracy ?? FixFilter.unknownAccuracy {
            odometer.add(moved)
        }
        odometer.start(at: from.fix, time: from.time, at: from.at)
        takeBackHeld(from, anchor, &effects)
        replay(after: index, &effects)
    }

    /// The fixes of the ring after the last one that stood, as if they came now; those that lie before the last record
    /// count on the odometer only.
    private mutating func replay(after index: Int?, _ effects: inout [Effect]) {
        guard let index, index + 1 < ring.count else { return }
        for position in (index + 1)..<ring.count {
            let entry = ring[position]
            let fix = entry.fix
            odometer.advance(
                to: fix, time: entry.time, at: entry.at, speedMax: settings.admission.speedMax,
                noise: motion.noiseSpeed)
            report(fix, time: entry.time, at: entry.at, held: nil, late: true, &effects)
        }
    }

    mutating func announceStop(
        _ reason: MotionReason, at anchor: StoredState.Anchor, standstill: UTCTime?, _ effects: inout [Effect]
    ) {
        guard let decided = utc(at: now) else { return }
        let ended = trip.map { trip in
            TripSummary(
                start: trip.start, startCoordinate: trip.startCoordinate, end: standstill ?? decided,
                distance: max(0, odometer.metres - trip.startOdometer), idle: trip.idle, maxSpeed: trip.maxSpeed)
        }
        if ended != nil { counters.stops += 1 }
        trip = nil
        since = standstill
        halt = nil
        odometer.stop()
        segmentReason = nil
        // The detector may be further already: what waited was of a trip, and the stop is one even where the next trip
        // begins with the same fix.
        pastMoving = false
        let stop = standing(anchor, time: decided, event: .motionchange, reason: reason.rawValue)
        pastMoving = ended == nil ? nil : true
        closeSegments(before: stop, &effects)
        pastMoving = false
        effects.append(
            .announceMotion(
                MotionChange(
                    moving: false, reason: reason, at: now, decided: decided, since: standstill,
                    coordinate: anchor.coordinate, evidence: motion.evidence, trip: ended)))
        recompute(&effects)
        recordAll(stop, &effects)
        if settings.tripSummary, let ended {
            var summary = standing(anchor, time: decided, event: .trip, reason: reason.rawValue)
            summary.trip = ended
            recordAll(summary, &effects)
        }
        let released = settings.motion.stopOnStationary && ended != nil && reason != .pace
        departedAt = nil
        perform(cycle.parked(released: released, at: now), &effects)
        placed(at: anchor, &effects)
        pastMoving = nil
    }
}
