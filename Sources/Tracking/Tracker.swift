import WaypostCore

/// What a fix means: whether it is believed, whether the asset moves or is parked, and which fixes are kept.
///
/// Pure: it holds no clock, and the same events give the same effects, live and in replay. The caller feeds events in
/// order of event time, performs the effects in order, and sends `deadlineReached` when `nextDeadline` has come. It only
/// joins its parts, each of which owns its state and answers with values.
public struct Tracker: Sendable {
    /// A due heartbeat waits this long for a departure that the last fixes hint at: else it would be recorded at the old
    /// place, dated after the true start.
    private static let restlessDelay = Duration.seconds(30)
    /// After another source reported movement, a little evidence starts a trip for this long.
    private static let primed = Duration.seconds(300)
    /// Milliseconds; a standstill that differs more was dated by a clock that has stepped since.
    private static let standstillTolerance = 2000

    private var settings: Settings
    private var profile: ProfileChoice
    private var now = EventTime(nanoseconds: .min)
    private var hasStarted = false
    private var filter: FixFilter
    private var speeds = SpeedTrust()
    private var fixes: FixHistory
    private var gaps: GapWatch
    private var motion: MotionDetector
    private var travel = ActivityClassifier()
    private var trips: TripBook
    private var geofences: GeofenceMonitor
    private var heldBack = HeldBackFixes()
    private var board: ResolutionBoard
    private var recorder: TrackRecorder
    private var cycle: ReceiverCycle
    private var power: PowerMonitor
    private var locating = LocateRequest()
    private var entries: UnplacedEntries
    /// The receiver was released when the process before ended.
    private let restoredRelease: Bool
    /// Requested before the first fix.
    private var pendingPace: Pace?
    /// Why the next fix begins a segment.
    private var opening: SegmentOpening?
    /// nil = none was in force yet, and that of the settings needs no announcement.
    private var announcedRule: LocationSampler.Rule?

    public private(set) var counters = TrackerCounters()
    /// Whether the asset is within the hours in which it is tracked; true where there are none.
    public private(set) var inHours = true
    /// A trip is going on, halts included.
    package var isMoving: Bool { motion.isMoving }

    /// - Parameter restored: what a former run stored with its last record; nil, or not usable = a first start.
    public init(settings: Settings, restored: StoredState?) {
        let restored = restored.flatMap { $0.isUsable ? $0 : nil }
        self.settings = settings
        profile = ProfileChoice(settings)
        filter = FixFilter(settings: settings.admission)
        fixes = FixHistory(span: settings.motion.ring, restored: restored?.lastFix)
        gaps = GapWatch(
            gapAfter: settings.motion.gapAfter, heartbeat: profile.heartbeatSetting, recorded: restored?.lastGap)
        motion = MotionDetector(settings: settings.motion, restored: restored)
        trips = TripBook(restored: restored)
        geofences = GeofenceMonitor(settings: settings.geofences, restored: restored)
        board = ResolutionBoard(
            settings: settings.resolution, policy: settings.policy, trackables: settings.trackables)
        recorder = TrackRecorder(settings: settings, restored: restored)
        cycle = ReceiverCycle(settings: settings.receiver)
        power = PowerMonitor(alarm: settings.batteryAlarm, restored: restored)
        entries = UnplacedEntries(restored?.unplacedEntries ?? [])
        restoredRelease = restored?.released ?? false
        if settings.motion.startMoving { pendingPace = .moving }
        if let restored {
            board.powerChanged(power.state)
            board.restoreProximity(restored.recorded)
        }
    }

    /// - Parameter at: when it happened. Slightly older than the call before (an epoch is stamped with the arrival of its
    ///   first byte) counts as the same instant.
    /// - Returns: what should happen, in order: an announcement, then its location, then the fixes after it.
    public mutating func handle(_ event: TrackerEvent, at: EventTime) -> [Effect] {
        var effects: [Effect] = []
        now = max(now, at)
        if !hasStarted {
            hasStarted = true
            recompute(&effects)
            resumeReceiver(&effects)
        }
        if let end = board.boostEnd, end <= now { boostChanged(nil, &effects) }
        switch event {
        case .fixReceived(let fix):
            fixReceived(fix, &effects)
        case .noFix:
            counters.voidEpochs += 1
            gaps.voidEpoch(at: now)
        case .sourceStateChanged:
            speeds.begin()
        case .externalPowerChanged(let value):
            if let value, power.externalPowerChanged(value, at: now) { powerChanged(&effects) }
        case .batteryChanged(let percent, let charging):
            power.batteryChanged(percent: percent, charging: charging)
            board.batteryRead(at: now)
            powerChanged(&effects)
            reportLowBattery(&effects)
        case .movementSourceChanged(_, let moving):
            travel.movementReported(moving)
            // A source that knows nothing of places can hint at a departure, never make one, and never a stop.
            if moving, inHours, !motion.isMoving { prime(.movementSource, &effects) }
        case .paceRequested(let pace):
            paceRequested(pace, &effects)
        case .panicRequested:
            if !recordHere(.panic, &effects) { effects.append(.count(.panicRefused)) }
        case .locateRequested: locate(&effects)
        case .observed(let observation): record(observation, &effects)
        case .fencesChanged(let fences):
            settings.geofences.fences = fences
            fencesChanged(&effects)
        case .subscriberChanged(let change):
            if board.subscriberChanged(change) {
                recompute(&effects)
            } else {
                effects.append(.count(.subscriberRefused))
            }
        case .engineSet(let resolution):
            board.constantEngine = resolution
            recompute(&effects)
        case .boostChanged(let boost):
            closeSegments(&effects)
            boostChanged(boost, &effects)
        case .settingsReloaded(let settings):
            reload(settings, &effects)
        case .timeWindowChanged(.tracking, let open):
            hoursChanged(open: open, &effects)
        case .timeWindowChanged(.hours(let hours), let open):
            board.hoursChanged(hours, open: open)
            recompute(&effects)
        case .refreshRequested:
            board.refresh()
            recompute(&effects)
        case .odometerSet(let metres):
            guard metres.isFinite else { break }
            trips.odometerSet(metres)
            recorder.odometerSet(trips.metres)
        case .deadlineReached:
            deadlineReached(&effects)
        case .flushRequested:
            closeSegments(&effects)
        case .shutdown:
            closeSegments(&effects)
            if let gap = gaps.current {
                effects.append(.announceGap(from: gap.since, to: nil, reason: gap.reason))
            }
        }
        for effect in effects { counters.count(effect) }
        if Invariants.areChecked { checkInvariants() }
        return effects
    }

    /// The last dated fix plus the event time elapsed since; nil before the first dated fix of this run.
    public func utc(at: EventTime) -> UTCTime? { fixes.utc(at: at) }

    private mutating func reload(_ settings: Settings, _ effects: inout [Effect]) {
        closeSegments(&effects)
        self.settings = settings
        profile = ProfileChoice(settings)
        filter.settings = settings.admission
        fixes.reload(span: settings.motion.ring)
        gaps.reload(gapAfter: settings.motion.gapAfter, heartbeat: profile.heartbeatSetting)
        motion.reload(settings.motion)
        power.alarm = settings.batteryAlarm
        perform(cycle.reload(settings.receiver, isParked: motion.isParked, at: now), &effects)
        if cycle.isReleased, !settings.motion.stopOnStationary { wakeReceiver(&effects) }
        board.reload(settings: settings.resolution, trackables: settings.trackables)
        // With the last place, since destinations may have changed.
        if let place = heldPlace?.coordinate ?? fixes.newest?.coordinate {
            board.placeReported(place, speed: fixes.speed(at: now))
        }
        recorder.reload(settings)
        fencesChanged(&effects)
        recompute(&effects)
    }

    // MARK: Fixes

    private mutating func fixReceived(_ fix: Fix, _ effects: inout [Effect]) {
        let verdict = filter.admit(fix, at: now)
        guard isAdmitted(verdict, &effects), let time = fix.time else { return }
        counters.admitted += 1
        if speeds.observe(fix, at: now) { forgetSpeeds() }
        if speeds.isStuck {
            admitted(withoutSpeed(fix), time: time, verdict, &effects)
        } else {
            admitted(fix, time: time, verdict, &effects)
        }
    }

    /// A speed that is 0 whatever the position does is unknown.
    private func withoutSpeed(_ fix: Fix) -> Fix {
        var fix = fix
        fix.speed = nil
        fix.course = nil
        return fix
    }

    // A function of its own, so that the fix is not copied for the sake of those whose speed is unknown.
    @inline(never)
    private mutating func admitted(
        _ fix: Fix, time: UTCTime, _ verdict: FixFilter.Verdict, _ effects: inout [Effect]
    ) {
        let arrival = fixes.append(fix, time: time, at: now, measuresInterval: !gaps.hasVoidEpochs)
        let stepped = arrival.clockStep != nil
        let afterGap = gaps.isGap(arrival.silence, interval: fixes.interval)
        trips.fixReceived(
            time, at: now, afterGap: afterGap, clockStep: arrival.clockStep, isMoving: motion.isMoving)
        if afterGap || stepped || verdict != .admitted {
            // Nothing is known about the way between the fixes on both sides.
            closeSegments(&effects)
            recorder.restartSamplers()
            // Not before: a pending fix is recorded by the old clock.
            if stepped || verdict == .admittedAfterClockStep { recorder.forgetRecords(from: time) }
            fixes.keepNewest()
            if verdict == .admittedAfterJump || stepped {
                motion.forgetEvidence()
                geofences.forgetEvidence()
            }
            if verdict == .admittedAfterJump {
                trips.interrupted()
                opening = .jump
            } else if afterGap {
                opening = .gap
            }
        }
        if let gap = gaps.current {
            effects.append(.announceGap(from: gap.since, to: max(gap.since, time), reason: gap.reason))
        }
        gaps.fixReceived()
        cycle.fixReceived(at: now)
        if let restored = arrival.restored {
            if verdict != .admittedAfterJump { trips.wentOn(from: restored, to: time, at: now) }
            firstFixAfterRestart(restored, time, &effects)
        }
        recorder.fixReceived(time, at: now)
        if inHours, geofences.awaitsFix {
            for crossing in geofences.firstFixReceived(time: time, at: now) { record(crossing, &effects) }
        }

        guard inHours else {
            stopOutsideHours(&effects)
            return
        }
        let sighting = Sighting(
            fix: fix, time: time, at: now, plane: fixes.plane, interval: fixes.interval, silence: arrival.silence)
        let transition = motion.observe(sighting)
        observeActivity(fix)
        if let transition {
            perform(transition, &effects)
        } else {
            track(fix, time: time, &effects)
        }
        if let pace = pendingPace {
            pendingPace = nil
            paceRequested(pace, &effects)
        }
        if power.isLow { reportLowBattery(&effects) }
        recordLocated(fix, time: time, &effects)
    }

    private mutating func forgetSpeeds() {
        fixes.forgetSpeeds()
        motion.forgetSpeeds()
    }

    private mutating func observeActivity(_ fix: Fix) {
        guard let speed = fix.speed ?? motion.evidence.speed else { return }
        // Where external power starts a trip it is the ignition.
        let engineRuns = settings.motion.powerStartsTrip ? power.state.externalPower : nil
        travel.observe(
            speed, velocity: motion.velocity, isMean: fix.speed == nil, altitude: fix.altitudeMSL,
            noise: motion.noiseSpeed, halts: motion.phase == .stopping, engineRuns: engineRuns, at: now,
            interval: fixes.interval)
    }

    /// How the asset travels, as far as it is known: nil before enough was seen, and outside the hours.
    private var activity: Activity? {
        guard inHours else { return nil }
        return motion.isParked ? Activity(kind: .still, confidence: 100) : travel.activity
    }

    private mutating func isAdmitted(_ verdict: FixFilter.Verdict, _ effects: inout [Effect]) -> Bool {
        switch verdict {
        case .admitted: return true
        case .admittedAfterJump: effects.append(.count(.jump))
        case .admittedAfterClockStep: effects.append(.count(.clockStep))
        case .rejected(let reason):
            // A dateless fix, or a repeated one, is no sign of a missing sky.
            if reason != .duplicate, reason != .dateless { gaps.voidEpoch(at: now) }
            effects.append(.count(.rejected(reason)))
            return false
        }
        return true
    }

    /// The time without a process is a gap like another; its place and time are those of the last fix before it.
    private mutating func firstFixAfterRestart(
        _ last: StoredState.LastFix, _ time: UTCTime, _ effects: inout [Effect]
    ) {
        // Earlier than what an earlier run saw: another log, or a clock that was corrected. Then there is no gap, and
        // records that are dated later are no limit to a departure.
        guard time.milliseconds >= last.time.milliseconds - 2000 else {
            recorder.forgetRecords(from: time)
            return
        }
        guard inHours, mayRecordGap(time) else { return }
        opening = .gap
        let fix = Fix(
            time: last.time, timeOfDay: last.time.timeOfDay, at: now, coordinate: last.coordinate,
            altitudeMSL: last.altitudeMSL, altitudeHAE: last.altitudeHAE, horizontalAccuracy: last.accuracy)
        let reason = RecordReason.restart
        var location = Location(
            fix, time: last.time, context(held: heldPlace), event: reason.event, reason: reason.rawValue)
        location.removeReception()
        gaps.recorded(time, at: now)
        record(location, &effects)
    }

    /// A fix that changes nothing about the motion state.
    private mutating func track(_ fix: Fix, time: UTCTime, _ effects: inout [Effect]) {
        switch motion.phase {
        case .waiting, .settling:
            break
        case .stationary:
            placeReported(heldPlace?.coordinate ?? fix.coordinate, &effects)
            if geofences.needsPlace, let place = motion.place { parked(at: place, &effects) }
            if let due = heartbeatDue, due <= now { heartbeat(&effects) }
            if board.boost != nil { sample(fix, time: time, late: false, context(held: heldPlace), &effects) }
        case .moving:
            advance(to: fix, time: time, at: now)
            trips.observe(speed: motion.dopplerSpeed, max: settings.admission.speedMax)
            report(fix, time: time, at: now, held: nil, &effects)
        case .stopping:
            report(fix, time: time, at: now, held: heldPlace, &effects)
        }
    }

    private mutating func trackNewest(_ effects: inout [Effect]) {
        if let fix = fixes.newest, let time = fix.time, now == fixes.newestAt { track(fix, time: time, &effects) }
    }

    private mutating func advance(to fix: Fix, time: UTCTime, at: EventTime) {
        trips.advance(
            to: fix, time: time, at: at, speedMax: settings.admission.speedMax, noise: motion.noiseSpeed,
            gap: gaps.span(interval: fixes.interval))
    }

    /// Passes on a position as it is reported: proximity, geofences, then sampling. It is held while standing, so that drift
    /// crosses no fence.
    /// - Parameter late: the fix comes from the ring.
    private mutating func report(
        _ fix: Fix, time: UTCTime, at: EventTime, held: StoredState.Anchor?, late: Bool = false,
        _ effects: inout [Effect]
    ) {
        placeReported(held?.coordinate ?? fix.coordinate, &effects)
        if !geofences.isEmpty {
            let sighting = GeofenceMonitor.Sighting(
                fix: fix, time: time, at: at, held: held, odometer: trips.metres,
                opening: held == nil ? opening : nil)
            if waitsForFences(sighting, late: late, &effects) { return }
        }
        sample(fix, time: time, late: late, context(held: held), &effects)
    }

    private mutating func placeReported(_ place: Coordinate, _ effects: inout [Effect]) {
        let speed = fixes.speed(at: now)
        board.motionChanged(motion.phase, speed: speed)
        board.activityChanged(activity?.kind)
        board.placeReported(place, speed: speed)
        if board.isStale { recompute(&effects) }
    }

    private mutating func sample(
        _ fix: Fix, time: UTCTime, late: Bool, _ context: RecordContext, _ effects: inout [Effect]
    ) {
        if late, recorder.isPast(time) { return }
        let opening = context.held == nil ? opening : nil
        if opening != nil { closeSegments(&effects) }
        let isSampled = recorder.sample(fix, time: time, late: late, opening: opening, context, &effects)
        if opening != nil, isSampled { self.opening = nil }
    }

    // MARK: Motion

    private mutating func perform(_ transition: MotionDetector.Transition, _ effects: inout [Effect]) {
        switch transition {
        case .settled(let reason, let place):
            announceStop(reason, at: place, standstill: fixes.newest?.time, &effects)
        case .departed(let reason, let place):
            departed(reason, from: place, &effects)
        case .moved(let from, let to):
            movedUnseen(from: from, to: to, &effects)
        case .departedAtOnce(let reason, let place):
            fixes.keepNewest()
            departed(reason, from: place, at: utc(at: now), &effects)
        case .halted(let moment, let noise):
            trips.halted(since: moment, noise: noise)
            trackNewest(&effects)
        case .crept(let moment, let metres):
            if let halt = trips.halt { announceHalt(since: halt.time, to: moment.time, &effects) }
            trips.crept(since: moment, metres: metres)
            trackNewest(&effects)
        case .resumed(let moment, let place):
            resumed(from: place, since: moment, &effects)
        case .movementWasNoise(let moment):
            trips.movementWasNoise(since: moment)
            trackNewest(&effects)
        case .stopped(let reason, let place, let standstill):
            announceStop(reason, at: place, standstill: redated(standstill), &effects)
        case .stoppedAndDeparted(let place, let standstill):
            announceStop(.gap, at: place, standstill: standstill, &effects)
            departed(.gap, from: place, &effects)
        }
    }

    /// A halt that was dated by a clock that has stepped since is dated by the clock of now. None begins before its trip.
    private func redated(_ standstill: UTCTime) -> UTCTime {
        var standstill = standstill
        if let halt = trips.halt, halt.time == standstill, let time = utc(at: halt.at),
            abs(time.milliseconds(since: standstill)) > Self.standstillTolerance
        {
            standstill = time
        }
        return trips.departure.map { max($0, standstill) } ?? standstill
    }

    /// - Parameter reported: the departure where it was reported and not found in the ring.
    private mutating func departed(
        _ reason: MotionReason, from anchor: StoredState.Anchor?, at reported: UTCTime? = nil,
        _ effects: inout [Effect]
    ) {
        let isByPosition = reason == .backupFence || reason == .fence
        if isByPosition, speeds.departed() { forgetSpeeds() }
        guard let fix = fixes.newest, let fixTime = fix.time else { return }
        var index = fixes.ring.departure(
            notBefore: nil, plane: fixes.plane, interval: fixes.interval, noise: motion.noiseSpeed)
        // It may stand there, moved in a silence: then it does so since the first fix there.
        let radius =
            reason == .backupFence
            ? settings.motion.backupRadius : settings.motion.stationaryRadius + Tuning.fenceAccuracyMax
        if isByPosition, let anchor, let there = fixes.ring.firstBeyond(radius, from: anchor.coordinate) {
            index = min(index ?? there, there)
        }
        let departure = index.map { fixes.ring[$0] }
        let from = departure?.fix ?? fix
        let at = departure?.at ?? now
        var time = reported ?? from.time ?? fixTime
        // A heartbeat may have been recorded since: time does not run back within a trackable.
        if let recorded = recorder.lastRecord, recorded >= time { time = recorded + .milliseconds(1) }
        let left = anchor.flatMap { hasLeft($0, from.coordinate, before: index) ? $0 : nil }
        let coordinate = left?.coordinate ?? from.coordinate
        trips.departed(
            time, at: reported == nil ? at : now, from: coordinate,
            withoutPower: anchor != nil && power.state.externalPower == false)
        effects.append(
            .announceMotion(
                MotionChange(
                    moving: true, reason: reason, at: now, decided: utc(at: now), since: time,
                    coordinate: coordinate, evidence: motion.evidence)))
        perform(cycle.departed(at: now), &effects)
        recompute(&effects)
        record(
            Location(from, time: time, context(held: left), event: .motionchange, reason: reason.rawValue), &effects)
        trips.start(at: from, time: from.time ?? fixTime, at: at)
        opening = nil
        replay(after: index, &effects)
    }

    /// Whether the asset was seen to leave from this place.
    private func hasLeft(_ anchor: StoredState.Anchor, _ from: Coordinate, before index: Int?) -> Bool {
        let radius = settings.motion.stationaryRadius
        // A fix far off among others that are here is a reflection.
        let wasHere = index.map { fixes.ring.wasMostly(within: radius, of: anchor.coordinate, before: $0) } ?? false
        return wasHere || anchor.coordinate.distance(to: from) <= radius + Tuning.gapMargin
    }

    private mutating func resumed(
        from anchor: StoredState.Anchor, since halt: MotionDetector.Moment, _ effects: inout [Effect]
    ) {
        var index = fixes.ring.departure(
            notBefore: halt.at, plane: fixes.plane, interval: fixes.interval, noise: motion.noiseSpeed,
            evidence: Tuning.creepEvidence)
        // A creep that was too slow to be told from noise began where it left the place.
        if let there = fixes.ring.lastAt(anchor.coordinate, notBefore: halt.at) { index = index.map { min($0, there) } }
        let from = index.map { fixes.ring[$0] }
        if let end = from?.time ?? utc(at: now) { announceHalt(since: halt.time, to: end, &effects) }
        trips.resumed(from: from, place: anchor.coordinate, since: halt)
        guard let from else { return }
        let standing = standing(anchor, time: from.time, event: .none, reason: "")
        if recorder.withdrawHeld(from: from.time, standing: standing) {
            let accuracy = from.horizontalAccuracy ?? FixFilter.unknownAccuracy
            let held = anchor.coordinate.distance(to: from.coordinate) <= accuracy ? anchor : nil
            sample(from.fix, time: from.time, late: true, context(held: held), &effects)
        }
        replay(after: index, &effects)
    }

    private func announceHalt(since halt: UTCTime, to end: UTCTime, _ effects: inout [Effect]) {
        let since = redated(halt)
        effects.append(.announceHalt(from: since, to: max(since, end)))
    }

    /// The fixes of the ring after the last one that stood, as if they came now.
    private mutating func replay(after index: Int?, _ effects: inout [Effect]) {
        guard let index, index + 1 < fixes.ring.count else { return }
        for position in (index + 1)..<fixes.ring.count {
            let entry = fixes.ring[position]
            let fix = entry.fix
            advance(to: fix, time: entry.time, at: entry.at)
            report(fix, time: entry.time, at: entry.at, held: nil, late: true, &effects)
        }
    }

    private mutating func announceStop(
        _ reason: MotionReason, at anchor: StoredState.Anchor, standstill: UTCTime?, _ effects: inout [Effect]
    ) {
        guard let decided = utc(at: now) else { return }
        let ended = trips.stopped(standstill: standstill, decided: decided)
        opening = nil
        travel.begin()
        // The next trip may begin with the same fix: the stop is one even so, and the pending fixes are of a trip.
        let stop = standing(anchor, time: decided, moving: false, event: .motionchange, reason: reason.rawValue)
        closeSegments(before: stop, moving: ended != nil || motion.isMoving, &effects)
        effects.append(
            .announceMotion(
                MotionChange(
                    moving: false, reason: reason, at: now, decided: decided, since: standstill,
                    coordinate: anchor.coordinate, evidence: motion.evidence, trip: ended)))
        recompute(&effects)
        record(stop, &effects)
        if settings.tripSummary, let ended {
            var summary = standing(anchor, time: decided, moving: false, event: .trip, reason: reason.rawValue)
            summary.trip = ended
            record(summary, &effects)
        }
        let released = settings.motion.stopOnStationary && ended != nil && reason != .pace
        perform(cycle.parked(released: released, at: now), &effects)
        parked(at: anchor, moving: false, &effects)
    }

    /// It stands elsewhere, and nobody saw the way: that is a gap and no trip.
    private mutating func movedUnseen(
        from old: StoredState.Anchor, to place: StoredState.Anchor, _ effects: inout [Effect]
    ) {
        guard let time = utc(at: now) else { return }
        effects.append(.announceMove(at: time, metres: old.coordinate.distance(to: place.coordinate)))
        let reason = RecordReason.moved
        record(standing(place, time: time, event: reason.event, reason: reason.rawValue), &effects)
        parked(at: place, opening: .gap, &effects)
        opening = nil
    }

    private mutating func paceRequested(_ pace: Pace, _ effects: inout [Effect]) {
        // Outside its hours it is parked, whatever is requested.
        guard inHours else { return }
        guard pace != .auto else {
            pendingPace = nil
            return
        }
        guard let fix = fixes.newest, let time = fix.time, let at = fixes.newestAt else {
            pendingPace = pace
            if pace == .moving { wakeReceiver(&effects) }
            return
        }
        if pace == .moving { return moveAtOnce(.pace, &effects) }
        guard !motion.isParked else { return }
        let place =
            fixes.ring.recentPlace(accuracyMax: settings.motion.anchorAccuracy)
            ?? StoredState.Anchor(coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy)
        motion.forgetEvidence()
        fixes.keepNewest()
        let standstill = trips.halt ?? MotionDetector.Moment(at: at, time: time)
        perform(motion.park(.pace, at: place, standstill: standstill.time), &effects)
    }

    private mutating func moveAtOnce(_ reason: MotionReason, _ effects: inout [Effect]) {
        let present = utc(at: now).map { MotionDetector.Moment(at: now, time: $0) }
        if let transition = motion.moveAtOnce(reason, now: present) { perform(transition, &effects) }
    }

    /// Less evidence is asked for a while, and the receiver wakes.
    private mutating func prime(_ reason: MotionReason, _ effects: inout [Effect]) {
        motion.expectDeparture(reason, until: now + Self.primed)
        perform(cycle.roused(for: Self.primed, at: now), &effects)
    }

    // MARK: Hours

    /// Outside its hours the asset counts as parked, without heartbeats, and nothing is recorded but a panic; fixes
    /// only keep the time.
    private mutating func hoursChanged(open: Bool, _ effects: inout [Effect]) {
        guard open != inHours else { return }
        inHours = open
        pendingPace = nil
        if open {
            if fixes.newestAt != nil { gaps.hoursBegan(at: now) }
            recorder.hoursBegan(at: now)
            motion.beginAgain()
            geofences.resumed(at: now)
            // A released one too: it followed the asset until the hours ended, and is wanted again.
            wakeReceiver(&effects)
        } else {
            stopOutsideHours(&effects)
        }
        motion.forgetEvidence()
        fixes.clearRing()
    }

    /// Where it stood, or was last seen, when the hours ended. After a restart that is where the run before saw it.
    private mutating func stopOutsideHours(_ effects: inout [Effect]) {
        guard motion.isMoving, let time = fixes.newest?.time else { return }
        if let transition = motion.parkOutsideHours(since: trips.halt?.time, lastFix: time) {
            perform(transition, &effects)
        }
    }

    // MARK: Geofences

    /// - Returns: whether the fix waits for a decision of the fences; then it is sampled later.
    private mutating func waitsForFences(
        _ sighting: GeofenceMonitor.Sighting, late: Bool, _ effects: inout [Effect]
    ) -> Bool {
        let crossings = geofences.reported(sighting)
        for crossing in crossings { record(crossing, &effects) }
        if !crossings.isEmpty { recompute(&effects) }
        guard let since = geofences.pendingSince, heldBack.mayHold(sighting, since: since) else {
            releaseHeldBack(&effects)
            return false
        }
        releaseHeldBack(through: since, &effects)
        guard since < sighting.at else { return false }
        heldBack.hold(sighting, late: late)
        return true
    }

    /// Samples the fixes that waited, up to and including an instant.
    private mutating func releaseHeldBack(
        through end: EventTime = EventTime(nanoseconds: .max), moving: Bool? = nil, _ effects: inout [Effect]
    ) {
        if heldBack.isEmpty { return }
        for entry in heldBack.release(through: end) {
            let sighting = entry.sighting
            if entry.isLate, recorder.isPast(sighting.time) { continue }
            // A segment that has begun since does not begin with them.
            _ = recorder.sample(
                sighting.fix, time: sighting.time, late: entry.isLate, opening: nil,
                context(held: sighting.held, moving: moving, odometer: sighting.odometer), &effects)
        }
    }

    private var dwellDue: EventTime? { inHours && !motion.isElsewhere ? geofences.nextDeadline : nil }

    private mutating func fenceDeadlineReached(_ effects: inout [Effect]) {
        if let due = heldBack.due(since: geofences.pendingSince), due <= now { releaseHeldBack(&effects) }
        guard let due = dwellDue, due <= now, utc(at: now) != nil else { return }
        for crossing in geofences.deadlineReached(at: now) { record(crossing, &effects) }
    }

    private mutating func fencesChanged(_ effects: inout [Effect]) {
        releaseHeldBack(&effects)
        let crossings = geofences.settingsChanged(settings.geofences)
        if utc(at: now) == nil || !inHours {
            geofences.owe(crossings)
        } else {
            for crossing in crossings { record(crossing, &effects) }
        }
        if inHours, motion.isParked, let place = motion.place { parked(at: place, &effects) }
        recompute(&effects)
    }

    /// Where the asset is parked decides at once about fences that were not looked at yet.
    /// - Parameter opening: why nobody saw the way to there; nil = it was seen.
    private mutating func parked(
        at anchor: StoredState.Anchor, moving: Bool? = nil, opening: SegmentOpening? = nil,
        _ effects: inout [Effect]
    ) {
        guard !geofences.isEmpty, let fix = fixes.newest, let time = utc(at: now) else { return }
        let sighting = GeofenceMonitor.Sighting(
            fix: fix, time: time, at: now, held: anchor, odometer: trips.metres, opening: opening)
        let crossings = geofences.placed(sighting)
        for crossing in crossings { record(crossing, moving: moving, &effects) }
        if !crossings.isEmpty { recompute(&effects) }
    }

    private mutating func record(
        _ crossing: GeofenceMonitor.Crossing, moving: Bool? = nil, _ effects: inout [Effect]
    ) {
        releaseHeldBack(through: crossing.due ?? crossing.sighting?.at ?? now, moving: moving, &effects)
        var location: Location
        let reason = crossing.reason.rawValue
        if let sighting = crossing.sighting {
            let time = crossing.due.map { sighting.time + $0.duration(since: sighting.at) } ?? sighting.time
            location = Location(
                sighting.fix, time: time,
                context(held: sighting.held, moving: moving, odometer: sighting.odometer), event: .geofence,
                reason: reason)
        } else {
            guard let time = utc(at: crossing.due.map { min($0, now) } ?? now),
                let here = here(time: time, event: .geofence, reason: reason)
            else { return }
            location = here
        }
        location.geofence = GeofenceCrossing(
            id: crossing.id, name: crossing.name, action: crossing.action, serverID: crossing.serverID)
        // The fixes that still wait are later than the crossing.
        recorder.record(location, present, &effects)
    }

    // MARK: Records

    private var present: Present { Present(at: now, odometer: trips.metres) }

    /// - Parameters: nil = as now.
    private func context(
        held: StoredState.Anchor?, moving: Bool? = nil, odometer: Double? = nil
    ) -> RecordContext {
        RecordContext(
            present: present, moving: moving ?? motion.isMoving, odometer: odometer ?? trips.metres, held: held,
            power: power.state, activity: activity)
    }

    /// The place that records carry while standing. Outside the hours it is not watched whether the asset left: a panic
    /// carries where it is.
    private var heldPlace: StoredState.Anchor? {
        guard settings.motion.staticNavigation, inHours else { return nil }
        return motion.heldPlace(at: now)
    }

    /// The record of an asset that stands, as of the last fix if one came since the last record.
    private func standing(
        _ anchor: StoredState.Anchor, time: UTCTime, moving: Bool? = nil, event: LocationEvent, reason: String
    ) -> Location {
        let last = fixes.newest
        let fix = recorder.hasFixSinceRecord ? last : nil
        return Location(
            trackable: nil, time: time, at: now, coordinate: anchor.coordinate,
            altitudeMSL: last?.altitudeMSL, altitudeHAE: last?.altitudeHAE, horizontalAccuracy: anchor.accuracy,
            speed: 0, hdop: fix?.hdop, satellitesUsed: fix?.satellitesUsed, mode: fix?.mode, quality: fix?.quality,
            moving: moving ?? motion.isMoving, event: event, reason: reason, odometer: trips.metres,
            power: power.state, activity: activity)
    }

    /// The record of something that happened to the asset where it was last reported; nil before it has a place.
    private func here(time: UTCTime, event: LocationEvent, reason: String) -> Location? {
        guard let fix = fixes.newest else { return nil }
        if let anchor = heldPlace { return standing(anchor, time: time, event: event, reason: reason) }
        var location = Location(fix, time: time, context(held: nil), event: event, reason: reason)
        if !recorder.hasFixSinceRecord { location.removeReception() }
        return location
    }

    /// - Returns: false before there is a time and a place to record.
    private mutating func recordHere(_ reason: RecordReason, _ effects: inout [Effect]) -> Bool {
        guard let time = utc(at: now),
            let location = here(time: time, event: reason.event, reason: reason.rawValue)
        else { return false }
        record(location, &effects)
        return true
    }

    /// With the place where the asset was last reported; without one before there is any, and outside of the hours. What
    /// was entered at a place is left at one in any case: that of the last record.
    private mutating func record(_ observation: Observation, _ effects: inout [Effect]) {
        var crossing = observation.geofence
        var placed: Location?
        if inHours, let time = utc(at: now) {
            placed = here(time: time, event: observation.event, reason: observation.reason)
        }
        if crossing?.action == .exit {
            let wasUnplaced = entries.left(crossing?.id)
            crossing?.entryIsUnplaced = wasUnplaced
        }
        if crossing?.action == .enter, placed == nil { entries.entered(crossing?.id) }
        if var placed {
            placed.geofence = crossing
            return record(placed, &effects)
        }
        var location = Location(
            unplaced: observation.event, reason: observation.reason, at: now, moving: motion.isMoving,
            odometer: trips.metres, power: power.state)
        location.geofence = crossing
        let endsAtPlace = crossing?.action == .exit && crossing?.entryIsUnplaced == false
        recorder.recordBeside(location, atLastPlace: endsAtPlace, time: utc(at: now), &effects)
    }

    /// Records a decision, after all fixes before it.
    private mutating func record(_ location: Location, _ effects: inout [Effect]) {
        releaseHeldBack(&effects)
        recorder.record(location, present, &effects)
    }

    /// The newest fix as a record of it would be; nil before a first one.
    public var newestLocation: Location? {
        guard let fix = fixes.newest, let time = fix.time else { return nil }
        return Location(fix, time: time, context(held: heldPlace), event: .none, reason: nil)
    }

    /// Where each trackable is on its way as of the newest fix, whether or not that is recorded; empty while the asset is parked,
    /// outside the hours, and before a first fix.
    public var positions: [Location] {
        guard inHours, motion.isMoving, let position = newestLocation else { return [] }
        return settings.trackables.map { trackable in
            var own = position
            own.trackable = trackable.id
            return own
        }
    }

    private mutating func closeSegments(
        before event: Location? = nil, moving: Bool? = nil, _ effects: inout [Effect]
    ) {
        releaseHeldBack(moving: moving, &effects)
        recorder.closeSegments(before: event, present, &effects)
    }

    // MARK: Resolution

    private mutating func recompute(_ effects: inout [Effect]) {
        let chosen = profile.choose(
            isMoving: motion.isMoving, boost: board.boost, isWatched: board.isWatched,
            isEngineSet: board.constantEngine != nil)
        if let chosen {
            filter.settings.accuracyMax = chosen.accuracyMax
            board.defaultResolution = chosen.resolution
            if recorder.samples(otherwiseThan: chosen.sampling) {
                // Fixes that wait for a decision of the fences go on waiting: once recorded, they would date a crossing late.
                recorder.closeSegments(present, &effects)
                recorder.setSampling(chosen.sampling)
            }
            if let announcedRule, announcedRule != profile.rule {
                effects.append(.announceRule(profile.rule, because: profile.ruleReason))
            }
            announcedRule = profile.rule
        }
        board.insideFencesChanged(Set(geofences.inside))
        board.motionChanged(motion.phase, speed: fixes.speed(at: now))
        board.activityChanged(activity?.kind)
        let isCapped = !motion.isMoving && board.boost == nil && profile.heartbeatSetting > .zero
        board.recompute(cap: isCapped ? profile.heartbeatSetting : nil, into: &effects)
        for index in board.entries.indices { recorder.setResolution(board.entries[index].published, at: index) }
        guard settings.receiver.sleepMoving, let engine = board.engine else { return }
        let interval = Duration.milliseconds(engine.intervalMs)
        perform(
            cycle.intervalChanged(interval, sleepMax: settings.motion.noFixTimeout / 2, at: now), &effects)
    }

    private mutating func boostChanged(_ boost: Boost?, _ effects: inout [Effect]) {
        guard board.boostChanged(boost, at: now) else { return }
        // A viewer who asks for more sees where the asset is with the next fix.
        if motion.isMoving { opening = opening ?? .profile }
        recompute(&effects)
    }

    // MARK: Power

    private mutating func powerChanged(_ effects: inout [Effect]) {
        board.powerChanged(power.state)
        recompute(&effects)
    }

    /// The announcement waits for nothing; the record for a place and for the hours, and it carries the level of then.
    private mutating func reportLowBattery(_ effects: inout [Effect]) {
        guard power.isAlarmDue else { return }
        if power.alarmAnnounced() { effects.append(.announceLowBattery(power.state)) }
        if inHours, recordHere(.batteryLow, &effects) { power.alarmRecorded() }
    }

    private mutating func externalPowerConfirmed(_ value: Bool, _ effects: inout [Effect]) {
        powerChanged(&effects)
        defer { reportLowBattery(&effects) }
        guard inHours else { return }
        if motion.hasPlace { _ = recordHere(value ? .powerOn : .powerOff, &effects) }
        guard value else { return motion.externalPowerWentOff(at: now) }
        motion.externalPowerCame()
        trips.towingSettled()
        guard !motion.isMoving else { return }
        if settings.motion.powerStartsTrip, fixes.newest != nil {
            moveAtOnce(.power, &effects)
        } else {
            prime(.power, &effects)
        }
    }

    // MARK: Receiver

    private mutating func perform(_ order: ReceiverCycle.Order?, _ effects: inout [Effect]) {
        switch order {
        case nil: break
        case .sleep(let until): effects.append(.sleepReceiver(until: until))
        case .wake: effects.append(.wakeReceiver)
        }
    }

    /// The asset was parked when the process ended: its receiver goes on sleeping, or settles again.
    private mutating func resumeReceiver(_ effects: inout [Effect]) {
        guard motion.isParked else {
            if motion.isMoving { perform(cycle.departed(at: now), &effects) }
            return
        }
        let released = restoredRelease && settings.motion.stopOnStationary && pendingPace != .moving
        perform(cycle.parked(released: released, at: now), &effects)
    }

    private mutating func wakeReceiver(_ effects: inout [Effect]) {
        if cycle.isAsleep || cycle.isReleased { perform(cycle.parked(released: false, at: now), &effects) }
    }

    private mutating func locate(_ effects: inout [Effect]) {
        guard inHours else { return }
        if let resolution = locating.begin(engine: board.engine, at: now) { effects.append(.setReceiver(resolution)) }
        perform(cycle.looked(for: LocateRequest.limit, at: now), &effects)
    }

    private mutating func endLocate(_ effects: inout [Effect]) {
        if let resolution = locating.end(engine: board.engine) { effects.append(.setReceiver(resolution)) }
    }

    /// The fix itself, also of an asset that stands: who asks wants to know where it is, not where it is taken to be.
    private mutating func recordLocated(_ fix: Fix, time: UTCTime, _ effects: inout [Effect]) {
        guard let until = locating.deadline else { return }
        endLocate(&effects)
        guard now <= until else { return }
        let reason = RecordReason.located
        record(
            Location(fix, time: time, context(held: nil), event: reason.event, reason: reason.rawValue), &effects)
    }

    // MARK: Deadlines

    /// The earliest event time at which something is due without any event; nil = nothing is.
    public var nextDeadline: EventTime? {
        var next = EventTime(nanoseconds: .max)
        if let due = motion.nextDeadline, inHours { next = min(next, due) }
        if let due = gapDue { next = min(next, due) }
        if let due = heartbeatDue { next = min(next, due) }
        if let due = power.nextDeadline { next = min(next, due) }
        if let due = towDue { next = min(next, due) }
        if let due = cycle.nextDeadline { next = min(next, due) }
        if let due = board.nextDeadline { next = min(next, due) }
        if let due = recorder.nextDeadline { next = min(next, due) }
        if let due = heldBack.due(since: geofences.pendingSince) { next = min(next, due) }
        if let due = dwellDue { next = min(next, due) }
        if let due = locating.deadline { next = min(next, due) }
        return next.nanoseconds == .max ? nil : next
    }

    private var gapDue: EventTime? {
        guard inHours, !cycle.isAsleep, let last = fixes.newestAt else { return nil }
        return gaps.due(lastFix: last, woken: cycle.wokenAt, interval: fixes.interval)
    }

    private var heartbeatDue: EventTime? {
        guard inHours, motion.isParked, profile.heartbeat.count > 0, let base = recorder.lastRecordAt else {
            return nil
        }
        let due = base + profile.heartbeat
        return motion.isRestless ? due + Self.restlessDelay : due
    }

    private var towDue: EventTime? { inHours ? trips.towDue : nil }

    private mutating func deadlineReached(_ effects: inout [Effect]) {
        if let value = power.deadlineReached(at: now) { externalPowerConfirmed(value, &effects) }
        recorder.deadlineReached(present, &effects)
        if let due = gapDue, due <= now { gapBegan(&effects) }
        // A halt that is dated again from its last creep may be over by that date too.
        for _ in 0..<2 {
            if inHours, let transition = motion.deadlineReached(at: now, plane: fixes.plane) {
                perform(transition, &effects)
            }
        }
        if let due = towDue, due <= now {
            trips.towingSettled()
            _ = recordHere(.movedWithoutPower, &effects)
        }
        if let due = heartbeatDue, due <= now { heartbeat(&effects) }
        fenceDeadlineReached(&effects)
        // Restlessness of minutes ago says nothing about now.
        let isRestless = motion.isRestless && fixes.isFresh(fixes.newestAt, at: now)
        perform(cycle.deadlineReached(at: now, isRestless: isRestless), &effects)
        if board.deadlineReached(at: now) { recompute(&effects) }
        if let due = locating.deadline, due <= now { endLocate(&effects) }
    }

    private mutating func heartbeat(_ effects: inout [Effect]) {
        _ = recordHere(recorder.hasFixSinceRecord ? .heartbeat : .noFix, &effects)
    }

    private mutating func gapBegan(_ effects: inout [Effect]) {
        guard var time = fixes.newest?.time else { return }
        // Silence outside the hours is not recorded.
        if let openedAt = gaps.openedAt, let opened = utc(at: openedAt) { time = max(time, opened) }
        // A receiver that reported no sky and then fell silent is silent.
        let hearsNoSky = fixes.isFresh(gaps.lastVoid, at: now)
        let reason: RecordReason =
            hearsNoSky ? .noSky : power.state.externalPower == false ? .power : .receiverLost
        gaps.began(since: time, reason: reason)
        counters.gaps += 1
        guard mayRecordGap(nil) else { return }
        guard let location = here(time: time, event: reason.event, reason: reason.rawValue) else { return }
        gaps.recorded(utc(at: now), at: now)
        record(location, &effects)
    }

    /// - Parameter time: of the fix that ends the gap; nil when it begins.
    private func mayRecordGap(_ time: UTCTime?) -> Bool {
        motion.isParked ? gaps.mayRecord(time, at: now) : motion.isMoving
    }
}

// MARK: What is stored and shown

extension Tracker {
    /// All that must survive a restart, to be stored in the transaction of the records that it belongs to.
    public var state: StoredState {
        var state = StoredState()
        motion.store(in: &state)
        fixes.store(in: &state)
        trips.store(in: &state)
        power.store(in: &state)
        geofences.store(in: &state)
        recorder.store(in: &state, proximityMark: board.proximityMark)
        state.unplacedEntries = entries.ids
        state.lastGap = gaps.recordedTime
        state.released = hasStarted ? cycle.isReleased : restoredRelease
        return state
    }

    /// What `waypost status` shows.
    public var snapshot: TrackerSnapshot {
        let (last, restored) = (fixes.newest, fixes.restored)
        return TrackerSnapshot(
            motion: motion.phase, activity: activity, since: trips.halt?.time ?? trips.since,
            lastFixTime: last?.time ?? restored?.time,
            lastCoordinate: last?.coordinate ?? restored?.coordinate,
            lastAccuracy: last == nil ? restored?.accuracy : last?.horizontalAccuracy,
            reportedCoordinate: heldPlace?.coordinate ?? last?.coordinate ?? restored?.coordinate,
            inHours: inHours, boost: board.boost, boostUntil: board.boostEnd.flatMap { utc(at: $0) },
            inGap: gaps.isOpen,
            receiverSleep: cycle.isReleased ? .released : cycle.asleepUntil.map { .until($0) },
            engine: board.engine ?? settings.resolution.constantEngine ?? settings.resolution.default,
            isEngineConstant: board.constantEngine != nil, rule: profile.rule, ruleReason: profile.ruleReason,
            trackables: board.snapshot(lastRecord: recorder.lastRecord(at:)), odometer: trips.metres,
            gapMetres: trips.gapMetres, power: power.state, batteryLow: power.isLow,
            fences: geofences.fences.count, fencesRefused: geofences.refused, staysUnrecorded: geofences.unrecorded,
            inside: geofences.inside.sorted())
    }

    /// What `waypost top` shows beside it.
    public var look: TrackerLook {
        TrackerLook(
            fix: fixes.newest, fixAt: fixes.newestAt, heldPlace: heldPlace?.coordinate, evidence: motion.evidence,
            outlook: inHours ? motion.outlook : MotionOutlook(), published: board.published)
    }

    /// External power as it will be unless it changes back within moments; nil = it is as it was.
    public var awaitedPower: Bool? { power.awaited }

    /// What the samplers saw, for a verification that does not trust them; nil, the default, = not kept.
    package var samplingTrace: SamplingTrace? {
        get { recorder.trace }
        set { recorder.trace = newValue }
    }
}

extension Tracker {
    /// What holds between two events.
    private func checkInvariants() {
        filter.checkInvariants()
        fixes.checkInvariants()
        gaps.checkInvariants()
        travel.checkInvariants()
        trips.checkInvariants()
        geofences.checkInvariants()
        board.checkInvariants()
        recorder.checkInvariants()
        cycle.checkInvariants()
        power.checkInvariants()
        invariant(trips.metres.isFinite, "the odometer is no number")
        invariant(fixes.newestAt.map { $0 <= now } ?? true, "the newest fix is of the future")
        invariant(hasStarted, "it has not started")
    }
}
