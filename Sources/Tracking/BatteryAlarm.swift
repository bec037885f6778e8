import Positioning

/// Whether somebody has to be told that the battery runs low: once each time that it does, also over restarts.
public struct BatteryAlarm: Hashable, Sendable {
    public struct Settings: Hashable, Sendable {
        /// Percent, 0…100; low is strictly below. nil = never. The default is 15.
        public var low: Double? = 15
        /// Percent that the level must gain before it can be low anew. The default is 2.
        public var hysteresis = 2.0

        public init() {}
    }

    /// The level as last known is low, whatever feeds the device now.
    public private(set) var isLow = false
    /// It was recorded. Until it could be, for want of a place or outside of the hours, each reading tries again.
    private(set) var isTold: Bool

    init(isTold: Bool) { self.isTold = isTold }

    /// - Returns: whether the alarm is due. An unknown level neither raises nor ends it, nor does external power end it; but
    ///   a battery that is being filled is none to worry about.
    mutating func wants(_ power: PowerState, _ settings: Settings) -> Bool {
        guard let low = settings.low else {
            isLow = false
            isTold = false
            return false
        }
        guard let percent = power.batteryPercent.map(Double.init) else { return false }
        let wasLow = isLow || isTold
        isLow = percent < (wasLow ? min(100, low + settings.hysteresis) : low)
        if !isLow { isTold = false }
        return isLow && !isTold && power.externalPower != true && percent < low
    }

    mutating func told() { isTold = true }
}
