import Positioning

extension Tracker {
    /// The latest time that any trackable was recorded with.
    var lastRecordedTime: UTCTime? { tracks.compactMap(\.recorded).max() }

    /// The way of an admitted fix behind the motion detector: fences, nearness, then which trackable keeps it. They all see
    /// the reported position, which is held while standing, so that drift crosses no fence.
    /// - Parameters:
    ///   - held: the place that a standing asset reports instead of the fix.
    ///   - late: the fix comes from the ring; one that is not later than the last record is left out.
    mutating func report(
        _ fix: Fix, time: UTCTime, held: StoredState.Anchor?, late: Bool = false, _ effects: inout [Effect]
    ) {
        sample(fix, time: time, held: held, late: late, &effects)
    }

    /// Samples one fix for every trackable.
    /// - Parameters:
    ///   - held: the place that a standing asset reports instead of the fix.
    ///   - late: the fix comes from the ring; one that is not later than the last record is left out.
    private mutating func sample(
        _ fix: Fix, time: UTCTime, held: StoredState.Anchor?, late: Bool, _ effects: inout [Effect]
    ) {
        let coordinate = held?.coordinate ?? fix.coordinate
        let opening = held == nil ? segmentReason : nil
        var selectedByAny = false
        for index in tracks.indices {
            if late, let recorded = tracks[index].recorded, time <= recorded { continue }
            let reason: String
            if let opening {
                tracks[index].sampler.rebase(time: time, coordinate: coordinate)
                reason = opening
            } else if let trigger = tracks[index].sampler.take(
                time: time, coordinate: coordinate, resolution: board.entries[index].published, standing: held != nil)
            {
                reason = trigger.rawValue
            } else {
                continue
            }
            selectedByAny = true
            var location = location(fix, time: time, at: held, event: .none, reason: reason)
            location.trackable = tracks[index].id
            emit(location, index, &effects)
        }
        if opening != nil { segmentReason = nil }
        // What a parked receiver drifts must not reach viewers, so nothing is kept beside the track while standing.
        if !selectedByAny, settings.keepEngineFixes, held == nil {
            var location = location(fix, time: time, at: nil, event: .none, reason: nil)
            location.published = false
            counters.countRecord(.none)
            effects.append(.record(location))
        }
    }

    /// Records a decision for every trackable and lets the samplers compare with it.
    mutating func recordAll(_ location: Location, _ effects: inout [Effect]) {
        for index in tracks.indices {
            var own = location
            own.trackable = tracks[index].id
            // A decision without a fix of its own never dates back behind the last record.
            if location.event != .none, let recorded = tracks[index].recorded { own.time = max(own.time, recorded) }
            tracks[index].sampler.rebase(time: own.time, coordinate: own.coordinate)
            emit(own, index, &effects)
        }
    }

    private mutating func emit(_ location: Location, _ index: Int, _ effects: inout [Effect]) {
        tracks[index].recorded = location.time
        lastRecordAt = now
        hasFixSinceRecord = false
        counters.countRecord(location.event)
        effects.append(.record(location))
    }

    /// The record of a fix.
    /// - Parameter held: the place to report instead of the fix's own, with speed 0 and no course where it stands.
    func location(
        _ fix: Fix, time: UTCTime, at held: StoredState.Anchor?, event: LocationEvent, reason: String?
    ) -> Location {
        Location(
            trackable: nil, time: time, at: now, coordinate: held?.coordinate ?? fix.coordinate,
            altitudeMSL: fix.altitudeMSL, altitudeHAE: fix.altitudeHAE,
            horizontalAccuracy: held == nil ? fix.horizontalAccuracy : held?.accuracy,
            speed: held == nil ? fix.speed : 0, course: held == nil ? fix.course : nil, hdop: fix.hdop,
            satellitesUsed: fix.satellitesUsed, mode: fix.mode, quality: fix.quality, moving: motion.isMoving,
            event: event, reason: reason, odometer: odometer.metres, power: power)
    }

    /// The record of an asset that stands, as of the last fix if one came since the last record.
    func standing(
        _ anchor: StoredState.Anchor, time: UTCTime, event: LocationEvent, reason: String
    ) -> Location {
        let fix = hasFixSinceRecord ? lastFix : nil
        return Location(
            trackable: nil, time: time, at: now, coordinate: anchor.coordinate,
            altitudeMSL: lastFix?.altitudeMSL, altitudeHAE: lastFix?.altitudeHAE, horizontalAccuracy: anchor.accuracy,
            speed: 0, hdop: fix?.hdop, satellitesUsed: fix?.satellitesUsed, mode: fix?.mode, quality: fix?.quality,
            moving: motion.isMoving, event: event, reason: reason, odometer: odometer.metres, power: power)
    }

    /// The record of something that happened to the asset where it was last reported; nil before it has a place.
    func here(time: UTCTime, event: LocationEvent, reason: String) -> Location? {
        guard let fix = lastFix else { return nil }
        if let anchor = heldAnchor { return standing(anchor, time: time, event: event, reason: reason) }
        var location = location(fix, time: time, at: nil, event: event, reason: reason)
        if !hasFixSinceRecord {
            location.hdop = nil
            location.satellitesUsed = nil
            location.mode = nil
            location.quality = nil
        }
        return location
    }

    /// The place that records carry while standing.
    var heldAnchor: StoredState.Anchor? {
        guard settings.motion.staticNavigation else { return nil }
        switch motion.state {
        case .waiting, .settling, .moving: return nil
        case .stationary: return motion.anchor
        case .stopping(let since): return now.seconds(since: since.at) > MotionDetector.holdAfter ? motion.anchor : nil
        }
    }
}
