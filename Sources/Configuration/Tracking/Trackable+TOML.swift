import WaypostCore
import WaypostTracking

extension Trackable {
    /// If the file has none there is one, named after the device.
    static func all(_ tables: [TableReader], device: String) -> [Trackable] {
        var trackables: [Trackable] = []
        var ids: Set<String> = []
        for table in tables {
            let id = table.require("id", as: .name)
            let destination = Coordinate(reading: table.table("destination"))
            let constraints = DefaultResolutionConstraints(reading: table.table("constraints"))
            guard let id else { continue }
            if !ids.insert(id).inserted {
                table.report("id", "found \(id.asTOML) again, expected an id that no other trackable has")
            }
            trackables.append(
                Trackable(id: id, destination: destination, constraints: constraints.map { .default($0) }))
        }
        return trackables.isEmpty ? [Trackable(id: device)] : trackables
    }
}

extension Coordinate {
    init?(reading table: TableReader) {
        let latitude = table.require("latitude", as: .number("degrees", .between(-90, 90)))
        let longitude = table.require("longitude", as: .number("degrees", .between(-180, 180)))
        guard let latitude, let longitude else { return nil }
        self.init(latitude: latitude, longitude: longitude)
    }
}

extension DefaultResolutionConstraints {
    /// nil when the table is not written. Each part is optional, but none may be empty.
    init?(reading table: TableReader) {
        let set = table.table("resolutions")
        let proximity = table.table("proximity")
        var threshold: Double?
        var multiplier: Double?
        table.read("battery_threshold", into: &threshold, as: .percent)
        table.read("low_battery_multiplier", into: &multiplier, as: .multiplier)
        let resolutions = ResolutionSet(
            farWithoutSubscriber: Resolution(reading: set.table("far_without_subscriber")),
            farWithSubscriber: Resolution(reading: set.table("far_with_subscriber")),
            nearWithoutSubscriber: Resolution(reading: set.table("near_without_subscriber")),
            nearWithSubscriber: Resolution(reading: set.table("near_with_subscriber")))
        if set.isWritten, set.isEmpty {
            table.report("resolutions", "found an empty table, expected at least one resolution")
        }
        let near = Proximity(reading: proximity)
        guard table.isWritten else { return nil }
        if table.has("battery_threshold") != table.has("low_battery_multiplier") {
            let (there, missing) =
                threshold != nil || table.has("battery_threshold")
                ? ("battery_threshold", "low_battery_multiplier") : ("low_battery_multiplier", "battery_threshold")
            table.report(there, "found without \(missing), expected both or neither")
        }
        let battery = threshold.flatMap { threshold in
            multiplier.map { LowBattery(threshold: threshold, multiplier: $0) }
        }
        self.init(resolutions: resolutions, proximity: near, lowBattery: battery)
    }
}

extension Proximity {
    fileprivate init?(reading table: TableReader) {
        self.init()
        table.read("spatial", into: &spatial, as: .distance(.atLeast(1)))
        table.read("temporal", into: &temporal, as: .duration(.atLeast(1)))
        guard table.isWritten else { return nil }
        if !table.has("spatial"), !table.has("temporal") {
            table.report("spatial", "found neither spatial nor temporal, expected one of them or both")
        }
    }
}
