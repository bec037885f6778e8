import WaypostCore
import WaypostTracking

/// Numbers and settings for people.
enum ReportWords {
    /// A whole number, with spaces that do not break between thousands.
    static func amount(_ count: Int) -> String {
        let digits = String(count)
        var words = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { words += "\u{202F}" }
            words.append(digit)
        }
        return words
    }

    static func bytes(_ count: Int) -> String {
        if count >= 1_000_000 { return "\(tenths(Double(count) / 1e6)) MB" }
        if count >= 10_000 { return "\((count + 500) / 1000) kB" }
        return count >= 1000 ? "\(tenths(Double(count) / 1000)) kB" : "\(count) B"
    }

    /// With one decimal.
    static func tenths(_ value: Double) -> String {
        let tenths = InWords.whole(value * 10)
        return "\(tenths / 10).\(tenths % 10)"
    }

    static func percent(_ part: Int, of whole: Int) -> String {
        "\(whole > 0 ? (200 * part + whole) / (2 * whole) : 0) %"
    }

    /// When a rule keeps a fix.
    static func sampling(_ sampling: LocationSampler.Settings, _ resolution: Resolution) -> String {
        let interval = InWords.interval(milliseconds: resolution.intervalMs)
        let displacement = InWords.distance(resolution.displacement)
        var words =
            switch sampling.rule {
            case .either: "after \(interval) or \(displacement)"
            case .both: "after \(interval) and \(displacement)"
            case .interval: "after \(interval)"
            case .displacement: "after \(displacement)"
            case .trackError: "no fix further than \(InWords.distance(sampling.bound)) from the track"
            case .significant: "after 5 min, or clearly elsewhere"
            }
        if let angle = sampling.angle { words += ", and turns of \(Int(angle))°" }
        return words
    }
}
