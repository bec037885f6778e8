import Places

/// A server that lists regions of beacons: `[[beacons.source]]`.
package struct BeaconSourceConfig: ListSource {
    package var list: ListSourceConfig
    package var form: BeaconMapping

    package func items(of reply: [UInt8]) throws(ListProblems) -> [BeaconRegion] {
        try BeaconList.read(reply, form)
    }

    static func all(_ tables: [TableReader], device: String) -> [BeaconSourceConfig] {
        all(tables, read: { BeaconSourceConfig(reading: $0, device: device) })
    }

    /// nil when something essential is missing.
    private init?(reading table: TableReader, device: String) {
        let profile = table.require("profile", as: .listProfile(BeaconMapping.words))
        list = ListSourceConfig(reading: table, kind: "beacons", device: device)
        let mapping = BeaconMapping(reading: table.tableIfSo("profile"))
        guard let profile, !list.name.isEmpty else { return nil }
        switch profile {
        case .named(let named): form = named
        case .paths: form = mapping
        }
    }
}

extension BeaconMapping {
    fileprivate static let words = [("accesso-beacons", BeaconMapping.accessoBeacons)]

    /// `[beacons.source.profile]`
    fileprivate init(reading table: TableReader) {
        self.init()
        table.read("list", into: &list, as: .jsonPath)
        table.read("uuid", into: &uuid, as: .jsonPath)
        table.read("major", into: &major, as: .jsonPath)
        table.read("minor", into: &minor, as: .jsonPath)
        table.read("name", into: &name, as: .jsonPath)
        if table.has("minor"), !table.has("major") {
            table.report("minor", "found it without major, expected both")
        }
    }
}
