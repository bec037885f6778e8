import WaypostCore

/// Where the members of beacon regions are in a server's reply: paths of member names and indexes, as `beacon.uuid`.
package struct BeaconMapping: Hashable, Sendable {
    /// From the reply to the array of regions; empty = the reply is that array.
    package var list: [String] = []
    /// From a region to its members. A UUID in either case.
    package var uuid = ["uuid"]
    /// A whole number from 0 to 65535; nil = regions are whole UUIDs.
    package var major: [String]?
    /// The same; nil = regions are not narrowed by it.
    package var minor: [String]?
    /// A text; nil = regions have no names.
    package var name: [String]?
    /// A region without `major` is a mistake: its UUID may be that of other venues as well.
    package var needsMajor = false

    package init() {}

    /// The beacon regions of a venue in accesso's te2 API.
    package static let accessoBeacons: BeaconMapping = {
        var mapping = BeaconMapping()
        mapping.uuid = ["proximityUUID"]
        mapping.major = ["major"]
        mapping.needsMajor = true
        return mapping
    }()

    func read(_ reply: [UInt8]) throws(ListProblems) -> [BeaconRegion] {
        var regions = ItemCollector(named: list.joined(separator: "."), mayRepeat: true, region)
        try ListText.checkItems(of: ListText.read(reply, at: list, into: &regions), at: list, "beacon regions")
        return try regions.items()
    }

    private func region(of item: JSONValue) throws(ListText.Mistake) -> BeaconRegion {
        guard item.members != nil else { throw ListText.Mistake(found: "something else", expected: "an object") }
        guard let uuid = item.value(at: uuid)?.string.flatMap({ ProximityUUID($0) }) else {
            throw ListText.Mistake(
                ListText.words(uuid), found: "no UUID", expected: "one such as \"F7826DA6-4FA2-4E98-8024-BC5B71E0893E\""
            )
        }
        let major = try number(of: item, at: major, isNeeded: needsMajor)
        let minor = try number(of: item, at: minor, isNeeded: false)
        if minor != nil, major == nil {
            throw ListText.Mistake(ListText.words(self.minor), found: "it without a major", expected: "both")
        }
        let name = try ListText.name(of: item, at: name)
        let region = BeaconRegion(uuid: uuid, major: major, minor: minor, name: name)
        try ListText.check(id: region.id, name: name)
        return region
    }

    /// nil = any.
    private func number(
        of item: JSONValue, at path: [String]?, isNeeded: Bool
    ) throws(ListText.Mistake) -> UInt16? {
        let value = path.flatMap { item.value(at: $0) } ?? .null
        if value == .null, !isNeeded { return nil }
        guard let number = value.integer.flatMap({ UInt16(exactly: $0) }) else {
            throw ListText.Mistake(
                ListText.words(path), found: value == .null ? "nothing" : "another value",
                expected: "a whole number from 0 to 65535")
        }
        return number
    }
}
