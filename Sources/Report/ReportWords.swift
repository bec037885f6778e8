import Positioning
import Tracking

/// Numbers and settings for people.
enum ReportWords {
    /// `850 m`, `12.3 km`
    static func distance(_ metres: Double) -> String {
        guard metres.isFinite, metres >= 1000 else { return "\(Int(max(0, metres.isFinite ? metres : 0).rounded())) m" }
        let tenths = Int((min(metres, 1e9) / 100).rounded())
        return "\(tenths / 10).\(tenths % 10) km"
    }

    /// `1 h 02 min`, `2 min 10 s`, `5 min`, `8 s`
    static func span(_ milliseconds: Int64) -> String {
        let seconds = max(0, milliseconds) / 1000
        func padded(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
        if hours > 0 { return minutes > 0 ? "\(hours) h \(padded(minutes)) min" : "\(hours) h" }
        if minutes > 0 { return rest > 0 ? "\(minutes) min \(padded(rest)) s" : "\(minutes) min" }
        return "\(rest) s"
    }

    /// `52 km/h`
    static func speed(_ metresPerSecond: Double) -> String {
        "\(Int(min(max(0, metresPerSecond), 1e6) * 3.6 + 0.5)) km/h"
    }

    /// `2026-03-02 07:12:04`, UTC.
    static func stamp(_ milliseconds: Int64) -> String {
        let iso = UTCTime(milliseconds: milliseconds).iso8601
        return iso.prefix(10) + " " + iso.dropFirst(11).prefix(8)
    }

    /// When a rule keeps a fix.
    static func sampling(_ sampling: LocationSampler.Settings, _ resolution: Resolution) -> String {
        let interval = span(resolution.intervalMs)
        let displacement = distance(resolution.displacement)
        var words =
            switch sampling.rule {
            case .either: "after \(interval) or \(displacement)"
            case .both: "after \(interval) and \(displacement)"
            case .interval: "after \(interval)"
            case .trackError: "no fix further than \(distance(sampling.bound)) from the track"
            case .significant: "after 5 min, or clearly elsewhere"
            }
        if let angle = sampling.angle { words += ", and turns of \(Int(angle))°" }
        return words
    }

    static func gap(_ reason: String) -> String {
        switch reason {
        case RecordReason.noSky.rawValue: "The receiver had no position."
        case RecordReason.receiverLost.rawValue: "The receiver was silent."
        case RecordReason.power.rawValue: "The receiver was silent, and external power was off."
        default: "No fixes (\(reason))."
        }
    }
}
