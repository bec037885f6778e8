import Delivery
import JSON
import Positioning

/// Numbers and text as exported files have them: the same digits for the same value, wherever it appears.
enum TrackText {
    /// Degrees with seven decimals.
    static func degrees(_ e7: Int32) -> String { decimal(Int64(e7), places: 7) }

    static func altitude(_ location: Location) -> String? {
        Scaled.altitude(location.altitudeMSL).map { decimal($0, places: 2) }
    }

    static func accuracy(_ location: Location) -> String? {
        Scaled.accuracy(location.horizontalAccuracy).map { decimal($0, places: 1) }
    }

    static func speed(_ location: Location) -> String? {
        Scaled.speed(location.speed).map { decimal($0, places: 2) }
    }

    static func course(_ location: Location) -> String? {
        Scaled.course(location.course).map { decimal($0, places: 1) }
    }

    static func hdop(_ location: Location) -> String? { Scaled.hdop(location.hdop).map { decimal($0, places: 2) } }

    static func odometer(_ location: Location) -> String {
        decimal(Scaled.odometer(location.odometer) ?? 0, places: 1)
    }

    /// `longitude,latitude` and, where it is known, the altitude.
    static func position(_ location: Location, separator: String) -> String {
        let (coordinate, altitude) = (location.coordinate, altitude(location))
        return [degrees(coordinate.longitudeE7), degrees(coordinate.latitudeE7), altitude].compactMap { $0 }
            .joined(separator: separator)
    }

    /// `scaled` · 10^−`places`, always with that many decimals.
    static func decimal(_ scaled: Int64, places: Int) -> String {
        let digits = String(scaled.magnitude)
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.utf8.count)) + digits
        return (scaled < 0 ? "-" : "") + padded.dropLast(places) + "." + padded.suffix(places)
    }

    /// `<name>text</name>`; nothing for nil.
    static func element(_ name: String, _ text: String?) -> String { text.map { "<\(name)>\($0)</\(name)>" } ?? "" }

    static func json(_ text: String) -> String {
        var writer = JSONWriter()
        writer.value(text)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// RFC 4180: in quotes where it has a comma, a quote or a line end.
    static func csv(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x2C || $0 == 0x22 || $0 == 0x0A || $0 == 0x0D }) else { return text }
        return "\"" + text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
}
