import Positioning

/// The alarm for a low battery: raised once each time that it runs low, across restarts too.
public struct BatteryAlarm: Hashable, Sendable {
    public struct Settings: Hashable, Sendable {
        /// Percent, 0…100; low is strictly below. nil = never. The default is 15.
        public var low: Double? = 15
        /// Percent that the level must gain before it can be low again. The default is 2.
        public var hysteresis = 2.0

        public init() {}
    }

    /// The level as last known is low, whatever feeds the device now.
    public private(set) var isLow = false
    private(set) var isRecorded: Bool
    /// In this run. The announcement waits for nothing, the record for a place.
    private var isAnnounced = false

    init(isRecorded: Bool) { self.isRecorded = isRecorded }

    /// An unknown level neither raises nor ends the alarm, nor does external power end it.
    mutating func observe(_ power: PowerState, _ settings: Settings) {
        guard let low = settings.low else {
            self = BatteryAlarm(isRecorded: false)
            return
        }
        guard let percent = power.batteryPercent.map(Double.init) else { return }
        isLow = percent < (isLow || isRecorded ? min(100, low + settings.hysteresis) : low)
        if !isLow { self = BatteryAlarm(isRecorded: false) }
    }

    /// Whether it has to be recorded, now or as soon as there is a place. A battery that is charging, or has recovered, is
    /// no alarm.
    func isDue(_ power: PowerState, _ settings: Settings) -> Bool {
        guard isLow, !isRecorded, power.externalPower != true, let low = settings.low else { return false }
        return power.batteryPercent.map { Double($0) < low } ?? false
    }

    /// - Returns: whether this is the first time.
    mutating func announced() -> Bool {
        defer { isAnnounced = true }
        return !isAnnounced
    }

    mutating func recorded() { isRecorded = true }
}
