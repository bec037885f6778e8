import WaypostCore

/// The present, for every record of one call.
struct Present: Sendable {
    let at: EventTime
    /// Metres; no record shows more.
    let odometer: Double
}

/// What a record says of the asset besides its fix, as it was when that happened.
struct RecordContext: Sendable {
    let present: Present
    let moving: Bool
    /// Metres.
    let odometer: Double
    /// The place that a standing asset reports instead of the fix, with speed 0 and no course.
    let held: StoredState.Anchor?
    let power: PowerState
    let activity: Activity?
}

extension Location {
    /// The record of a fix.
    init(_ fix: Fix, time: UTCTime, _ context: RecordContext, event: LocationEvent, reason: String?) {
        let held = context.held
        self.init(
            trackable: nil, time: time, at: context.present.at, coordinate: held?.coordinate ?? fix.coordinate,
            altitudeMSL: fix.altitudeMSL, altitudeHAE: fix.altitudeHAE,
            horizontalAccuracy: held == nil ? fix.horizontalAccuracy : held?.accuracy,
            speed: held == nil ? fix.speed : 0, course: held == nil ? fix.course : nil, hdop: fix.hdop,
            satellitesUsed: fix.satellitesUsed, mode: fix.mode, quality: fix.quality, moving: context.moving,
            event: event, reason: reason, odometer: context.odometer, power: context.power,
            activity: context.activity)
    }

    /// Removes what only a fix of its own can say.
    mutating func removeReception() {
        hdop = nil
        satellitesUsed = nil
        mode = nil
        quality = nil
    }
}
