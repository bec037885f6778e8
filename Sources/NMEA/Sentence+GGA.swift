import WaypostCore

/// Fix data.
struct GGA {
    /// Milliseconds since midnight.
    var time: Int?
    var coordinate: Coordinate?
    /// nil = the field is empty, or it has a value that is not known: only another sentence can then say that there is a fix.
    var quality: FixQuality?
    /// The field of the quality is not empty.
    var saysQuality: Bool
    var satellitesUsed: Int?
    var hdop: Double?
    /// Metres above mean sea level.
    var altitude: Double?
    /// Metres of the geoid above the ellipsoid.
    var geoidSeparation: Double?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        coordinate = cursor.coordinate(in: bytes)
        saysQuality = cursor.position < bytes.count && bytes[cursor.position] != UInt8(ascii: ",")
        switch cursor.integer(in: bytes) {
        case .some(9): quality = .dgps  // NovAtel OEM: satellite-based augmentation
        case .some(let digit): quality = FixQuality(rawValue: digit)
        case .none: quality = nil
        }
        satellitesUsed = cursor.integer(in: bytes)
        hdop = cursor.decimal(in: bytes, 0...1_000_000)
        altitude = cursor.length(in: bytes)
        geoidSeparation = cursor.length(in: bytes)
    }

    var isNull: Bool { coordinate?.isNull ?? false }

    /// How much it says about the position: 0 that there is none, or nothing, to 3 that there is one.
    @inline(__always)
    var worth: Int {
        guard let quality else { return saysQuality && !isNull ? 2 : 0 }
        return quality == FixQuality.none ? 0 : isNull ? 1 : 3
    }
}

/// Fix data of several constellations.
struct GNS {
    /// Milliseconds since midnight.
    var time: Int?
    var coordinate: Coordinate?
    /// The best of the constellations; nil when none has a solution.
    var quality: FixQuality?
    var satellitesUsed: Int?
    var hdop: Double?
    /// Metres above mean sea level.
    var altitude: Double?
    /// Metres of the geoid above the ellipsoid.
    var geoidSeparation: Double?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        time = cursor.time(in: bytes)
        coordinate = cursor.coordinate(in: bytes)
        var best = 0
        cursor.letters(in: bytes) { letter in
            let rank = Self.rank(letter)
            if rank > best {
                best = rank
                quality = ModeLetter.quality(letter)
            }
        }
        satellitesUsed = cursor.integer(in: bytes)
        hdop = cursor.decimal(in: bytes, 0...1_000_000)
        altitude = cursor.decimal(in: bytes)
        geoidSeparation = cursor.decimal(in: bytes)
    }

    var isNull: Bool { coordinate?.isNull ?? false }

    /// Order of the letters that make a solution; 0 for the others.
    @inline(__always)
    private static func rank(_ letter: UInt8) -> Int {
        switch letter {
        case UInt8(ascii: "R"): 6
        case UInt8(ascii: "F"): 5
        case UInt8(ascii: "P"): 4
        case UInt8(ascii: "D"): 3
        case UInt8(ascii: "A"): 2
        case UInt8(ascii: "E"): 1
        default: 0
        }
    }
}

/// Geographic position.
struct GLL {
    var coordinate: Coordinate?
    /// Milliseconds since midnight.
    var time: Int?
    /// Status A and mode letter not N.
    var isValid: Bool
    var quality: FixQuality?

    @inline(__always)
    init(_ bytes: Span<UInt8>, _ cursor: inout FieldCursor) {
        coordinate = cursor.coordinate(in: bytes)
        time = cursor.time(in: bytes)
        isValid = cursor.letter(in: bytes) == UInt8(ascii: "A")
        if let mode = cursor.letter(in: bytes) {
            if mode == ModeLetter.notValid { isValid = false }
            quality = ModeLetter.quality(mode)
        }
    }
}
