import WaypostCore

// How quantities are kept in the queue and rendered.
extension Scaled {
    /// Metres per second in cm/s.
    package static func speed(_ value: Double?) -> Int64? { integer(value, places: 2) }
    /// Metres of altitude in cm.
    package static func altitude(_ value: Double?) -> Int64? { integer(value, places: 2) }
    /// Metres of odometer in dm.
    package static func odometer(_ value: Double?) -> Int64? { integer(value, places: 1) }
    package static func hdop(_ value: Double?) -> Int64? { integer(value, places: 2) }

    /// Metres of horizontal accuracy in dm, at least 1: an accuracy is never 0. Zero and less are unknown.
    package static func accuracy(_ value: Double?) -> Int64? {
        guard let value, value > 0, let scaled = integer(value, places: 1) else { return nil }
        return max(1, scaled)
    }

    /// Degrees of course in 0.1°, 0…3599: what would round up to 360.0 is 0.0.
    package static func course(_ value: Double?) -> Int64? {
        guard let scaled = integer(value, places: 1), (0...3600).contains(scaled) else { return nil }
        return scaled == 3600 ? 0 : scaled
    }
}
