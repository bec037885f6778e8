import WaypostCore

/// A location as viewers of the channel read it: a GeoJSON feature with exactly the members that they accept.
package struct ChannelFeature: Hashable, Sendable {
    package var coordinate: Coordinate
    /// Metres; nil = unknown, which has no form on the channel and becomes 0.
    package var altitude: Double?
    /// Metres, above 0.
    package var accuracy: Double
    /// Degrees true; nil = unknown.
    package var bearing: Double?
    /// Metres per second; nil = unknown.
    package var speed: Double?
    package var time: UTCTime

    /// The error that a receiver usually has, by which HDOP is a factor.
    private static let metresPerHDOP = 5.0

    package init(
        coordinate: Coordinate, altitude: Double?, accuracy: Double, bearing: Double?, speed: Double?, time: UTCTime
    ) {
        self.coordinate = coordinate
        self.altitude = altitude
        self.accuracy = accuracy
        self.bearing = bearing
        self.speed = speed
        self.time = time
    }

    /// - Returns: nil when nothing is known of the accuracy: viewers of two kinds break off for ever at a negative or
    ///   missing one, and any other would be invented.
    package init?(_ location: Location) {
        guard let accuracy = location.horizontalAccuracy ?? location.hdop.map({ $0 * Self.metresPerHDOP }),
            accuracy > 0, accuracy.isFinite
        else { return nil }
        self.init(
            coordinate: location.coordinate, altitude: location.altitudeMSL ?? location.altitudeHAE,
            accuracy: accuracy, bearing: location.course, speed: location.speed, time: location.time)
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.field("type", word: "Feature")
        writer.key("geometry")
        writer.beginObject()
        writer.field("type", word: "Point")
        writer.key("coordinates")
        writer.beginArray()
        // RFC 7946: longitude first.
        writer.value(scaled: Int64(coordinate.longitudeE7), places: 7)
        writer.value(scaled: Int64(coordinate.latitudeE7), places: 7)
        writer.value(scaled: Scaled.integer(altitude, places: 2) ?? 0, places: 2)
        writer.endArray()
        writer.endObject()
        writer.key("properties")
        writer.beginObject()
        // Rounding must not make it 0, which would mean perfect.
        writer.field("accuracyHorizontal", scaled: max(1, Scaled.integer(accuracy, places: 2) ?? .max), places: 2)
        writer.field("bearing", scaled: scaledBearing, places: 1)
        writer.field("speed", scaled: Self.known(speed, places: 2) ?? -100, places: 2)
        writer.field("time", scaled: time.milliseconds, places: 3)
        writer.endObject()
        writer.endObject()
    }

    /// In tenths of a degree; -1 degree = unknown.
    private var scaledBearing: Int64 {
        guard let scaled = Self.known(bearing, places: 1), scaled <= 3600 else { return -10 }
        return scaled % 3600
    }

    private static func known(_ value: Double?, places: Int) -> Int64? {
        Scaled.integer(value, places: places).flatMap { $0 >= 0 ? $0 : nil }
    }
}
