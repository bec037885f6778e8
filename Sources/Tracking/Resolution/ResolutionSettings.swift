import WaypostCore

/// Settings of what is asked of the receiver and published.
public struct ResolutionSettings: Hashable, Sendable {
    /// Used where nothing else decides. The default is balanced, 3 s, 10 m. Interval 0 and displacement 0 are legal and
    /// mean every fix.
    public var `default`: Resolution = .standard
    /// The constant location engine: replaces what is asked of the receiver, never what is published. The default is
    /// nil: the receiver follows the finest published resolution. A constant one coarser than a published resolution
    /// is obeyed: the receiver is then the limit.
    public var constantEngine: Resolution?
    /// Who is near. The default is each trackable by itself, and only while it is.
    public var proximity = ProximityMode.perTrackable
    /// No subscriber gets a shorter interval by asking; else a stranger who asks for 0 could drain the battery. The
    /// default is 200 ms; zero lets through what is asked.
    public var subscriberIntervalFloor = Duration.milliseconds(200)
    /// In order; the first that holds decides. The default is none.
    public var rules: [ResolutionRule] = []
    /// No battery counts as low while external power is connected. The default is true.
    public var ignoreBatteryOnExternalPower = true
    /// Percent that a low battery must rise above its threshold to count as well again. The default is 2; 0 lets a level
    /// that swings around the threshold change the resolution each time.
    public var lowBatteryHysteresis = 2.0
    /// What a low battery does to trackables without constraints. The default is nil: nothing.
    public var applyWithoutConstraints: LowBattery?

    public init(default: Resolution = .standard, constantEngine: Resolution? = nil) {
        self.default = `default`
        self.constantEngine = constantEngine
    }

    /// The hours that rules name, each once: the tracker must be notified when they begin and end (`TimeWindow.hours`).
    public var hours: [String] {
        var seen: Set<String> = []
        return rules.compactMap(\.hours).filter { seen.insert($0).inserted }
    }

    /// The policy that these settings describe.
    public var policy: any ResolutionPolicy {
        let standard = DefaultResolutionPolicy(proximity: proximity, withoutConstraints: applyWithoutConstraints)
        guard !rules.isEmpty else { return standard }
        return RuleResolutionPolicy(rules: rules, standard: standard, batteryHysteresis: lowBatteryHysteresis)
    }
}
