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
        state.anchor = motion.anchor
        state.fenceCentre = motion.state == .stationary ? motion.fenceCentre : nil
        state.since = since
        state.stopping = halt?.time
        state.lastFix =
            lastFix.flatMap { fix in
                fix.time.map {
                    StoredState.LastFix(
                        time: $0, coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy,
                        altitudeMSL: fix.altitudeMSL, altitudeHAE: fix.altitudeHAE)
                }
            } ?? restoredFix
        state.odometer = odometer.metres
        state.gapMetres = odometer.gapMetres
        state.trip = trip
        state.lastGap = gap.recordedTime
        state.power = power
        geofences.store(in: &state)
        for track in tracks {
            guard let time = track.recorded, let selected = track.sampler.selected else { continue }
            state.recorded.append(
                StoredState.Recorded(
                    trackable: track.id, time: time, selectedTime: selected.time,
                    selectedCoordinate: selected.coordinate))
        }
        return state
    }

    /// What `waypost status` shows.
    public var snapshot: TrackerSnapshot {
        let motion: TrackerSnapshot.Motion =
            switch motion.state {
            case .waiting: .waiting
            case .settling: .settling
            case .stationary: .stationary
            case .moving: .moving
            case .stopping: .stopping
            }
        return TrackerSnapshot(
            motion: motion, since: halt?.time ?? since, lastFixTime: lastFix?.time ?? restoredFix?.time,
            lastCoordinate: lastFix?.coordinate ?? restoredFix?.coordinate,
            lastAccuracy: lastFix == nil ? restoredFix?.accuracy : lastFix?.horizontalAccuracy,
            reportedCoordinate: heldAnchor?.coordinate ?? lastFix?.coordinate ?? restoredFix?.coordinate,
            inGap: gap.isOpen,
            engine: board.engine ?? settings.resolution.constantEngine ?? settings.resolution.default,
            trackables: board.entries.enumerated().map { index, entry in
                TrackerSnapshot.TrackableResolution(
                    id: entry.trackable.id, resolution: entry.published ?? settings.resolution.default,
                    subscribers: entry.subscribers.count, lastRecorded: tracks[index].recorded)
            }, odometer: odometer.metres, gapMetres: odometer.gapMetres, power: power,
            fences: geofences.fences.count, fencesRefused: geofences.refused, staysUntold: geofences.untold,
            inside: geofences.inside.sorted())
    }
}
