import WaypostCore

/// Makes records: chooses fixes for each trackable, puts decisions between them, and keeps times and odometer in order.
struct TrackRecorder: Sendable {
    /// One trackable, in the order of the settings.
    private struct Track: Sendable {
        let id: String
        var sampler: LocationSampler
        /// Time of the last record; nil before the first one.
        var recorded: UTCTime?
        /// As published; nil before the first computation.
        var resolution: Resolution?
        /// The answer of the sampler to the fix at hand.
        var selection: LocationSampler.Selection?

        /// In place: a track whose members are read one by one from outside is copied each time.
        /// - Parameter opens: the fix begins a segment.
        mutating func sample(
            _ fix: LocationSampler.Selected, at: EventTime, standing: Bool, late: Bool, opens: Bool,
            _ outcome: inout Outcome
        ) {
            selection = nil
            if late, isPast(fix.time) { return }
            // An event that was dated by the clock of the host may be a moment later than the next fix.
            if !late, let recorded, fix.time < recorded { return }
            outcome.isSampled = true
            if opens {
                sampler.rebase(fix)
                selection = .init(previous: nil, current: .first)
            } else {
                selection = sampler.sample(fix, at: at, resolution: resolution, standing: standing)
            }
            if selection?.current != nil { outcome.isSelected = true }
            if selection?.previous != nil { outcome.keepsPrevious = true }
            if sampler.isOpen { outcome.isOpen = true }
        }

        func isPast(_ time: UTCTime) -> Bool {
            if let recorded, time <= recorded { return true }
            return sampler.newest.map { time <= $0.time } ?? false
        }
    }

    /// A fix that is recorded or not depending on the next one.
    private struct PendingFix: Sendable {
        /// Everything as of the fix.
        var location: Location
        /// A trackable has recorded it.
        var isRecorded: Bool
        /// It represents an asset that stands: it is never kept beside the track.
        var isHeld: Bool
    }

    /// What the samplers of all trackables made of one fix.
    private struct Outcome {
        /// One looked at it.
        var isSampled = false
        /// One keeps it.
        var isSelected = false
        /// One keeps the fix before it.
        var keepsPrevious = false
        /// One may keep it yet.
        var isOpen = false
    }

    private var tracks: [Track]
    /// The last fix that the samplers saw, while one of them may still keep it.
    private var pending: PendingFix?
    /// When it must be kept even if no other one comes.
    private(set) var nextDeadline: EventTime?
    /// Since when the samplers see the held position, and what was pending then; nil while they see fixes as they come.
    private var heldSince: UTCTime?
    private var pendingBeforeHold: PendingFix?
    private var keepsEngineFixes: Bool
    /// Time of the last fix that was recorded for `feed = "engine"` alone.
    private var engineRecorded: UTCTime?
    /// The odometer of the last record.
    private var recordedOdometer = 0.0
    /// Event time of the last record; after a restart of the first fix, since no other is known.
    private(set) var lastRecordAt: EventTime?
    private var newestFix: UTCTime?
    private(set) var hasFixSinceRecord = false
    /// What the samplers saw, for a verification that does not trust them; nil, the default, = not kept.
    var trace: SamplingTrace?

    init(settings: Tracker.Settings, restored: StoredState?) {
        keepsEngineFixes = settings.keepEngineFixes
        tracks = settings.trackables.map { trackable in
            let recorded = restored?.recorded.first { $0.trackable == trackable.id }
            let selected = recorded.map {
                LocationSampler.Selected(time: $0.selectedTime, coordinate: $0.selectedCoordinate)
            }
            return Track(
                id: trackable.id, sampler: LocationSampler(settings: settings.sampling, selected: selected),
                recorded: recorded?.time)
        }
    }

    /// Trackables that are in both settings keep their tracks. Segments must be closed.
    mutating func reload(_ settings: Tracker.Settings) {
        keepsEngineFixes = settings.keepEngineFixes
        tracks = settings.trackables.map { trackable in
            tracks.first { $0.id == trackable.id }
                ?? Track(id: trackable.id, sampler: LocationSampler(settings: settings.sampling))
        }
    }

    /// Whether the samplers choose by other settings than these.
    func samples(otherwiseThan settings: LocationSampler.Settings) -> Bool {
        tracks.contains { $0.sampler.settings != settings }
    }

    /// Segments must be closed.
    mutating func setSampling(_ settings: LocationSampler.Settings) {
        for index in tracks.indices { tracks[index].sampler.settings = settings }
    }

    mutating func setResolution(_ resolution: Resolution?, at index: Int) { tracks[index].resolution = resolution }

    /// Time of the last record of one trackable, in the order of the settings; nil before the first one.
    func lastRecord(at index: Int) -> UTCTime? { tracks[index].recorded }

    /// The latest time with which any trackable was recorded.
    var lastRecord: UTCTime? { tracks.compactMap(\.recorded).max() }

    mutating func fixReceived(_ time: UTCTime, at: EventTime) {
        newestFix = time
        hasFixSinceRecord = true
        lastRecordAt = lastRecordAt ?? at
    }

    /// Where it was parked outside the hours is no news: the first heartbeat is due from here.
    mutating func hoursBegan(at: EventTime) { if lastRecordAt != nil { lastRecordAt = at } }

    /// The next fix cannot be measured from what came before.
    mutating func restartSamplers() {
        for index in tracks.indices { tracks[index].sampler.restart() }
    }

    /// A departure is never dated before the last record, unless that record is of a clock that was ahead.
    mutating func forgetRecords(from time: UTCTime) {
        for index in tracks.indices where (tracks[index].recorded ?? time) >= time { tracks[index].recorded = nil }
        if engineRecorded ?? time >= time { engineRecorded = nil }
    }

    mutating func odometerSet(_ metres: Double) { recordedOdometer = metres }

    func store(in state: inout StoredState, proximityMark: (Int) -> Int) {
        for (index, track) in tracks.enumerated() {
            guard let time = track.recorded, let selected = track.sampler.selected else { continue }
            state.recorded.append(
                StoredState.Recorded(
                    trackable: track.id, time: time, selectedTime: selected.time,
                    selectedCoordinate: selected.coordinate, proximity: proximityMark(index)))
        }
    }

    // MARK: Fixes

    /// A fix from the ring that is not later than the last record is left out.
    func isPast(_ time: UTCTime) -> Bool { tracks.allSatisfy { $0.isPast(time) } }

    /// Samples one fix for every trackable.
    /// - Parameters:
    ///   - late: the fix comes from the ring.
    ///   - opening: why a segment begins with it, for which it is recorded in any case. Segments must be closed.
    /// - Returns: whether a sampler looked at it.
    mutating func sample(
        _ fix: Fix, time: UTCTime, late: Bool, opening: SegmentOpening?, _ context: RecordContext,
        _ effects: inout [Effect]
    ) -> Bool {
        let held = context.held
        // A log stamps its fixes elsewhere; the ring knows when they came.
        let at = late ? fix.at : context.present.at
        let sampled = LocationSampler.Selected(
            time: time, coordinate: held?.coordinate ?? fix.coordinate, speed: held == nil ? fix.speed : 0,
            course: held == nil ? fix.course : nil,
            accuracy: held == nil ? fix.horizontalAccuracy : held?.accuracy)

        var outcome = Outcome()
        for index in tracks.indices {
            tracks[index].sample(
                sampled, at: at, standing: held != nil, late: late, opens: opening != nil, &outcome)
        }
        trace?.add(time, at: at, sampled.coordinate, isHeld: held != nil)
        if held == nil {
            heldSince = nil
        } else if heldSince == nil {
            heldSince = time
            pendingBeforeHold = pending
        }

        if pending != nil {
            for index in tracks.indices where outcome.keepsPrevious {
                guard let trigger = tracks[index].selection?.previous else { continue }
                recordPending(index, trigger, context.present, &effects)
            }
            finishPending(context.present, &effects)
        }
        if outcome.isOpen || outcome.isSelected || (held == nil && keepsEngineFixes) {
            var location = Location(fix, time: time, context, event: .none, reason: nil)
            for index in tracks.indices where outcome.isSelected {
                guard let trigger = tracks[index].selection?.current else { continue }
                location.trackable = tracks[index].id
                location.reason = opening?.rawValue ?? trigger.rawValue
                emit(location, index, context.present, &effects)
            }
            location.trackable = nil
            location.reason = nil
            if outcome.isOpen {
                pending = PendingFix(location: location, isRecorded: outcome.isSelected, isHeld: held != nil)
            } else if !outcome.isSelected, held == nil {
                recordBeside(location, context.present, &effects)
            }
        }
        if outcome.isOpen || nextDeadline != nil { findDeadline() }
        return outcome.isSampled
    }

    /// The asset was thought to stand for a while after it had begun to move: the held positions of that time are
    /// withdrawn, and what was sampled as it came is not sampled again.
    /// - Parameters:
    ///   - time: of the last fix that stood.
    ///   - standing: a record of the place of the halt.
    /// - Returns: whether that fix is to be sampled now.
    mutating func withdrawHeld(from time: UTCTime, standing: Location) -> Bool {
        guard pending != nil, let heldSince else { return false }
        let limit = max(time, heldSince)
        for index in tracks.indices { tracks[index].sampler.withdraw(from: limit) }
        if let sampler = tracks.first?.sampler {
            trace?.withdrawn(from: limit, after: sampler.newest?.time ?? sampler.selected?.time)
        }
        if let pending, pending.location.time >= limit {
            self.pending = nil
            for index in tracks.indices {
                guard let newest = tracks[index].sampler.newest else { continue }
                if newest.time >= heldSince {
                    var held = standing
                    held.coordinate = newest.coordinate
                    held.time = newest.time
                    self.pending = PendingFix(location: held, isRecorded: false, isHeld: true)
                } else if var waiting = pendingBeforeHold {
                    let isKept = tracks.contains { $0.sampler.selected?.time == waiting.location.time }
                    waiting.isRecorded = waiting.isRecorded || isKept
                    self.pending = waiting
                }
            }
        }
        return time >= heldSince
    }

    // MARK: Decisions

    /// Records a decision for every trackable and lets the samplers compare with it.
    ///
    /// A crossing may be dated before fixes that the samplers have seen since. Then it comes before them in the track, and
    /// what follows is measured from it; should the pending fix be out of reach from there, it is kept at once, and only the
    /// few fixes between the two may be off by up to twice the bound.
    mutating func record(_ location: Location, _ present: Present, _ effects: inout [Effect]) {
        closeSegments(before: location, present, &effects)
        var stillOpen = false
        for index in tracks.indices {
            var own = location
            own.trackable = tracks[index].id
            // A decision without a fix of its own is never dated before the last record.
            if location.event != .none, let recorded = tracks[index].recorded { own.time = max(own.time, recorded) }
            let recorded = LocationSampler.Selected(
                time: own.time, coordinate: own.coordinate, speed: own.speed, course: own.course,
                accuracy: own.horizontalAccuracy)
            let datesBack = pending != nil && tracks[index].sampler.newest.map { own.time < $0.time } ?? false
            guard datesBack else {
                tracks[index].sampler.rebase(recorded)
                emit(own, index, present, &effects)
                continue
            }
            let mayWait = tracks[index].sampler.split(at: recorded)
            emit(own, index, present, &effects)
            if mayWait {
                stillOpen = true
            } else {
                keepPending(index, .stateChange, present, &effects)
            }
        }
        if !stillOpen { finishPending(present, &effects) }
        findDeadline()
    }

    /// Records what is no part of any track, for every trackable.
    ///
    /// - Parameters:
    ///   - location: without a place.
    ///   - atLastPlace: with the place of the last record, where there is one.
    ///   - time: of that; nil = unknown: it is that of the last record then.
    func recordBeside(_ location: Location, atLastPlace: Bool, time: UTCTime?, _ effects: inout [Effect]) {
        for track in tracks {
            var own = location
            own.trackable = track.id
            if atLastPlace, let recorded = track.recorded, let selected = track.sampler.selected {
                own.place(at: selected.coordinate, time: max(time ?? recorded, recorded), accuracy: selected.accuracy)
            }
            effects.append(.record(own))
        }
    }

    /// Ends the segments of all samplers: the pending fix is kept, unless the record that comes now keeps the bound
    /// without it.
    mutating func closeSegments(before event: Location? = nil, _ present: Present, _ effects: inout [Effect]) {
        guard let pending else { return }
        // Dated before the pending fix: `record` puts it in its place.
        if let event, event.time < pending.location.time { return }
        for index in tracks.indices where tracks[index].sampler.isOpen {
            if let event, tracks[index].sampler.admits(time: event.time, coordinate: event.coordinate) { continue }
            keepPending(index, .stateChange, present, &effects)
        }
        // A gap is recorded as of the last fix: that fix need not be recorded a second time.
        if let event, event.time == pending.location.time, event.coordinate == pending.location.coordinate {
            self.pending?.isRecorded = true
        }
        finishPending(present, &effects)
        nextDeadline = nil
    }

    /// No other fix came in time.
    mutating func deadlineReached(_ present: Present, _ effects: inout [Effect]) {
        guard let nextDeadline, nextDeadline <= present.at else { return }
        var stillOpen = false
        for index in tracks.indices where tracks[index].sampler.isOpen {
            if let due = tracks[index].sampler.deadline, due <= present.at {
                keepPending(index, .maxDelay, present, &effects)
            } else {
                stillOpen = true
            }
        }
        if !stillOpen { finishPending(present, &effects) }
        findDeadline()
    }

    // MARK: Records

    private mutating func keepPending(
        _ index: Int, _ trigger: LocationSampler.Trigger, _ present: Present, _ effects: inout [Effect]
    ) {
        recordPending(index, trigger, present, &effects)
        tracks[index].sampler.keepNewest()
    }

    private mutating func recordPending(
        _ index: Int, _ trigger: LocationSampler.Trigger, _ present: Present, _ effects: inout [Effect]
    ) {
        guard var own = pending?.location else { return }
        let hasNewerFix = hasFixSinceRecord && newestFix != own.time
        own.trackable = tracks[index].id
        own.reason = trigger.rawValue
        own.at = present.at
        emit(own, index, present, &effects)
        hasFixSinceRecord = hasNewerFix
        pending?.isRecorded = true
    }

    /// Whether the pending fix is recorded has been decided.
    private mutating func finishPending(_ present: Present, _ effects: inout [Effect]) {
        guard keepsEngineFixes, let finished = pending, !finished.isRecorded, !finished.isHeld else {
            return pending = nil
        }
        pending = nil
        recordBeside(finished.location, present, &effects)
    }

    /// Records a fix that no trackable selected, where an endpoint wants all of them: once that is certain, so that no fix
    /// is recorded twice. While standing nothing is kept beside the track: viewers must not see the drift.
    private mutating func recordBeside(_ location: Location, _ present: Present, _ effects: inout [Effect]) {
        guard keepsEngineFixes else { return }
        if let engineRecorded, location.time <= engineRecorded { return }
        engineRecorded = location.time
        var location = location
        location.at = present.at
        location.published = false
        effects.append(.record(location))
    }

    private mutating func emit(_ location: Location, _ index: Int, _ present: Present, _ effects: inout [Effect]) {
        var location = location
        // Dated before another record, or before the odometer was set.
        location.odometer = min(max(location.odometer, recordedOdometer), present.odometer)
        recordedOdometer = location.odometer
        tracks[index].recorded = location.time
        lastRecordAt = present.at
        hasFixSinceRecord = false
        effects.append(.record(location))
    }

    private mutating func findDeadline() {
        nextDeadline = nil
        guard pending != nil else { return }
        for index in tracks.indices {
            guard let due = tracks[index].sampler.deadline else { continue }
            nextDeadline = min(nextDeadline ?? due, due)
        }
    }
}

extension TrackRecorder {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(recordedOdometer.isFinite && recordedOdometer >= 0, "the last record had \(recordedOdometer) m")
    }
}
