import WaypostCore

extension Tracker {
    public struct Settings: Sendable {
        public var admission = FixFilter.Settings()
        public var motion = MotionDetector.Settings()
        public var receiver = ReceiverCycle.Settings()
        public var sampling = LocationSampler.Settings()
        /// Why `sampling.rule`, or that of `moving`, is what it is. With `nothingAsks` the rule is `either` for as long as a
        /// subscriber is there or a constant location engine is set.
        public var ruleReason = LocationSampler.RuleReason.chosen
        public var resolution = ResolutionSettings()
        /// What is different while the asset moves; nil = nothing: as `sampling`, `resolution.default`,
        /// `admission.accuracyMax` and `motion.heartbeat` say.
        public var moving: MotionProfile?
        /// What is different while it is parked; nil = nothing: as while it moves.
        public var stationary: MotionProfile?
        /// A policy of the user's own; nil = the one that `resolution` describes. It stays in force when settings are
        /// reloaded, whatever the new ones say.
        public var policy: (any ResolutionPolicy)?
        public var geofences = GeofenceMonitor.Settings()
        /// At least one; ids are unique.
        public var trackables: [Trackable]
        /// Also record fixes that no trackable selected (`published` false, no trackable), for endpoints with
        /// `feed = "engine"`. The default is false.
        public var keepEngineFixes = false
        /// Record a summary (event `trip`) directly after each stop. The default is false.
        public var tripSummary = false
        public var batteryAlarm = BatteryAlarm.Settings()

        public init(trackables: [Trackable]) { self.trackables = trackables }
    }
}

extension Tracker.Settings {
    /// The settings that no motion state overrides.
    public var profile: MotionProfile {
        MotionProfile(
            sampling: sampling, resolution: resolution.default, accuracyMax: admission.accuracyMax,
            heartbeat: motion.heartbeat)
    }

    /// As few points as needed until a subscriber watches: what the daemon does where nothing asks for a resolution.
    public mutating func keepFewest() {
        sampling.rule = .trackError
        moving?.sampling.rule = .trackError
        stationary?.sampling.rule = .trackError
        ruleReason = .nothingAsks
    }

    /// What contradicts itself in these settings, in words for people; empty = they can be used.
    public var problems: [String] {
        let policy = policy ?? resolution.policy
        return trackables.compactMap { trackable in
            guard let constraints = trackable.constraints, !policy.accepts(constraints) else { return nil }
            return "trackable \(trackable.id) has constraints that the resolution policy cannot read"
        }
    }

    /// Whether a reload with `other` would change nothing. The policy is left out: it outlives a reload.
    public func isSame(as other: Self) -> Bool {
        admission == other.admission && motion == other.motion && receiver == other.receiver
            && sampling == other.sampling && ruleReason == other.ruleReason && resolution == other.resolution
            && moving == other.moving
            && stationary == other.stationary && geofences == other.geofences && trackables == other.trackables
            && keepEngineFixes == other.keepEngineFixes && tripSummary == other.tripSummary
            && batteryAlarm == other.batteryAlarm
    }
}
