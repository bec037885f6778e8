import WaypostCore

/// All supplies of a host at one instant, and the state that they give.
package struct PowerSupplies: Hashable, Sendable {
    /// Which of them count.
    package struct Selection: Hashable, Sendable {
        /// Names of those that alone are the battery, whatever they say of themselves; empty = every battery and UPS of
        /// the system that is present.
        package var batteries: Set<String> = []
        /// Names of those that alone count as external power; empty = every supply of the system that is not a battery.
        package var chargers: Set<String> = []
        /// Names of those that do not count.
        package var ignored: Set<String> = []

        package init() {}

        func wants(_ name: String) -> Bool { batteries.contains(name) || chargers.contains(name) }
    }

    /// Those that count, in the order of their names.
    package var batteries: [PowerSupply]
    package var chargers: [PowerSupply]

    package init(_ supplies: [PowerSupply] = [], selection: Selection = Selection()) {
        let counted = supplies.filter { !selection.ignored.contains($0.name) }.sorted { $0.name < $1.name }
        batteries = counted.filter { supply in
            guard selection.batteries.isEmpty else { return selection.batteries.contains(supply.name) }
            return (supply.kind == .battery || supply.kind == .ups) && !supply.isOfPeripheral && supply.isPresent
        }
        chargers = counted.filter { supply in
            guard selection.chargers.isEmpty else { return selection.chargers.contains(supply.name) }
            return supply.kind != .battery && supply.kind != .other && !supply.isOfPeripheral
        }
    }

    package var state: PowerState {
        PowerState(batteryPercent: percent, charging: isCharging, externalPower: hasExternalPower)
    }

    /// 0…100; nil when none reports it: never 0 for lack of a reading.
    private var percent: Int? {
        let readable = batteries.filter { $0.capacity != nil || $0.energy != nil || $0.charge != nil }
        guard let first = readable.first else { return nil }
        // The gauge of a cell knows better than the ratio of two numbers.
        if readable.count == 1, let capacity = first.capacity { return capacity }
        if let level = Self.level(readable.map(\.energy)) ?? Self.level(readable.map(\.charge)) {
            return Int(level.rounded())
        }
        let levels = readable.compactMap(\.capacity)
        return levels.isEmpty ? nil : Int((Double(levels.reduce(0, +)) / Double(levels.count)).rounded())
    }

    /// Of all together, weighted by size; nil unless all report it.
    private static func level(_ stores: [PowerSupply.Store?]) -> Double? {
        let known = stores.compactMap { $0 }
        guard known.count == stores.count else { return nil }
        return PowerState.percent(
            level: known.map(\.now).reduce(0, +), scale: known.map(\.full).reduce(0, +))
    }

    private var isCharging: Bool? {
        let known = batteries.compactMap(\.status)
        return known.isEmpty ? nil : known.contains(.charging)
    }

    /// Where no supply reports it, the battery shows it: one that charges has power, one that discharges has none. A full or
    /// held one may have either.
    private var hasExternalPower: Bool? {
        let online = chargers.compactMap(\.isOnline)
        if !online.isEmpty { return online.contains(true) }
        let known = batteries.compactMap(\.status)
        if known.contains(.charging) { return true }
        return known.contains(.discharging) ? false : nil
    }
}
