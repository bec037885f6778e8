import Positioning

/// Settings of what is asked of the receiver and published.
public struct ResolutionSettings: Hashable, Sendable {
    /// Used where nothing else decides. The default is balanced, 3 s, 10 m. Interval 0 and displacement 0 are legal and
    /// mean every fix.
    public var `default`: Resolution = .standard
    /// The constant location engine: replaces what is asked of the receiver, never what is published. The default is
    /// nil: the receiver follows the finest published resolution. A constant one coarser than a published resolution
    /// is obeyed: the receiver is then the limit.
    public var constantEngine: Resolution?
    /// No battery counts as low while external power is connected. The default is true.
    public var ignoreBatteryOnExternalPower = true
    /// Percent that a low battery must rise above its threshold to count as well again. The default is 2; 0 lets a level
    /// that swings around the threshold change the resolution each time.
    public var lowBatteryHysteresis = 2.0

    public init(default: Resolution = .standard, constantEngine: Resolution? = nil) {
        self.default = `default`
        self.constantEngine = constantEngine
    }
}
