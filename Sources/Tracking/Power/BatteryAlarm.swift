/// The alarm for a low battery: raised once each time that it runs low, across restarts too.
public enum BatteryAlarm {
    public struct Settings: Hashable, Sendable {
        /// Percent, 0…100; low is strictly below. nil = never. The default is 15.
        public var low: Double? = 15
        /// Percent that the level must gain before it can be low again. The default is 2.
        public var hysteresis = 2.0

        public init() {}
    }
}
