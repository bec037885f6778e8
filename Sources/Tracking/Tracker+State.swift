import Positioning

extension StoredState.Recorded {
    var selected: LocationSampler.Selected {
        LocationSampler.Selected(time: selectedTime, coordinate: selectedCoordinate)
    }
}

extension Tracker {
    /// All that must survive a restart, to be stored in the transaction of the records that it belongs to.
    public var state: StoredState {
        var state = StoredState()
        state.moving = motion.isMoving
        state.announced = motion.hasPlace
        state.anchor = motion.place
        state.fenceCentre = motion.fenceCentre
        state.since = since
        state.stopping = halt?.time
        state.lastFix =
            lastFix.flatMap { fix in
                fix.time.map {
                    StoredState.LastFix(
                        time: $0, coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy,
                        altitudeMSL: fix.altitudeMSL.flatMap { $0.isFinite ? $0 : nil },
                        altitudeHAE: fix.altitudeHAE.flatMap { $0.isFinite ? $0 : nil })
                }
            } ?? restoredFix
        state.odometer = odometer.metres
        state.gapMetres = odometer.gapMetres
        state.trip = trip
        state.lastGap = gap.recordedTime
        state.power = power
        state.batteryTold = batteryAlarm.isTold
        geofences.store(in: &state)
        state.released = hasStarted ? cycle.isReleased : restoredRelease
        for (index, track) in tracks.enumerated() {
            guard let time = track.recorded, let selected = track.sampler.selected else { continue }
            state.recorded.append(
                StoredState.Recorded(
                    trackable: track.id, time: time, selectedTime: selected.time,
                    selectedCoordinate: selected.coordinate, proximity: board.proximityMark(at: index)))
        }
        return state
    }

    /// What `waypost status` shows.
    public var snapshot: TrackerSnapshot {
        TrackerSnapshot(
            motion: motion.phase, since: halt?.time ?? since, lastFixTime: lastFix?.time ?? restoredFix?.time,
            lastCoordinate: lastFix?.coordinate ?? restoredFix?.coordinate,
            lastAccuracy: lastFix == nil ? restoredFix?.accuracy : lastFix?.horizontalAccuracy,
            reportedCoordinate: heldAnchor?.coordinate ?? lastFix?.coordinate ?? restoredFix?.coordinate,
            inHours: inHours, boost: board.boost, boostUntil: boostUntil.flatMap { utc(at: $0) },
            inGap: gap.isOpen,
            receiverSleep: cycle.isReleased ? .released : cycle.asleepUntil.map { .until($0) },
            engine: board.engine ?? settings.resolution.constantEngine ?? settings.resolution.default,
            isEngineConstant: board.constantEngine != nil,
            trackables: board.entries.enumerated().map { index, entry in
                TrackerSnapshot.TrackableResolution(
                    id: entry.trackable.id, resolution: entry.published ?? settings.resolution.default,
                    subscribers: entry.subscribers.count, near: board.isNear(entry),
                    batteryLow: entry.battery.isLow, lastRecorded: tracks[index].recorded)
            }, odometer: odometer.metres, gapMetres: odometer.gapMetres, power: power,
            batteryLow: batteryAlarm.isLow,
            fences: geofences.fences.count, fencesRefused: geofences.refused, staysUntold: geofences.untold,
            inside: geofences.inside.sorted())
    }
}
