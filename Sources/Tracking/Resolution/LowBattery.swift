/// Slows the published interval when the battery is low.
public struct LowBattery: Hashable, Sendable {
    /// Percent, 0…100; low is strictly below.
    public var threshold: Double
    /// Factor on the interval, finite and ≥ 1.
    public var multiplier: Double

    public init(threshold: Double, multiplier: Double) {
        self.threshold = threshold
        self.multiplier = multiplier
    }
}

/// Whether the battery counts as low: from below the threshold until some percent above it, so that a level that swings
/// around the threshold does not change it each time.
public struct LowBatteryFlag: Hashable, Sendable {
    public private(set) var isLow = false

    public init() {}

    /// - Parameters:
    ///   - percent: nil = unknown: not low.
    ///   - hysteresis: percent; a full battery is never low, whatever the threshold.
    public mutating func observe(percent: Double?, threshold: Double, hysteresis: Double) {
        guard let percent else { return isLow = false }
        isLow = percent < (isLow ? min(100, threshold + hysteresis) : threshold)
    }
}

extension Trackable {
    /// What a low battery does to this trackable.
    func lowBattery(withoutConstraints: LowBattery?) -> LowBattery? {
        switch constraints {
        case nil: withoutConstraints
        case .default(let constraints): constraints.lowBattery
        case .custom: nil
        }
    }
}
