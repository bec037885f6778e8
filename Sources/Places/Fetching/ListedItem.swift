/// What servers list: geofences, or regions of beacons.
package protocol ListedItem: Hashable, Sendable {
    /// Distinguishes it from all others in force of its kind.
    var id: String { get }
    /// One of them, for people: `geofence`.
    static var noun: String { get }
    /// How many may be in force, those of the configuration included.
    static var inForceMax: Int { get }
}
