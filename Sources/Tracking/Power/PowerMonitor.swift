import Positioning

/// Battery and external power. A change of external power counts once it has lasted.
struct PowerMonitor: Sendable {
    /// A starter motor makes the voltage dip for about this long.
    private static let debounce = Duration.seconds(3)

    private struct Pending {
        let value: Bool
        let due: EventTime
    }

    var alarmSettings: BatteryAlarm.Settings
    private(set) var state: PowerState
    private(set) var alarm: BatteryAlarm
    private var pending: Pending?

    init(alarm settings: BatteryAlarm.Settings, restored: StoredState?) {
        alarmSettings = settings
        state = restored?.power ?? PowerState()
        alarm = BatteryAlarm(isRecorded: restored?.lowBatteryRecorded ?? false)
    }

    /// External power as it will be unless it changes back within moments; nil = it is as it was.
    var awaited: Bool? { pending?.value }

    var nextDeadline: EventTime? { pending?.due }

    /// - Returns: whether `state` changed at once, because nothing was known before.
    mutating func externalPowerChanged(_ value: Bool, at: EventTime) -> Bool {
        guard let known = state.externalPower else {
            state.externalPower = value
            return true
        }
        if value == known {
            pending = nil
        } else if pending?.value != value {
            pending = Pending(value: value, due: at + Self.debounce)
        }
        return false
    }

    /// - Returns: external power as it is now, if that changed.
    mutating func deadlineReached(at: EventTime) -> Bool? {
        guard let pending, pending.due <= at else { return nil }
        self.pending = nil
        state.externalPower = pending.value
        return pending.value
    }

    mutating func batteryChanged(percent: Int?, charging: Bool?) {
        state.batteryPercent = percent.map { max(0, min(100, $0)) }
        state.charging = charging
        alarm.observe(state, alarmSettings)
    }

    /// A low battery has to be recorded, now or as soon as there is a place.
    var isAlarmDue: Bool { alarm.isDue(state, alarmSettings) }

    /// - Returns: whether this is the first time for this alarm.
    mutating func alarmAnnounced() -> Bool { alarm.announced() }

    mutating func alarmRecorded() { alarm.recorded() }

    func store(in stored: inout StoredState) {
        stored.power = state
        stored.lowBatteryRecorded = alarm.isRecorded
    }
}
