import Positioning

/// What a fix means: whether it is believed, whether the asset moves or is parked, and which fixes are kept.
///
/// Pure: it holds no clock, and the same events give the same effects, live and in replay. The caller feeds events in
/// order of event time, performs the effects in order, and sends `deadlineReached` when `nextDeadline` has come. In replay
/// and for a file each deadline that lies before the next epoch fires before it, and none after the last event.
public struct Tracker: Sendable {
    public struct Settings: Sendable {
        public var admission = FixFilter.Settings()
        public var motion = MotionDetector.Settings()
        public var sampling = LocationSampler.Settings()
        public var resolution = ResolutionSettings()
        /// At least one; ids are unique.
        public var trackables: [Trackable]
        /// Also record fixes that no trackable selected (`published` false, no trackable), for endpoints with
        /// `feed = "engine"`. The default is false.
        public var keepEngineFixes = false
        /// Record a summary (event `trip`) directly after each stop. The default is false.
        public var tripSummary = false

        public init(trackables: [Trackable]) { self.trackables = trackables }
    }

    public init(settings: Settings, restored: StoredState?) {
        self.settings = settings
        state = restored ?? StoredState()
    }

    private var settings: Settings
    public private(set) var state: StoredState
    public private(set) var counters = TrackerCounters()

    public mutating func handle(_ event: TrackerEvent, at: EventTime) -> [Effect] { [] }
    /// The earliest event time at which something is due without any event; nil = nothing is.
    public var nextDeadline: EventTime? { nil }
    /// UTC of an event time: the last dated fix plus the event time elapsed since. nil before the first dated fix.
    public func utc(at: EventTime) -> UTCTime? { nil }
    public var snapshot: TrackerSnapshot {
        TrackerSnapshot(
            motion: .waiting, inGap: false, engine: settings.resolution.default, trackables: [], odometer: 0,
            gapMetres: 0, power: PowerState())
    }
}
