import WaypostCore

/// A text that lists regions of beacons, read whole or not at all.
package enum BeaconList {
    /// The regions of a server's reply.
    package static func read(_ reply: [UInt8], _ mapping: BeaconMapping) throws(ListProblems) -> [BeaconRegion] {
        try mapping.read(reply)
    }
}

extension BeaconRegion: ListedItem {
    package static var noun: String { "beacon region" }
    /// As many as each report of the adapter can be compared with, cheaply.
    package static var inForceMax: Int { 256 }
}
