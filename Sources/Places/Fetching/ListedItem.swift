/// What servers list: geofences, or regions of beacons.
package protocol ListedItem: Hashable, Sendable {
    /// Distinguishes it from all others in force of its kind.
    var id: String { get }
    /// One of them, for people: `geofence`.
    static var noun: String { get }
    /// How many may be in force, those of the configuration included.
    static var inForceMax: Int { get }
    /// Corners of its polygon, which take most of the memory of a long list; 0 without one.
    var cornerCount: Int { get }
    /// How many corners all of them together may have.
    static var cornersMax: Int { get }
}

extension ListedItem {
    package var cornerCount: Int { 0 }
    package static var cornersMax: Int { .max }
}
