/// How well the receiver sees, from an open field to a street between towers.
package struct NoisePreset: Hashable, Sendable {
    package let name: String
    /// Metres per axis of the fast part of the error (60 s parked, 20 s moving).
    package var fastSigma: Double
    /// Metres per axis of the slow part of the error (30 min parked, 120 s moving).
    package var slowSigma: Double
    /// Metres per axis, independent from epoch to epoch.
    package var whiteSigma: Double
    /// Multipath jumps of 20–80 m while parked; six times as many while moving.
    package var jumpsPerDay: Double
    /// m/s per axis of the Doppler velocity.
    package var velocitySigma: Double
    package var hdop: Double
    package var satellites: Int

    package static let open = NoisePreset(
        name: "open", fastSigma: 0.8, slowSigma: 1.5, whiteSigma: 0.2, jumpsPerDay: 0, velocitySigma: 0.05, hdop: 0.8,
        satellites: 12)
    package static let street = NoisePreset(
        name: "street", fastSigma: 1.0, slowSigma: 2.5, whiteSigma: 0.3, jumpsPerDay: 3, velocitySigma: 0.12,
        hdop: 1.1, satellites: 9)
    package static let canyon = NoisePreset(
        name: "canyon", fastSigma: 2.0, slowSigma: 8.0, whiteSigma: 0.5, jumpsPerDay: 20, velocitySigma: 0.35,
        hdop: 1.9, satellites: 7)

    package static let all = [open, street, canyon]

    /// nil when there is no preset of that name.
    package static func named(_ name: String) -> NoisePreset? { all.first { $0.name == name } }
}
