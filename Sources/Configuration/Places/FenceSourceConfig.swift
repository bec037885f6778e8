import Places
import WaypostTracking

/// A server that lists geofences: `[[geofences.source]]`.
package struct FenceSourceConfig: ListSource {
    package var list: ListSourceConfig
    package var form: FenceList.Form

    package func items(of reply: [UInt8]) throws(ListProblems) -> [Geofence] {
        try FenceList.read(reply, form, source: name)
    }

    /// - Parameter own: the fences of the configuration, whose ids must not look as those of a source.
    static func all(_ tables: [TableReader], own: [Geofence], device: String) -> [FenceSourceConfig] {
        all(tables, read: { FenceSourceConfig(reading: $0, device: device) }) { source, table in
            let prefix = "\(source.name)/"
            guard let fence = own.first(where: { $0.id.hasPrefix(prefix) }) else { return }
            table.report(
                "name",
                "found \(source.name.asTOML) beside the geofence \(fence.id.asTOML.shortened), expected a name with which "
                    + "no id of another geofence begins")
        }
    }

    /// nil when something essential is missing.
    private init?(reading table: TableReader, device: String) {
        let profile = table.require("profile", as: .listProfile(FenceList.Form.words))
        list = ListSourceConfig(reading: table, kind: "geofences", device: device)
        let mapping = FenceMapping(reading: table.tableIfSo("profile"))
        guard let profile, !list.name.isEmpty else { return nil }
        switch profile {
        case .named(let named): form = named
        case .paths: form = .mapping(mapping)
        }
    }
}

extension FenceList.Form {
    fileprivate static let words = [
        ("accesso-venue", FenceList.Form.mapping(.accessoVenue)), ("geojson", .geoJSON),
    ]
}

extension FenceMapping {
    /// `[geofences.source.profile]`
    fileprivate init(reading table: TableReader) {
        self.init()
        table.read("list", into: &list, as: .jsonPath)
        table.read("id", into: &id, as: .jsonPath)
        table.read("name", into: &name, as: .jsonPath)
        table.read("radius", into: &radius, as: .jsonPath)
        table.read("lat", into: &latitude, as: .jsonPath)
        table.read("lon", into: &longitude, as: .jsonPath)
        table.read("polygon", into: &polygon, as: .jsonPath)
        table.read("order", into: &order, as: .word(Order.allCases.map { ($0.rawValue, $0) }))
        table.read("dwell", into: &dwell, as: .jsonPath)
        guard table.isWritten else { return }
        for key in ["lat", "lon"] where table.has("radius") != table.has(key) {
            let missing = table.has("radius") ? key : "radius"
            table.report(
                missing, "found nothing, expected a circle (lat, lon and radius) or a polygon", at: table.position)
        }
        if !table.has("radius"), !table.has("polygon"), !table.has("lat"), !table.has("lon") {
            table.report(
                "polygon", "found nothing, expected a circle (lat, lon and radius) or a polygon", at: table.position)
        }
        if table.has("order"), !table.has("polygon") {
            table.report("order", "found without polygon, expected it together with polygon")
        }
    }
}
