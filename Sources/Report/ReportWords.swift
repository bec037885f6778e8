import Positioning
import Tracking

/// Numbers and settings for people.
enum ReportWords {
    /// When a rule keeps a fix.
    static func sampling(_ sampling: LocationSampler.Settings, _ resolution: Resolution) -> String {
        let interval = InWords.interval(milliseconds: resolution.intervalMs)
        let displacement = InWords.distance(resolution.displacement)
        var words =
            switch sampling.rule {
            case .either: "after \(interval) or \(displacement)"
            case .both: "after \(interval) and \(displacement)"
            case .interval: "after \(interval)"
            case .trackError: "no fix further than \(InWords.distance(sampling.bound)) from the track"
            case .significant: "after 5 min, or clearly elsewhere"
            }
        if let angle = sampling.angle { words += ", and turns of \(Int(angle))°" }
        return words
    }
}
