import Positioning
import Sensors

/// Keeps an eye on battery and external power: on every event of the kernel, and slowly besides.
///
/// Many drivers send no event for a level that sinks, and where no udevd runs there may be none at all.
final class PowerWatch {
    struct Reading {
        var state: PowerState
        /// The supplies know of a battery, or did until now. Otherwise another program may, over the control socket.
        var tellsBattery: Bool
        /// External power went away.
        var isLoss: Bool
    }

    /// Between two looks while all is well.
    static let slow = Duration.seconds(60)
    /// While the battery is low.
    static let fast = Duration.seconds(10)
    /// Events come in swarms, and before the last one the files may be empty.
    private static let settling = Duration.milliseconds(200)
    /// Some chargers send events without end.
    private static let between = Duration.seconds(1)

    struct Settings: Hashable {
        /// nil = nothing is read.
        var supplies: BatteryConfig.SupplySettings?
        /// Percent; nil = the level is never looked at more often.
        var low: Double?
    }

    private var settings: Settings
    private var reader: PowerSupplyReader?
    /// Time between two calls of `passing(at:)`; nil = there are none to rely on.
    private let passes: Duration?
    private let log: AgentLog
    private let changed: (Reading, EventTime) -> Void
    private var alarm: EventLoop.Alarm?
    private var readAt: EventTime?
    private var found = PowerSupplies()

    /// - Parameter passes: how often the loop wakes up in any case, and calls `passing(at:)`.
    init(
        settings: Settings, passes: Duration?, log: AgentLog, loop: EventLoop,
        changed: @escaping (Reading, EventTime) -> Void
    ) {
        self.settings = settings
        reader = settings.supplies?.reader
        self.passes = passes.flatMap { $0 <= Self.slow ? $0 : nil }
        self.log = log
        self.changed = changed
        alarm = loop.alarm { [unowned self] now in read(at: now) }
    }

    /// Those that count, as last seen; nil = nobody looks.
    var supplies: PowerSupplies? { reader == nil ? nil : found }

    func start(at now: EventTime) { if reader != nil { read(at: now) } }

    func reload(_ settings: Settings, at now: EventTime) {
        guard settings != self.settings else { return }
        self.settings = settings
        reader = settings.supplies?.reader
        read(at: now)
    }

    func stop() { alarm?.deadline = nil }

    /// The loop is awake for something else: no wake-up of its own is needed for the slow look.
    func passing(at now: EventTime) {
        guard reader != nil, let passes, let readAt, now >= readAt + (Self.slow - passes / 2) else { return }
        read(at: now)
    }

    func devicesChanged(at now: EventTime) {
        guard reader != nil else { return }
        let due = max(now + Self.settling, (readAt ?? now) + Self.between)
        alarm?.deadline = min(alarm?.deadline ?? due, due)
    }

    private func read(at now: EventTime) {
        let before = found
        found = reader?.read() ?? PowerSupplies()
        let state = found.state
        tellChanges(since: before)
        readAt = now
        let isLow = state.batteryPercent.map { Double($0) < (settings.low ?? 0) } ?? false
        alarm?.deadline = reader == nil ? nil : isLow ? now + Self.fast : passes == nil ? now + Self.slow : nil
        let known = before.state
        changed(
            Reading(
                state: state,
                tellsBattery: [state, known].contains { $0.batteryPercent != nil || $0.charging != nil },
                isLoss: known.externalPower == true && state.externalPower == false), now)
    }

    /// One line for each supply that comes, goes, cannot be read any more, or can again.
    private func tellChanges(since before: PowerSupplies) {
        let old = Dictionary(before.all.map { ($0.name, $0) }) { first, _ in first }
        let new = Dictionary(found.all.map { ($0.name, $0) }) { first, _ in first }
        for supply in found.all {
            if old[supply.name] == nil || old[supply.name]?.isUnreadable != supply.isUnreadable {
                log.supplyChanged(supply.name, supply.words, isProblem: supply.isUnreadable)
            }
        }
        for supply in before.all where new[supply.name] == nil {
            log.supplyChanged(supply.name, "gone", isProblem: false)
        }
    }
}

extension BatteryConfig.SupplySettings {
    fileprivate var reader: PowerSupplyReader { PowerSupplyReader(root: root, selection: selection) }
}

extension PowerSupplies {
    /// Each that counts once, by name.
    var all: [PowerSupply] {
        let names = Set(batteries.map(\.name))
        return (batteries + chargers.filter { !names.contains($0.name) }).sorted { $0.name < $1.name }
    }
}

extension PowerSupply {
    /// `battery, 77 %, discharging`
    var words: String {
        var parts = [kind.word]
        if let capacity { parts.append("\(capacity) %") }
        if let status { parts.append(status.word) }
        if let isOnline { parts.append(isOnline ? "connected" : "not connected") }
        if isUnreadable { parts.append("cannot be read") }
        return parts.joined(separator: ", ")
    }
}

extension PowerSupply.Kind {
    var word: String {
        switch self {
        case .battery: "battery"
        case .ups: "UPS"
        case .mains: "mains"
        case .usb: "USB"
        case .wireless: "wireless charger"
        case .other: "supply"
        }
    }
}

extension PowerSupply.Status {
    var word: String {
        switch self {
        case .charging: "charging"
        case .discharging: "discharging"
        case .notCharging: "not charging"
        case .full: "full"
        }
    }
}
