extension UTCTime {
    /// Unix milliseconds of `2023-11-14T22:13:20.123Z`, with any number of fraction digits, or with an offset instead of
    /// `Z` (`+01:00`, `+0100`, `+01`); nil for anything else.
    public static func milliseconds(iso8601 text: String) -> Int64? {
        let bytes = Array(text.utf8)
        func number(_ start: Int, _ count: Int) -> Int? {
            guard start + count <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[start..<start + count] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            return value
        }
        guard (20...40).contains(bytes.count), bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] | 0x20 == UInt8(ascii: "t") || bytes[10] == 0x20, bytes[13] == UInt8(ascii: ":"),
            bytes[16] == UInt8(ascii: ":"), let year = number(0, 4), let month = number(5, 2), let day = number(8, 2),
            let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2), hour < 24, minute < 60,
            second <= 60, let date = CivilDate(year: year, month: month, day: day)
        else { return nil }
        var end = 19
        var thousandths = 0
        if bytes[end] == UInt8(ascii: ".") || bytes[end] == UInt8(ascii: ",") {
            let digits = bytes[(end + 1)...].prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            for place in 0..<3 {
                thousandths = thousandths * 10 + (place < digits.count ? Int(digits[end + 1 + place] - 0x30) : 0)
            }
            end += 1 + digits.count
        }
        let zone = bytes[end...]
        var offset = 0
        if let sign = zone.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
            let hasColon = zone.count == 6 && zone[end + 3] == UInt8(ascii: ":")
            guard hasColon || zone.count == 5 || zone.count == 3, let hours = number(end + 1, 2),
                let minutes = zone.count == 3 ? 0 : number(end + zone.count - 2, 2)
            else { return nil }
            offset = (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -1 : 1)
        } else if !(zone.count == 1 && zone[end] | 0x20 == UInt8(ascii: "z")) {
            return nil
        }
        let timeOfDay = ((hour * 60 + minute - offset) * 60 + second) * 1000 + thousandths
        return UTCTime(date: date, timeOfDay: timeOfDay).milliseconds
    }
}
