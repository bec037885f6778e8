import Places
import WaypostCore

/// Which beacons are looked for, and when.
package struct BeaconConfig: Hashable, Sendable {
    /// The default is false: no Bluetooth is touched.
    package var isEnabled = false
    package var regions: [BeaconRegion] = []
    /// While the asset is parked.
    package var scan = ScanWindows()

    /// A window of scanning in each period.
    package struct ScanWindows: Hashable, Sendable {
        /// The default is 10 s.
        package var window = Duration.seconds(10)
        /// The default is 60 s; the same as `window` = without a pause.
        package var period = Duration.seconds(60)

        package init() {}
    }

    package init() {}

    /// - Parameters:
    ///   - regionTables: those of `regions`.
    ///   - hasSources: servers list more.
    init(reading table: TableReader, _ regionTables: [TableReader], hasSources: Bool) {
        table.read("enabled", into: &isEnabled, as: .flag)
        table.read("scan", into: &scan, as: .scanWindows)
        var ids: Set<String> = []
        for table in regionTables {
            guard let region = BeaconRegion(reading: table) else { continue }
            if !ids.insert(region.id).inserted {
                table.report("uuid", "found the region \(region.id) again, expected each once")
            }
            regions.append(region)
        }
        if regions.count > BeaconRegion.inForceMax {
            table.report("regions", "found \(regions.count) regions, expected at most \(BeaconRegion.inForceMax)")
        }
        if isEnabled, regions.isEmpty, !table.has("regions"), !hasSources {
            table.warn("regions", "found none and no source, expected at least one: no beacon is looked for")
        }
    }
}

extension BeaconRegion {
    fileprivate init?(reading table: TableReader) {
        let uuid = table.require("uuid", as: .proximityUUID)
        var major: Int?
        table.read("major", into: &major, as: .integer(.between(0, 65_535)))
        var minor: Int?
        table.read("minor", into: &minor, as: .integer(.between(0, 65_535)))
        var name: String?
        table.read("name", into: &name, as: .name)
        if minor != nil, major == nil {
            table.report("minor", "found it without major, expected both")
        }
        guard table.isWritten, let uuid else { return nil }
        self.init(
            uuid: uuid, major: major.map { UInt16(clamping: $0) }, minor: minor.map { UInt16(clamping: $0) }, name: name
        )
    }
}

extension ValueForm where Value == ProximityUUID {
    fileprivate static var proximityUUID: ValueForm {
        ValueForm(
            expected: "a UUID such as \"F7826DA6-4FA2-4E98-8024-BC5B71E0893E\"",
            read: { node, environment throws(Mistake) in
                guard let uuid = ProximityUUID(try node.text(environment)) else { throw Mistake() }
                return uuid
            },
            render: { $0.description.asTOML })
    }
}

extension ValueForm where Value == BeaconConfig.ScanWindows {
    fileprivate static var scanWindows: ValueForm {
        ValueForm(
            expected: "a window and a period such as \"10s/60s\", from 1s to 1h, the window not the longer one",
            read: { node, environment throws(Mistake) in
                let parts = try node.text(environment).split(separator: "/", omittingEmptySubsequences: false)
                guard parts.count == 2, let window = length(parts[0]), let period = length(parts[1]), window <= period
                else { throw Mistake() }
                var windows = BeaconConfig.ScanWindows()
                (windows.window, windows.period) = (window, period)
                return windows
            },
            render: {
                [$0.window, $0.period].map { UnitScale.duration.render($0.inSeconds) }.joined(separator: "/").asTOML
            })
    }

    private static func length(_ text: Substring) -> Duration? {
        guard case .value(let seconds) = UnitScale.duration.read(String(text)), (1...3600).contains(seconds) else {
            return nil
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
