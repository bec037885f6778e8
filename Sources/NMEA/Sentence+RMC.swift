import WaypostCore

/// Recommended minimum data.
struct RMC {
    /// Milliseconds since midnight.
    var time: Int?
    /// Status A (or D) and mode letter not N. The navigation status of NMEA 4.1 does not count: caution is not void.
    var isValid: Bool
    var coordinate: Coordinate?
    /// Metres per second.
    var speed: Double?
    /// Degrees true.
    var course: Double?
    /// Days since 1970-01-01.
    var day: Int?
    var quality: FixQuality?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        let status = cursor.letter(in: bytes)
        isValid = status == UInt8(ascii: "A") || status == UInt8(ascii: "D")
        coordinate = cursor.coordinate(in: bytes)
        speed = cursor.decimal(in: bytes, 0...100_000).map(metresPerSecond(knots:))
        course = cursor.decimal(in: bytes, 0...360)
        day = cursor.date(in: bytes)
        cursor.skip(2, in: bytes)
        if let mode = cursor.letter(in: bytes) {
            if mode == ModeLetter.notValid { isValid = false }
            quality = ModeLetter.quality(mode)
        }
    }

    var isNull: Bool { coordinate?.isNull ?? false }
}

/// Track made good and ground speed.
struct VTG {
    /// Degrees true.
    var course: Double?
    /// Metres per second.
    var speed: Double?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        course = cursor.decimal(in: bytes, 0...360)
        cursor.skip(3, in: bytes)
        speed = cursor.decimal(in: bytes, 0...100_000).map(metresPerSecond(knots:))
    }
}

@inline(__always)
private func metresPerSecond(knots: Double) -> Double { knots * 1852 / 3600 }
