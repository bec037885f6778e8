import Sensors
import WaypostTracking

/// What is known of battery and external power, and from where.
package struct BatteryConfig: Hashable, Sendable {
    /// nil = from the control socket only.
    package var supplies: SupplySettings?

    /// The supplies of the kernel.
    package struct SupplySettings: Hashable, Sendable {
        /// The default is `/sys/class/power_supply`.
        package var root = "/sys/class/power_supply"
        package var selection = PowerSupplies.Selection()
    }

    /// - Parameter isLive: the receiver is one that measures now. The battery of this host has nothing to do with a log
    ///   from a file.
    init(reading table: TableReader, isLive: Bool) {
        var readsSupplies = isLive
        table.read(
            "source", into: &readsSupplies, as: .word([("sysfs", true), ("none", false)]),
            note: isLive ? nil : "with a file as the source")
        var settings = SupplySettings()
        table.read("path", into: &settings.root, as: .absolutePath("the folder of the supplies"))
        func names(_ key: String) -> Set<String> {
            var names: [String] = []
            table.read(key, into: &names, as: .supplyNames)
            return Set(names)
        }
        settings.selection.batteries = names("batteries")
        settings.selection.chargers = names("chargers")
        settings.selection.ignored = names("ignore")
        let both = settings.selection.ignored.intersection(
            settings.selection.batteries.union(settings.selection.chargers))
        if let name = both.min() {
            table.report("ignore", "found \(name.asTOML), which another key of this table names as one to use")
        }
        supplies = readsSupplies ? settings : nil
    }
}

extension BatteryAlarm.Settings {
    mutating func read(_ table: TableReader) {
        table.read("low", into: &low, as: ValueForm<Double>.percent.orNone("off"))
        table.read("hysteresis", into: &hysteresis, as: .percent)
    }
}

extension ValueForm where Value == [String] {
    fileprivate static var supplyNames: ValueForm {
        names(
            "an array of names such as [\"BAT0\"]", each: "the name of a folder in /sys/class/power_supply",
            bytesMax: 64)
    }
}
