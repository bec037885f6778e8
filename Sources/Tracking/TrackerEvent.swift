import WaypostCore

/// Everything that can happen to an asset, for `Tracker.handle(_:at:)`.
public enum TrackerEvent: Sendable {
    case fixReceived(Fix)
    /// An epoch without a fix.
    case noFix(NoFixReason)
    case sourceStateChanged(SourceState)
    /// true = connected (in a vehicle box: ignition on); nil = unknown, changes nothing.
    case externalPowerChanged(Bool?)
    case batteryChanged(percent: Int?, charging: Bool?)
    /// A line or an accelerometer reports movement: less evidence starts a trip for five minutes, and a sleeping receiver
    /// wakes. It neither starts nor ends a trip by itself: fixes alone decide standstill. With false an asset that stands is
    /// `still` sooner.
    case movementSourceChanged(source: String, moving: Bool)
    case paceRequested(Pace)
    case panicRequested
    /// Somebody wants to know where it is: a sleeping receiver wakes, and its next believed fix is recorded, as event
    /// `requested`, if it comes within `LocateRequest.limit`. Outside the hours it changes nothing.
    case locateRequested
    case fencesChanged([Geofence])
    case subscriberChanged(SubscriberChange)
    /// Something that happened to the asset wherever it is, as a beacon that came near: recorded for each trackable, with
    /// the place where it was last reported, or without one.
    indirect case observed(Observation)
    /// nil clears the constant location engine.
    case engineSet(Resolution?)
    /// A moving profile for a bounded time, then back by deadline; nil ends it.
    case boostChanged(Boost?)
    /// Apart from the others in memory, so that a fix is not passed on in the space of all settings.
    indirect case settingsReloaded(Tracker.Settings)
    /// Every resolution is decided again.
    case refreshRequested
    /// A span of days and hours began (true) or ended (false); the calendar is the agent's.
    case timeWindowChanged(TimeWindow, open: Bool)
    /// The odometer shows this many metres from now on; a value that is not finite changes nothing.
    case odometerSet(metres: Double)
    case deadlineReached
    /// What is known goes to disk, since the host may lose its power or sleep: a fix that waits for the next one is kept.
    case flushRequested
    case shutdown
}

/// What others than the receiver saw.
public struct Observation: Hashable, Sendable {
    public var event: LocationEvent
    public var reason: String
    public var geofence: GeofenceCrossing?

    public init(event: LocationEvent, reason: String, geofence: GeofenceCrossing? = nil) {
        self.event = event
        self.reason = reason
        self.geofence = geofence
    }
}

/// Days and hours that mean something to tracking, which itself knows no calendar.
public enum TimeWindow: Hashable, Sendable {
    /// The schedule of the whole tracker: open until changed. Closed, the asset counts as parked.
    case tracking
    /// Hours that a resolution rule names, in the words of the configuration: closed until changed.
    case hours(String)
}

/// A motion state forced by hand (`waypost pace`).
public enum Pace: String, Sendable, Codable, CaseIterable {
    case moving, stationary, auto
}

/// What should happen. Effects of one call are in order: announcement, then its location, then the fixes after it.
public enum Effect: Sendable {
    // A reference, since an effect is copied several times on its way.
    indirect case record(Location)
    indirect case announceMotion(MotionChange)
    /// A halt within a trip is over; one that is not becomes a stop. If what moved the asset on turns out to have been noise,
    /// the halt goes on, and is announced again with the same beginning.
    case announceHalt(from: UTCTime, to: UTCTime)
    /// A silence longer than `gapAfter` is over, recorded or not: the last believed fix before it and the first after it.
    /// nil = it lasts until the end of the input.
    case announceGap(from: UTCTime, to: UTCTime?, reason: RecordReason)
    /// A parked asset stands elsewhere, so many metres away, and no fix was believed on the way: no trip.
    case announceMove(at: UTCTime, metres: Double)
    /// The battery runs low, at this state. The record may follow much later: it needs a place.
    case announceLowBattery(PowerState)
    /// The network resolution of one trackable changed.
    case announceResolution(trackable: String, Resolution)
    /// Fixes are kept by another rule from now on.
    case announceRule(LocationSampler.Rule, because: LocationSampler.RuleReason)
    /// The engine resolution changed: ask the receiver for this rate.
    case setReceiver(Resolution)
    /// Nothing is expected of the receiver until then, or until `wakeReceiver`; nil = until that alone. One that cannot
    /// sleep may go on.
    case sleepReceiver(until: EventTime?)
    /// Fixes are wanted again.
    case wakeReceiver
    case count(CountReason)
}

/// Something worth a counter that changes nothing by itself.
public enum CountReason: Hashable, Sendable {
    /// A fix was not believed.
    case rejected(FixFilter.Rejection)
    /// Implausible positions led on, or agreed for three minutes: the asset is there now.
    case jump
    /// Ten older times rose among themselves: the receiver's clock is that now.
    case clockStep
    /// A panic without any dated fix has no position to record.
    case panicRefused
    /// A trackable has as many subscribers as it may have.
    case subscriberRefused
}

/// The asset began to move, or stands.
public struct MotionChange: Hashable, Sendable {
    public var moving: Bool
    public var reason: MotionReason
    /// Event time of the decision.
    public var at: EventTime
    /// UTC of the decision; nil before the first dated fix.
    public var decided: UTCTime?
    /// moving: the departure; not moving: the standstill. Earlier than the decision.
    public var since: UTCTime?
    public var coordinate: Coordinate
    /// The numbers that decided.
    public var evidence: MotionEvidence
    /// The trip that ended; nil for a departure, and for an asset that was parked when first seen.
    public var trip: TripSummary?
}

/// Why the motion state changed.
public enum MotionReason: String, Sendable, Codable, CaseIterable {
    /// Parked where it was first seen.
    case start
    /// Departed: the evidence of speed sufficed.
    case speed
    /// Departed: it left the stationary fence.
    case fence
    /// Departed: it was beyond the backup radius, however inaccurate the fixes.
    case backupFence = "backup-fence"
    case stopTimeout = "stop-timeout"
    /// Parked: no fixes came any more.
    case noFix = "no-fix"
    /// Departed, parked, or both, while no fixes came.
    case gap
    /// External power came, or went off.
    case power
    /// A movement source reported first, and a little evidence of the receiver followed.
    case movementSource = "movement-source"
    /// The hours in which the asset is tracked ended.
    case schedule
    case pace
}

/// What the motion detector saw when it decided.
public struct MotionEvidence: Hashable, Sendable, Codable {
    /// Metres of agreed movement in the window.
    public var evidence = 0.0
    /// Metres from the fence centre (while stopping: from the stop anchor).
    public var distance = 0.0
    /// Vector speed over 5 s, m/s; nil without speed and course.
    public var speed: Double?
    /// Metres; nil when unknown.
    public var accuracy: Double?
    /// Metres of agreed movement with which the trip began, or with which it would have gone on, noise considered; nil where
    /// evidence did not decide.
    public var needed: Double?
}
