import WaypostCore

/// The `Retry-After` field of a reply (RFC 9110, 10.2.3).
package enum RetryAfter {
    /// How long the server asks to wait, longer than 0; nil when it does not ask, or not reliably.
    ///
    /// A date is compared with the reply's own `Date`, never with a clock of the host, so it says nothing without one.
    /// Of repeated fields the first valid one counts.
    ///
    /// - Parameter headers: names in lower case.
    package static func parse(_ headers: [UplinkRequest.Header]) -> Duration? {
        let date = headers.first { $0.name == "date" }.flatMap { HTTPDate.parse($0.value, near: nil) }
        for header in headers where header.name == "retry-after" {
            guard let seconds = seconds(Array(header.value.utf8), date: date, text: header.value) else { continue }
            return seconds > 0 ? .seconds(seconds) : nil
        }
        return nil
    }

    private static func seconds(_ value: [UInt8], date: Int64?, text: String) -> Int64? {
        if value.first.map(isDigit) == true {
            // More than ten digits is three centuries: garbage rather than a request.
            guard value.count <= 10, value.allSatisfy(isDigit) else { return nil }
            return value.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        guard let date, let until = HTTPDate.parse(text, near: date) else { return nil }
        return until - date
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

/// The three date forms of HTTP (RFC 9110, 5.6.7).
enum HTTPDate {
    /// Unix seconds; nil when it is no such date.
    ///
    /// - Parameter near: resolves the century of a two-digit year to within 50 years of this instant; nil: 1970…2069.
    static func parse(_ text: String, near: Int64?) -> Int64? {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        switch words.count {
        case 6 where words[0].last == "," && words[5] == "GMT":
            return seconds(day: words[1], month: words[2], year: fullYear(words[3]), clock: words[4])
        case 4 where words[0].last == "," && words[3] == "GMT":
            let parts = words[1].split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 3 else { return nil }
            return seconds(
                day: parts[0], month: parts[1], year: year(ofTwoDigits: parts[2], near: near), clock: words[2])
        case 5:
            return seconds(day: words[2], month: words[1], year: fullYear(words[4]), clock: words[3])
        default:
            return nil
        }
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func seconds(day: Substring, month: Substring, year: Int?, clock: Substring) -> Int64? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }),
            let hour = number(parts[0]), let minute = number(parts[1]), let second = number(parts[2]),
            hour < 24, minute < 60, second <= 60,
            let month = months.firstIndex(where: { $0 == month }), let day = number(day), let year,
            let date = CivilDate(year: year, month: month + 1, day: day)
        else { return nil }
        return Int64(date.daysSince1970) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    private static func fullYear(_ text: Substring) -> Int? {
        text.utf8.count == 4 ? number(text) : nil
    }

    private static func year(ofTwoDigits text: Substring, near: Int64?) -> Int? {
        guard text.utf8.count == 2, let short = number(text) else { return nil }
        guard let near, near >= 0, near < 253_402_300_800 else { return short < 70 ? 2000 + short : 1900 + short }
        let thisYear = CivilDate(daysSince1970: Int(near / 86_400)).year
        let year = thisYear - thisYear % 100 + short
        if year > thisYear + 50 { return year - 100 }
        return year < thisYear - 49 ? year + 100 : year
    }

    /// At most four digits, nothing else.
    private static func number(_ text: Substring) -> Int? {
        guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }
}
