import Places
import Tracking

/// A server that lists geofences: `[[geofences.source]]`.
package struct FenceSourceConfig: Hashable, Sendable {
    package var list: ListSourceConfig
    package var form: FenceList.Form

    package var name: String { list.name }

    /// - Parameter own: the fences of the configuration, whose ids must not look as those of a source.
    static func all(_ tables: [TableReader], own: [Geofence], device: String) -> [FenceSourceConfig] {
        var sources: [FenceSourceConfig] = []
        for table in tables {
            let source = FenceSourceConfig(reading: table, device: device)
            guard table.isWritten, let source else { continue }
            if sources.contains(where: { $0.name == source.name }) {
                table.report("name", "found \(source.name.asTOML) again, expected a name that no other source has")
            }
            if let fence = own.first(where: { $0.id.hasPrefix("\(source.name)/") }) {
                table.report(
                    "name",
                    "found \(source.name.asTOML) beside the geofence \(fence.id.asTOML.shortened), expected a name with which "
                        + "no id of another geofence begins")
            }
            sources.append(source)
        }
        return sources
    }

    /// nil when something essential is missing.
    private init?(reading table: TableReader, device: String) {
        let profile = table.require("profile", as: Profile.form)
        list = ListSourceConfig(reading: table, kind: "geofences", device: device)
        let mapping = FenceMapping(reading: table.tableIfSo("profile"))
        guard let profile, !list.name.isEmpty else { return nil }
        switch profile {
        case .accessoVenue: form = .mapping(.accessoVenue)
        case .geoJSON: form = .geoJSON
        case .paths: form = .mapping(mapping)
        }
    }

    /// How the list is written.
    private enum Profile: String, CaseIterable {
        case accessoVenue = "accesso-venue"
        case geoJSON = "geojson"
        /// A table of paths.
        case paths

        static var form: ValueForm<Profile> {
            let words = ValueForm<Profile>.word([accessoVenue, geoJSON].map { ($0.rawValue, $0) })
            return ValueForm(
                expected: "\"accesso-venue\", \"geojson\" or a table of paths",
                read: { node, environment throws(Mistake) in
                    if case .table = node.value { return .paths }
                    return try words.read(node, environment)
                },
                // The table is shown by itself.
                render: { $0 == .paths ? "" : words.render($0) })
        }
    }
}

extension FenceMapping {
    /// `[geofences.source.profile]`
    init(reading table: TableReader) {
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

extension ValueForm where Value == [String] {
    /// From a value of JSON to one in it.
    fileprivate static var jsonPath: ValueForm {
        let text = ValueForm<String>.text("a path of names and indexes such as \"center.lat\"") { text in
            let isGood = text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
            return isGood ? nil : Mistake()
        }
        var form = text.map(
            to: { $0.split(separator: ".").map(String.init) }, from: { $0.joined(separator: ".") })
        form.render = { $0.isEmpty ? "" : text.render($0.joined(separator: ".")) }
        return form
    }
}
