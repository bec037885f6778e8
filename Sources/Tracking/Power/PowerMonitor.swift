import WaypostCore

/// External power, of which a change counts once it has lasted, and the alarm for a low battery.
struct PowerMonitor: Sendable {
    /// A starter motor makes the voltage dip for about this long.
    private static let debounce = Duration.seconds(3)

    private struct Pending {
        let value: Bool
        let due: EventTime
    }

    var alarm: BatteryAlarm.Settings
    private(set) var state: PowerState
    private var pending: Pending?
    /// The level as last known is low, whatever feeds the device now.
    private(set) var isLow = false
    private var isAlarmRecorded: Bool
    /// In this run. The announcement waits for nothing, the record for a place.
    private var isAlarmAnnounced = false

    init(alarm: BatteryAlarm.Settings, restored: StoredState?) {
        self.alarm = alarm
        state = restored?.power ?? PowerState()
        isAlarmRecorded = restored?.lowBatteryRecorded ?? false
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

    /// An unknown level neither raises nor ends the alarm, nor does external power end it.
    mutating func batteryChanged(percent: Int?, charging: Bool?) {
        state.batteryPercent = percent.map { max(0, min(100, $0)) }
        state.charging = charging
        guard let low = alarm.low else { return endAlarm() }
        guard let percent = state.batteryPercent.map(Double.init) else { return }
        isLow = percent < (isLow || isAlarmRecorded ? min(100, low + alarm.hysteresis) : low)
        if !isLow { endAlarm() }
    }

    private mutating func endAlarm() { (isLow, isAlarmRecorded, isAlarmAnnounced) = (false, false, false) }

    /// A low battery has to be recorded, now or as soon as there is a place. A battery that is charging, or has recovered,
    /// is no alarm.
    var isAlarmDue: Bool {
        guard isLow, !isAlarmRecorded, state.externalPower != true, let low = alarm.low else { return false }
        return state.batteryPercent.map { Double($0) < low } ?? false
    }

    /// - Returns: whether this is the first time for this alarm.
    mutating func alarmAnnounced() -> Bool {
        defer { isAlarmAnnounced = true }
        return !isAlarmAnnounced
    }

    mutating func alarmRecorded() { isAlarmRecorded = true }

    func store(in stored: inout StoredState) {
        stored.power = state
        stored.lowBatteryRecorded = isAlarmRecorded
    }
}

extension PowerMonitor {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(
            state.batteryPercent.map { (0...100).contains($0) } ?? true, "a battery at \(state.batteryPercent ?? 0) %")
        invariant(!isAlarmAnnounced || isLow, "an alarm of a battery that is not low")
    }
}
