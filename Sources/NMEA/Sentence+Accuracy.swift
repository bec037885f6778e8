import WaypostCore

/// Dilution of precision and active satellites; several an epoch, one for each constellation.
struct GSA {
    var mode: FixMode?
    var hdop: Double?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        cursor.skip(in: bytes)
        mode = cursor.integer(in: bytes).flatMap { FixMode(rawValue: $0) }
        cursor.skip(13, in: bytes)
        hdop = cursor.decimal(in: bytes, 0...1_000_000)
    }
}

/// Error estimates of GST (1 sigma), GBS, Garmin's PGRME and u-blox's PUBX,00, as horizontal accuracy (DRMS).
struct ErrorEstimate {
    /// Milliseconds since midnight; nil also in PGRME, which has none.
    var time: Int?
    /// Metres; nil unless finite and above 0.
    var horizontal: Double?

    /// Sigma of latitude and longitude in fields 6 and 7.
    @inline(__always)
    init(gst bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        cursor.skip(4, in: bytes)
        horizontal = Self.hypotenuse(cursor.decimal(in: bytes), cursor.decimal(in: bytes))
    }

    /// Expected error of latitude and longitude in fields 2 and 3.
    @inline(__always)
    init(gbs bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        horizontal = Self.hypotenuse(cursor.decimal(in: bytes), cursor.decimal(in: bytes))
    }

    @inline(__always)
    init(pgrme bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        horizontal = Self.usable(cursor.decimal(in: bytes))
    }

    @inline(__always)
    init(pubx00 bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        cursor.skip(6, in: bytes)
        horizontal = Self.usable(cursor.decimal(in: bytes))
    }

    private static func hypotenuse(_ north: Double?, _ east: Double?) -> Double? {
        guard let north, let east else { return nil }
        return usable((north * north + east * east).squareRoot())
    }

    private static func usable(_ metres: Double?) -> Double? {
        guard let metres, metres.isFinite, metres > 0 else { return nil }
        return metres
    }
}

/// Time and date.
struct ZDA {
    /// Milliseconds since midnight.
    var time: Int?
    /// Days since 1970-01-01.
    var day: Int?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        if let d = cursor.integer(in: bytes), let m = cursor.integer(in: bytes), let y = cursor.integer(in: bytes) {
            day = civilDay(year: y, month: m, day: d)
            if day == nil { cursor.countBadField() }
        }
    }
}
