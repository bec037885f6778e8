import WaypostCore

/// How things stand at this instant, beyond `TrackerSnapshot`: the last position, how near the next decision about motion is,
/// and why resolutions are as they are. It is made when it is asked for, and nothing is kept for it.
public struct TrackerLook: Hashable, Sendable {
    /// What is published of one trackable, and what decided it.
    public struct Published: Hashable, Sendable {
        public var id: String
        public var resolution: Resolution
        /// By a boost, which stands above everything.
        public var isBoosted: Bool
        /// Position of the rule that holds, from 0; nil = none does, or the policy has no rules.
        public var rule: Int?
        public var near: Bool
        public var subscribers: Int
        public var batteryLow: Bool
        /// Less often than decided: while parked, the heartbeat is the limit.
        public var isCapped: Bool
    }

    /// More trackables are not listed.
    static let publishedMax = 8

    /// The last fix that was believed; nil before the first one of this run.
    public var fix: Fix?
    /// When it came.
    public var fixAt: EventTime?
    /// The position that records carry, if it is held while the asset stands.
    public var heldPlace: Coordinate?
    /// What the last fix, or the last deadline, showed.
    public var evidence: MotionEvidence
    public var outlook: MotionOutlook
    /// The first trackables, in the order of the configuration.
    public var published: [Published]
}

/// What the motion state waits for. nil = it does not wait for that.
public struct MotionOutlook: Hashable, Sendable {
    /// Metres of agreed movement with which a trip begins, or goes on after a halt.
    public var evidenceNeeded: Double?
    /// Metres from the place, beyond which the asset is elsewhere.
    public var radius: Double?
    /// m/s; below this vector speed a halt begins.
    public var stillSpeed: Double?
    /// When the halt began.
    public var standsSince: EventTime?
    /// When the asset counts as parked unless something moves.
    public var parksAt: EventTime?
    /// Why it will: `stopTimeout`, `power` or `noFix`.
    public var parksBecause: MotionReason?

    init() {}
}
