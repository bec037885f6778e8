/// Quantities in words for people. Each accepts any number: it may come from a receiver, a file or another process.
package enum InWords {
    /// `850 m`, `12.3 km`; in other units only from a kilometre on.
    package static func distance(_ metres: Double, in units: DisplayUnits = .metric) -> String {
        guard metres >= 1000 else { return "\(whole(metres)) m" }
        let tenths = whole(metres * 10 / units.metres)
        return "\(tenths / 10).\(tenths % 10) \(units.way)"
    }

    /// `12 m`, and below a metre `0.03 m`: an accuracy is never 0.
    package static func accuracy(_ metres: Double) -> String {
        guard metres < 1 else { return "\(whole(metres)) m" }
        let hundredths = max(1, whole(metres * 100))
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) m"
    }

    /// `52 km/h`
    package static func speed(_ metresPerSecond: Double, in units: DisplayUnits = .metric) -> String {
        "\(whole(units.speed(max(0, metresPerSecond)))) \(units.rawValue)"
    }

    /// `1 h 02 min`, `2 min 10 s`, `5 min`, `8 s`; parts of a second do not count.
    package static func span(seconds: Double) -> String { span(milliseconds: whole(seconds, 1e11) * 1000) }

    /// The same.
    package static func span(milliseconds: Int64) -> String {
        let seconds = max(0, milliseconds) / 1000
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
        func padded(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        // Nobody counts weeks in hours.
        if hours >= 48 { return hours % 24 > 0 ? "\(hours / 24) d \(hours % 24) h" : "\(hours / 24) d" }
        if hours > 0 { return minutes > 0 ? "\(hours) h \(padded(minutes)) min" : "\(hours) h" }
        if minutes > 0 { return rest > 0 ? "\(minutes) min \(padded(rest)) s" : "\(minutes) min" }
        return "\(rest) s"
    }

    /// `90 s`, `3 min`, `24 h`, `4 days`: rounded, where the order of magnitude is what counts.
    package static func about(seconds: Double) -> String {
        switch seconds {
        case ..<120: "\(whole(max(0, seconds))) s"
        case ..<7200: "\(whole(seconds / 60)) min"
        case ..<172_800: "\(whole(seconds / 3600)) h"
        default: "\(whole(seconds / 86_400)) days"
        }
    }

    /// `5 min`, `400 ms`: a setting, of which nothing is left out.
    package static func interval(milliseconds: Int64) -> String {
        milliseconds % 1000 == 0 ? span(milliseconds: milliseconds) : "\(milliseconds) ms"
    }

    /// `3 min 27 s`, and below ten seconds `1.5 s`: a time that was measured.
    package static func length(milliseconds: Int64) -> String {
        guard milliseconds < 10_000, milliseconds % 1000 != 0 else { return span(milliseconds: milliseconds + 500) }
        if milliseconds < 1000 { return "\(max(0, milliseconds)) ms" }
        let tenths = (milliseconds + 50) / 100
        return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
    }

    /// `2026-03-02 07:12:04`, UTC.
    package static func stamp(_ time: UTCTime) -> String {
        let iso = time.iso8601
        return iso.prefix(10) + " " + iso.dropFirst(11).prefix(8)
    }

    /// `1 row`, `2 rows`
    /// - Parameter plural: nil = with an s.
    package static func count(_ count: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(count) \(count == 1 ? noun : plural ?? noun + "s")"
    }

    /// Rounded; at the bound for what lies beyond it, 0 for what is no number.
    package static func whole(_ value: Double, _ bound: Double = 1e12) -> Int64 {
        value.isNaN ? 0 : Int64(min(max(value, -bound), bound).rounded())
    }
}
