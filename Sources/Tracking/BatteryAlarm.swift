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
    /// It was recorded.
    private(set) var isTold: Bool
    /// It was announced in this run, which waits for nothing.
    private(set) var isAnnounced = false

    init(isTold: Bool) { self.isTold = isTold }

    /// An unknown level neither raises nor ends the alarm, nor does external power end it.
    mutating func observe(_ power: PowerState, _ settings: Settings) {
        guard let low = settings.low else {
            self = BatteryAlarm(isTold: false)
            return
        }
        guard let percent = power.batteryPercent.map(Double.init) else { return }
        isLow = percent < (isLow || isTold ? min(100, low + settings.hysteresis) : low)
        if !isLow { self = BatteryAlarm(isTold: false) }
    }

    /// Whether it has to be recorded, now or as soon as there is a place: a battery that is being filled is none to worry
    /// about, nor is one that has recovered.
    func isDue(_ power: PowerState, _ settings: Settings) -> Bool {
        guard isLow, !isTold, power.externalPower != true, let low = settings.low else { return false }
        return power.batteryPercent.map { Double($0) < low } ?? false
    }

    mutating func announced() { isAnnounced = true }

    mutating func told() { isTold = true }
}
