import WaypostCore

/// Reads the fields of one sentence from left to right. An empty field is absent (nil); an unreadable one is nil too,
/// and counted. Blanks around a value do not matter.
struct FieldCursor {
    /// Index of the first byte of the next field; beyond the end when there is none.
    private(set) var position: Int
    private(set) var badFields = 0

    private static let comma = UInt8(ascii: ",")
    private static let point = UInt8(ascii: ".")
    private static let blank = UInt8(ascii: " ")

    /// - Parameter position: index of the first byte after the comma that ends the address.
    init(position: Int) { self.position = position }

    @inline(__always)
    mutating func skip(_ fields: Int = 1, in bytes: Span<UInt8>) {
        var left = fields
        var index = position
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if byte == Self.comma {
                left -= 1
                if left == 0 {
                    position = index
                    return
                }
            }
        }
        position = bytes.count + 1
    }

    /// Moves past the comma that ends the current field, which must begin at `index`; else the field is bad.
    @inline(__always)
    private mutating func endField<Value>(at index: Int, in bytes: Span<UInt8>, _ value: Value) -> Value? {
        if index >= bytes.count {
            position = bytes.count + 1
            return value
        }
        if bytes[index] == Self.comma {
            position = index + 1
            return value
        }
        guard bytes[index] == Self.blank else { return reject(in: bytes) }
        let end = firstNonBlank(from: index, in: bytes)
        guard end >= bytes.count || bytes[end] == Self.comma else { return reject(in: bytes) }
        position = end + 1
        return value
    }

    private func firstNonBlank(from start: Int, in bytes: Span<UInt8>) -> Int {
        var index = start
        while index < bytes.count, bytes[index] == Self.blank { index += 1 }
        return index
    }

    @inline(__always)
    private mutating func reject<Value>(in bytes: Span<UInt8>) -> Value? {
        badFields += 1
        skip(in: bytes)
        return nil
    }

    /// Consumes an empty field.
    @inline(__always)
    private mutating func isEmpty(in bytes: Span<UInt8>) -> Bool {
        if position >= bytes.count {
            position = bytes.count + 1
            return true
        }
        if bytes[position] == Self.blank {
            position = firstNonBlank(from: position, in: bytes)
            if position >= bytes.count {
                position = bytes.count + 1
                return true
            }
        }
        if bytes[position] == Self.comma {
            position += 1
            return true
        }
        return false
    }

    @inline(__always)
    private func digit(_ index: Int, in bytes: Span<UInt8>) -> Int? {
        guard index < bytes.count else { return nil }
        let value = bytes[index] &- UInt8(ascii: "0")
        return value <= 9 ? Int(value) : nil
    }

    /// A field of one letter or sign. Longer ones are bad.
    @inline(__always)
    mutating func letter(in bytes: Span<UInt8>) -> UInt8? {
        if isEmpty(in: bytes) { return nil }
        return endField(at: position + 1, in: bytes, bytes[position])
    }

    /// Hands out each byte of a field.
    @inline(__always)
    mutating func letters(in bytes: Span<UInt8>, _ body: (UInt8) -> Void) {
        var index = position
        while index < bytes.count, bytes[index] != Self.comma {
            body(bytes[index])
            index += 1
        }
        position = index + 1
    }

    /// For a reader that finds a field wrong by its meaning.
    mutating func countBadField() { badFields += 1 }

    /// `hhmmss` and an optional fraction of any length, in milliseconds since midnight: 0…86 400 999.
    @inline(__always)
    mutating func time(in bytes: Span<UInt8>) -> Int? {
        if isEmpty(in: bytes) { return nil }
        guard let h = twoDigits(position, in: bytes), let m = twoDigits(position + 2, in: bytes),
            let s = twoDigits(position + 4, in: bytes), h <= 23, m <= 59, s <= 60
        else { return unusualTime(in: bytes) }
        return time(of: (h * 3600 + m * 60 + s) * 1000, fractionAt: position + 6, in: bytes)
    }

    /// Some receivers write the time as a number, without the zeros before it, and some round up to minute 60 or to
    /// 24:00:00.
    @inline(never)
    private mutating func unusualTime(in bytes: Span<UInt8>) -> Int? {
        guard let number = number(digits: 1...6, in: bytes) else { return reject(in: bytes) }
        let (h, m, s) = (number.value / 10_000, number.value / 100 % 100, number.value % 100)
        let isRoundedUp = s == 0 && (m == 60 && h <= 23 || m == 0 && h == 24)
        guard h <= 23 && m <= 59 && s <= 60 || isRoundedUp else { return reject(in: bytes) }
        let whole = (h * 3600 + m * 60 + s) * 1000
        guard let time = time(of: whole, fractionAt: number.end, in: bytes) else { return nil }
        guard !isRoundedUp || time == whole else {
            badFields += 1
            return nil
        }
        return time
    }

    /// A number without zeros before it, unless it has all of its digits.
    private func number(digits: ClosedRange<Int>, in bytes: Span<UInt8>) -> (value: Int, end: Int)? {
        var index = position
        var value = 0
        while let digit = digit(index, in: bytes) {
            guard index - position < digits.upperBound else { return nil }
            value = value * 10 + digit
            index += 1
        }
        let count = index - position
        guard digits.contains(count), count == 1 || count == digits.upperBound || bytes[position] != UInt8(ascii: "0")
        else { return nil }
        return (value, index)
    }

    /// - Parameters:
    ///   - whole: milliseconds since midnight.
    ///   - start: index after the last digit before the point.
    @inline(__always)
    private mutating func time(of whole: Int, fractionAt start: Int, in bytes: Span<UInt8>) -> Int? {
        var index = start
        var milliseconds = 0
        if index < bytes.count, bytes[index] == Self.point {
            index += 1
            var weight = 1000
            while let digit = digit(index, in: bytes) {
                if weight > 1 {
                    weight /= 10
                    milliseconds += digit * weight
                } else if weight == 1 {
                    weight = 0
                    if digit >= 5 { milliseconds += 1 }
                }
                index += 1
            }
        }
        return endField(at: index, in: bytes, min(whole + milliseconds, 86_400_999))
    }

    @inline(__always)
    private func twoDigits(_ index: Int, in bytes: Span<UInt8>) -> Int? {
        guard let tens = digit(index, in: bytes), let ones = digit(index + 1, in: bytes) else { return nil }
        return tens * 10 + ones
    }

    /// `ddmmyy` as days since 1970-01-01; 80…99 is 19yy, 00…79 is 20yy. nil unless it is a day of the calendar.
    @inline(__always)
    mutating func date(in bytes: Span<UInt8>) -> Int? {
        if isEmpty(in: bytes) { return nil }
        guard let day = twoDigits(position, in: bytes), let month = twoDigits(position + 2, in: bytes),
            let year = twoDigits(position + 4, in: bytes),
            let days = civilDay(year: year >= 80 ? 1900 + year : 2000 + year, month: month, day: day)
        else { return dateWithoutZero(in: bytes) }
        return endField(at: position + 6, in: bytes, days)
    }

    /// A date that was written as a number has five digits on the first nine days of a month: `dmmyy`.
    @inline(never)
    private mutating func dateWithoutZero(in bytes: Span<UInt8>) -> Int? {
        guard let number = number(digits: 5...6, in: bytes), number.end == position + 5 else {
            return reject(in: bytes)
        }
        let (day, month, year) = (number.value / 10_000, number.value / 100 % 100, number.value % 100)
        guard let days = civilDay(year: year >= 80 ? 1900 + year : 2000 + year, month: month, day: day) else {
            return reject(in: bytes)
        }
        return endField(at: number.end, in: bytes, days)
    }

    /// A field of digits only, at most nine.
    @inline(__always)
    mutating func integer(in bytes: Span<UInt8>) -> Int? {
        if isEmpty(in: bytes) { return nil }
        var index = position
        var value = 0
        while let digit = digit(index, in: bytes) {
            guard index - position < 9 else { return reject(in: bytes) }
            value = value * 10 + digit
            index += 1
        }
        guard index > position else { return reject(in: bytes) }
        return endField(at: index, in: bytes, value)
    }

    /// A decimal number. At most 15 digits count, so that the quotient is the nearest `Double`; more before the point
    /// are bad, more after it are left out.
    @inline(__always)
    mutating func decimal(in bytes: Span<UInt8>) -> Double? {
        if isEmpty(in: bytes) { return nil }
        var index = position
        let sign = bytes[index]
        if sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { index += 1 }
        var mantissa: Int64 = 0
        var digits = 0
        while let digit = digit(index, in: bytes) {
            guard digits < 15 else { return reject(in: bytes) }
            mantissa = mantissa * 10 + Int64(digit)
            digits += 1
            index += 1
        }
        var decimals = 0
        if index < bytes.count, bytes[index] == Self.point {
            index += 1
            while let digit = digit(index, in: bytes) {
                if digits < 15 {
                    mantissa = mantissa * 10 + Int64(digit)
                    decimals += 1
                }
                digits += 1
                index += 1
            }
        }
        guard digits > 0 else { return reject(in: bytes) }
        let magnitude = Double(mantissa) / powersOfTen[decimals]
        return endField(at: index, in: bytes, sign == UInt8(ascii: "-") ? -magnitude : magnitude)
    }

    /// A length and its unit in metres: feet where the unit says so, metres where there is none.
    @inline(__always)
    mutating func length(in bytes: Span<UInt8>) -> Double? {
        let value = decimal(in: bytes)
        let defects = badFields
        let unit = letter(in: bytes)
        if unit == UInt8(ascii: "M") { return value }
        guard let value else { return nil }
        switch unit {
        case nil where badFields == defects, UInt8(ascii: "m"): return value
        case UInt8(ascii: "F"), UInt8(ascii: "f"): return value * 0.3048
        case nil: return nil
        default:
            badFields += 1
            return nil
        }
    }

    /// A decimal number within `range`.
    @inline(__always)
    mutating func decimal(in bytes: Span<UInt8>, _ range: ClosedRange<Double>) -> Double? {
        guard let value = decimal(in: bytes) else { return nil }
        guard range.contains(value) else {
            badFields += 1
            return nil
        }
        return value
    }

    /// `ddmm.mmmm,N,dddmm.mmmm,E` in integers all the way, rounded half away from zero to 1e-7 degree. nil unless all
    /// four fields are there and in range.
    @inline(__always)
    mutating func coordinate(in bytes: Span<UInt8>) -> Coordinate? {
        let latitude = angle(in: bytes)
        let north = letter(in: bytes)
        let longitude = angle(in: bytes)
        let east = letter(in: bytes)
        guard var lat = latitude, var lon = longitude else { return nil }
        guard let north, let east else {
            badFields += 1
            return nil
        }
        let (isNorth, isSouth) = (north == UInt8(ascii: "N"), north == UInt8(ascii: "S"))
        let (isEast, isWest) = (east == UInt8(ascii: "E"), east == UInt8(ascii: "W"))
        guard isNorth || isSouth, isEast || isWest, lat <= 900_000_000, lon <= 1_800_000_000 else {
            badFields += 1
            return nil
        }
        if isSouth { lat = -lat }
        if isWest { lon = -lon }
        return Coordinate(latitudeE7: Int32(lat), longitudeE7: Int32(lon))
    }

    /// Degrees and minutes as 1e-7 degree, at most 999 degrees.
    @inline(__always)
    private mutating func angle(in bytes: Span<UInt8>) -> Int64? {
        if isEmpty(in: bytes) { return nil }
        var index = position
        var whole: Int64 = 0
        while let digit = digit(index, in: bytes) {
            guard index - position < 5 else { return reject(in: bytes) }
            whole = whole * 10 + Int64(digit)
            index += 1
        }
        guard index > position else { return reject(in: bytes) }
        let (degrees, minutes) = whole.quotientAndRemainder(dividingBy: 100)
        // Nine decimals of a minute are 2e-5 of our unit; further ones cannot change the rounding.
        var billionths: Int64 = 0
        if index < bytes.count, bytes[index] == Self.point {
            index += 1
            var decimals = 0
            while let digit = digit(index, in: bytes) {
                if decimals < 9 {
                    billionths = billionths * 10 + Int64(digit)
                    decimals += 1
                }
                index += 1
            }
            billionths *= integerPowersOfTen[9 - decimals]
        }
        // 60.0000 is 59.99999 rounded up.
        guard minutes < 60 || minutes == 60 && billionths == 0 else { return reject(in: bytes) }
        let fraction = (minutes * 1_000_000_000 + billionths + 3000) / 6000
        return endField(at: index, in: bytes, degrees * 10_000_000 + fraction)
    }
}

/// Days since 1970-01-01; nil unless the day exists and is in 1980…2079, the years of a two-digit year.
@inline(__always)
func civilDay(year: Int, month: Int, day: Int) -> Int? {
    guard (1980...2079).contains(year), let date = CivilDate(year: year, month: month, day: day) else { return nil }
    return date.daysSince1970
}

private let powersOfTen: InlineArray<16, Double> = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
]

private let integerPowersOfTen: InlineArray<10, Int64> = [
    1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
]
