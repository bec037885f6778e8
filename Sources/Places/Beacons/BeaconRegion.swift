/// All beacons of one venue, or of one part of it.
package struct BeaconRegion: Hashable, Sendable {
    package var uuid: ProximityUUID
    /// nil = any.
    package var major: UInt16?
    /// nil = any; only with `major`.
    package var minor: UInt16?
    package var name: String?

    package init(uuid: ProximityUUID, major: UInt16? = nil, minor: UInt16? = nil, name: String? = nil) {
        self.uuid = uuid
        self.major = major
        self.minor = minor
        self.name = name
    }

    /// Distinguishes it from all other regions: `UUID/major/minor` as far as they are given.
    package var id: String {
        [uuid.description, major.map(String.init), minor.map(String.init)].compactMap(\.self).joined(separator: "/")
    }

    package func contains(_ beacon: Beacon) -> Bool {
        beacon.uuid == uuid && major.map { $0 == beacon.major } ?? true && minor.map { $0 == beacon.minor } ?? true
    }
}

extension BeaconRegion {
    /// - Parameter id: as `id` writes it; a region without its name.
    package init?(id: String) {
        let parts = id.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...3).contains(parts.count), let uuid = ProximityUUID(String(parts[0])) else { return nil }
        let numbers = parts.dropFirst().map { UInt16($0) }
        guard !numbers.contains(nil) else { return nil }
        self.init(uuid: uuid, major: numbers.first ?? nil, minor: numbers.count > 1 ? numbers[1] : nil)
    }
}
