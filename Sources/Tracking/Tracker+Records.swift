import Positioning

extension Tracker {
    /// The latest time that any trackable was recorded with.
    var lastRecordedTime: UTCTime? { tracks.compactMap(\.recorded).max() }

    /// The way of an admitted fix behind the motion detector: fences, nearness, then which trackable keeps it. They all see
    /// the reported position, which is held while standing, so that drift crosses no fence.
    /// - Parameters:
    ///   - at: when the fix came.
    ///   - held: the place that a standing asset reports instead of the fix.
    ///   - late: the fix comes from the ring; one that is not later than the last record is left out.
    mutating func report(
        _ fix: Fix, time: UTCTime, at: EventTime, held: StoredState.Anchor?, late: Bool = false,
        _ effects: inout [Effect]
    ) {
        reported(at: held?.coordinate ?? fix.coordinate, &effects)
        if !geofences.isEmpty {
            let sighting = GeofenceMonitor.Sighting(
                fix: fix, time: time, at: at, held: held, odometer: odometer.metres,
                opening: held == nil ? segmentReason : nil)
            if watchFences(sighting, late: late, &effects) { return }
        }
        sample(fix, time: time, held: held, late: late, &effects)
    }

    /// The record of a fix.
    /// - Parameter held: the place to report instead of the fix's own, with speed 0 and no course where it stands.
    func location(
        _ fix: Fix, time: UTCTime, at held: StoredState.Anchor?, event: LocationEvent, reason: String?
    ) -> Location {
        Location(
            fix, time: time, at: now, held: held, event: event, reason: reason, moving: pastMoving ?? motion.isMoving,
            odometer: pastOdometer ?? odometer.metres, power: power)
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
            moving: pastMoving ?? motion.isMoving, event: event, reason: reason, odometer: odometer.metres, power: power
        )
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

    /// The place that records carry while standing. Outside the hours nobody watches whether it left: a panic tells where
    /// it is.
    var heldAnchor: StoredState.Anchor? {
        guard settings.motion.staticNavigation, windowOpen else { return nil }
        return motion.heldPlace(at: now)
    }
}

extension Location {
    /// The record of a fix, from values: a method of the tracker copies it where the copy is cheap to overlook, once for each
    /// fix that is kept.
    init(
        _ fix: Fix, time: UTCTime, at: EventTime, held: StoredState.Anchor?, event: LocationEvent, reason: String?,
        moving: Bool, odometer: Double, power: PowerState
    ) {
        self.init(
            trackable: nil, time: time, at: at, coordinate: held?.coordinate ?? fix.coordinate,
            altitudeMSL: fix.altitudeMSL, altitudeHAE: fix.altitudeHAE,
            horizontalAccuracy: held == nil ? fix.horizontalAccuracy : held?.accuracy,
            speed: held == nil ? fix.speed : 0, course: held == nil ? fix.course : nil, hdop: fix.hdop,
            satellitesUsed: fix.satellitesUsed, mode: fix.mode, quality: fix.quality, moving: moving, event: event,
            reason: reason, odometer: odometer, power: power)
    }
}
