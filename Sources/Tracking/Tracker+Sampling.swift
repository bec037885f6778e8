import Positioning

extension Tracker {
    /// A fix whose fate depends on the next one.
    struct PendingFix: Sendable {
        /// Everything as of the fix.
        var location: Location
        /// A trackable has recorded it.
        var isRecorded: Bool
        /// It stands for an asset that stands: it is never kept beside the track.
        var isHeld: Bool
    }

    /// What the samplers of all trackables made of one fix.
    struct Taken {
        /// One looked at it.
        var isTaken = false
        /// One keeps it.
        var isSelected = false
        /// One keeps the fix before it.
        var keepsPrevious = false
        /// One may keep it yet.
        var isOpen = false
    }

    /// Samples one fix for every trackable.
    /// - Parameters:
    ///   - held: the place that a standing asset reports instead of the fix.
    ///   - late: the fix comes from the ring; one that is not later than the last record is left out.
    mutating func sample(
        _ fix: Fix, time: UTCTime, held: StoredState.Anchor?, late: Bool, _ effects: inout [Effect]
    ) {
        if late, tracks.allSatisfy({ $0.isPast(time) }) { return }
        let opening = held == nil ? segmentReason : nil
        if opening != nil { closeSegments(&effects) }
        // A log stamps its fixes elsewhere; the ring tells when they came.
        let at = late ? fix.at : now
        let looked = LocationSampler.Selected(
            time: time, coordinate: held?.coordinate ?? fix.coordinate, speed: held == nil ? fix.speed : 0,
            course: held == nil ? fix.course : nil,
            accuracy: held == nil ? fix.horizontalAccuracy : held?.accuracy)

        var seen = Taken()
        for index in tracks.indices {
            tracks[index].take(
                looked, at: at, resolution: board.entries[index].published, standing: held != nil, late: late,
                opens: opening != nil, &seen)
        }
        samplingTrace?.taken(time, at: at, looked.coordinate, isHeld: held != nil)
        if held == nil {
            heldSince = nil
        } else if heldSince == nil {
            heldSince = time
            beforeHold = pending
        }

        if pending != nil {
            for index in tracks.indices where seen.keepsPrevious {
                guard let trigger = tracks[index].selection?.previous else { continue }
                recordPending(index, trigger, &effects)
            }
            settlePending(&effects)
        }
        if seen.isOpen || seen.isSelected || (held == nil && settings.keepEngineFixes) {
            var location = Location(
                fix, time: time, at: now, held: held, event: .none, reason: nil, moving: pastMoving ?? motion.isMoving,
                odometer: pastOdometer ?? odometer.metres, power: power)
            for index in tracks.indices where seen.isSelected {
                guard let trigger = tracks[index].selection?.current else { continue }
                location.trackable = tracks[index].id
                location.reason = opening ?? trigger.rawValue
                emit(location, index, &effects)
            }
            location.trackable = nil
            location.reason = nil
            if seen.isOpen {
                pending = PendingFix(location: location, isRecorded: seen.isSelected, isHeld: held != nil)
            } else if !seen.isSelected, held == nil {
                recordBeside(location, &effects)
            }
        }
        if seen.isOpen || pendingDue != nil { findPendingDue() }
        if opening != nil, seen.isTaken { segmentReason = nil }
    }

    /// Other rules of choice hold from the next fix on.
    mutating func sample(by settings: LocationSampler.Settings, _ effects: inout [Effect]) {
        guard tracks.contains(where: { $0.sampler.settings != settings }) else { return }
        closeSegments(&effects)
        for index in tracks.indices { tracks[index].sampler.settings = settings }
    }

    /// Records a decision for every trackable and lets the samplers compare with it.
    ///
    /// A crossing may be dated before fixes that the samplers took since. Then it stands before them in the track, and what
    /// comes is measured from it; should the fix that waits be out of reach from there, it is kept at once, and only the few
    /// fixes between the two may be off by up to twice the bound.
    mutating func recordAll(_ location: Location, _ effects: inout [Effect]) {
        closeSegments(before: location, &effects)
        var stillOpen = false
        for index in tracks.indices {
            var own = location
            own.trackable = tracks[index].id
            // A decision without a fix of its own never dates back behind the last record.
            if location.event != .none, let recorded = tracks[index].recorded { own.time = max(own.time, recorded) }
            let recorded = LocationSampler.Selected(
                time: own.time, coordinate: own.coordinate, speed: own.speed, course: own.course,
                accuracy: own.horizontalAccuracy)
            let datesBack = pending != nil && tracks[index].sampler.newest.map { own.time < $0.time } ?? false
            guard datesBack else {
                tracks[index].sampler.rebase(recorded)
                emit(own, index, &effects)
                continue
            }
            let mayWait = tracks[index].sampler.split(at: recorded)
            emit(own, index, &effects)
            if mayWait {
                stillOpen = true
            } else {
                recordPending(index, .stateChange, &effects)
                tracks[index].sampler.keepNewest()
            }
        }
        if !stillOpen { settlePending(&effects) }
        findPendingDue()
    }

    private mutating func emit(_ location: Location, _ index: Int, _ effects: inout [Effect]) {
        var location = location
        // Dated back behind another record, or before the odometer was set.
        location.odometer = min(max(location.odometer, recordedOdometer), odometer.metres)
        recordedOdometer = location.odometer
        tracks[index].recorded = location.time
        lastRecordAt = now
        hasFixSinceRecord = false
        counters.countRecord(location.event)
        effects.append(.record(location))
    }
}

extension Tracker.Track {
    /// The trackable's own part of `Tracker.sample`. In place: a track that is read member by member from outside is copied
    /// each time.
    /// - Parameter opens: the fix begins a segment.
    mutating func take(
        _ fix: LocationSampler.Selected, at: EventTime, resolution: Resolution?, standing: Bool, late: Bool,
        opens: Bool, _ seen: inout Tracker.Taken
    ) {
        selection = nil
        if late, isPast(fix.time) { return }
        // An event that was dated by the clock of the host may lie a moment after the fix that comes next.
        if !late, let recorded, fix.time < recorded { return }
        seen.isTaken = true
        if opens {
            sampler.rebase(fix)
            selection = .init(previous: nil, current: .first)
        } else {
            selection = sampler.take(
                time: fix.time, coordinate: fix.coordinate, speed: fix.speed, course: fix.course,
                accuracy: fix.accuracy, at: at, resolution: resolution, standing: standing)
        }
        if selection?.current != nil { seen.isSelected = true }
        if selection?.previous != nil { seen.keepsPrevious = true }
        if sampler.isOpen { seen.isOpen = true }
    }

    func isPast(_ time: UTCTime) -> Bool {
        if let recorded, time <= recorded { return true }
        return sampler.newest.map { time <= $0.time } ?? false
    }
}

// What waits for the next fix.
extension Tracker {
    /// Ends the segments of all samplers: the fix that waits is kept, unless the record that comes now keeps the bound
    /// without it.
    /// - Parameter event: the record that comes now; nil = none does.
    mutating func closeSegments(before event: Location? = nil, _ effects: inout [Effect]) {
        releaseAll(&effects)
        guard let pending else { return }
        // Dated before the fix that waits: `recordAll` puts it in its place.
        if let event, event.time < pending.location.time { return }
        for index in tracks.indices where tracks[index].sampler.isOpen {
            if let event, tracks[index].sampler.admits(time: event.time, coordinate: event.coordinate) { continue }
            recordPending(index, .stateChange, &effects)
            tracks[index].sampler.keepNewest()
        }
        // A gap is recorded as of the last fix: that fix need not stand beside it a second time.
        if let event, event.time == pending.location.time, event.coordinate == pending.location.coordinate {
            self.pending?.isRecorded = true
        }
        settlePending(&effects)
        pendingDue = nil
    }

    /// No other fix came in time.
    mutating func keepOverdue(_ effects: inout [Effect]) {
        var stillOpen = false
        for index in tracks.indices where tracks[index].sampler.isOpen {
            if let due = tracks[index].sampler.deadline, due <= now {
                recordPending(index, .maxDelay, &effects)
                tracks[index].sampler.keepNewest()
            } else {
                stillOpen = true
            }
        }
        if !stillOpen { settlePending(&effects) }
        findPendingDue()
    }

    /// The asset was taken to stand for a while after it had begun to move: what stood in for those fixes goes, and the
    /// last one that stood begins the movement. The fixes after it follow; what was taken as it came is not taken again.
    mutating func takeBackHeld(_ from: FixRing.Entry, _ anchor: StoredState.Anchor?, _ effects: inout [Effect]) {
        guard pending != nil, let heldSince else { return }
        let limit = max(from.time, heldSince)
        for index in tracks.indices { tracks[index].sampler.withdraw(from: limit) }
        if let sampler = tracks.first?.sampler {
            samplingTrace?.withdrawn(from: limit, after: sampler.newest?.time ?? sampler.selected?.time)
        }
        if let pending, pending.location.time >= limit {
            self.pending = nil
            for index in tracks.indices {
                guard let newest = tracks[index].sampler.newest else { continue }
                if newest.time >= heldSince {
                    let place = StoredState.Anchor(coordinate: newest.coordinate, accuracy: anchor?.accuracy)
                    let held = standing(place, time: newest.time, event: .none, reason: "")
                    self.pending = PendingFix(location: held, isRecorded: false, isHeld: true)
                } else if var waiting = beforeHold {
                    let isKept = tracks.contains { $0.sampler.selected?.time == waiting.location.time }
                    waiting.isRecorded = waiting.isRecorded || isKept
                    self.pending = waiting
                }
            }
        }
        guard from.time >= heldSince else { return }
        let accuracy = from.horizontalAccuracy ?? FixFilter.unknownAccuracy
        let held = anchor.flatMap { $0.coordinate.distance(to: from.coordinate) <= accuracy ? $0 : nil }
        sample(from.fix, time: from.time, held: held, late: true, &effects)
    }

    private mutating func recordPending(
        _ index: Int, _ trigger: LocationSampler.Trigger, _ effects: inout [Effect]
    ) {
        guard var own = pending?.location else { return }
        let hasNewerFix = hasFixSinceRecord && lastFix?.time != own.time
        own.trackable = tracks[index].id
        own.reason = trigger.rawValue
        own.at = now
        emit(own, index, &effects)
        hasFixSinceRecord = hasNewerFix
        pending?.isRecorded = true
    }

    /// The fate of the fix that waited is known.
    private mutating func settlePending(_ effects: inout [Effect]) {
        guard settings.keepEngineFixes, let settled = pending, !settled.isRecorded, !settled.isHeld else {
            return pending = nil
        }
        pending = nil
        recordBeside(settled.location, &effects)
    }

    /// Records a fix that no trackable selected, where an endpoint wants all of them. It is recorded when that is certain, so
    /// that no fix is told twice. What a parked receiver drifts must not reach viewers, so nothing is kept beside the
    /// track while standing.
    private mutating func recordBeside(_ location: Location, _ effects: inout [Effect]) {
        guard settings.keepEngineFixes else { return }
        if let engineRecorded, location.time <= engineRecorded { return }
        engineRecorded = location.time
        var location = location
        location.at = now
        location.published = false
        counters.countRecord(.none)
        effects.append(.record(location))
    }

    private mutating func findPendingDue() {
        pendingDue = nil
        guard pending != nil else { return }
        for index in tracks.indices {
            guard let due = tracks[index].sampler.deadline else { continue }
            pendingDue = min(pendingDue ?? due, due)
        }
    }
}
