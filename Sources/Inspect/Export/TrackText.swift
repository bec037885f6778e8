import WaypostCore

/// Numbers and text as exported files have them: the same digits for the same value, wherever it appears.
enum TrackText {
    /// `=`, `+`, `-`, `@`, and a tab or a carriage return, which spreadsheets skip before one of them.
    private static let formulaStarts: [UInt8] = [0x3D, 0x2B, 0x2D, 0x40, 0x09, 0x0D]

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

    /// What one point of a track is without and with an altitude: a track has one at all of its points or at none, since readers
    /// take a point without one beside others to be at 0 m. Which it is, is known at the end of the track.
    enum Altitude {
        /// Before the text with, before that without, and at the end of both. No other text has these bytes.
        static let marks: ClosedRange<UInt8> = 0x01...0x03

        static func text(_ with: String, without: String = "") -> String { "\u{1}\(with)\u{2}\(without)\u{3}" }

        /// Chooses in a text that comes in pieces.
        struct Choice {
            let isKnown: Bool
            private var part: UInt8 = 0x03

            init(isKnown: Bool) { self.isKnown = isKnown }

            mutating func chosen(_ bytes: [UInt8]) -> [UInt8] {
                bytes.filter { byte in
                    if Altitude.marks.contains(byte) {
                        part = byte
                        return false
                    }
                    return part == 0x03 || part == (isKnown ? 0x01 : 0x02)
                }
            }
        }
    }

    /// A point of a track: as `position`, with the altitude only if all points of the track have one.
    static func trackPosition(_ location: Location, separator: String, without: String = "") -> String {
        let coordinate = location.coordinate
        return degrees(coordinate.longitudeE7) + separator + degrees(coordinate.latitudeE7)
            + Altitude.text(altitude(location).map { separator + $0 } ?? "", without: without)
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
    ///
    /// Behind an apostrophe where a spreadsheet would take it for a formula: names and ids come from servers, beacons and other
    /// programs. For texts alone: a negative number begins with a minus.
    static func csv(_ text: String) -> String {
        let isFormula = text.utf8.first.map { formulaStarts.contains($0) } ?? false
        let text = isFormula ? "'\(text)" : text
        guard text.utf8.contains(where: { $0 == 0x2C || $0 == 0x22 || $0 == 0x0A || $0 == 0x0D }) else { return text }
        return "\"" + text.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
}
