import Configuration
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// Everything that the page shows.
struct ReportData {
    /// What other settings make of the log.
    struct Outcome {
        var whatIf: WhatIf
        var kept: [KeptPoint]
        /// More than `kept` where a clock was set back: what was dated wrongly is no point of the page.
        var published: Int
        var error: LineError?
        /// Of request bodies: profile `waypost`, and `waypost-compact`.
        var bytes: Int
        var compact: Int
    }

    struct StopTimeout {
        var value: Duration
        var isInForce: Bool
        var trips: Int
        var stops: Int
        var moving: Int64
        var kept: Int
    }

    var name: String
    var options: ReportOptions
    /// What may be shown.
    var table: EpochTable
    /// When the log begins and ends, whatever of it is shown; Unix milliseconds.
    var first: Int64
    var last: Int64
    /// The longest time without an epoch, in milliseconds, and when it began; nil = there is only one.
    var silence: (from: Int64, length: Int64)?
    var journey: Journey
    var outcomes: [Outcome]
    /// Names of configurations that were to be compared, and do not differ.
    var same: [String]
    var stopTimeouts: [StopTimeout]
    /// Locations that were kept and published, by the word for why.
    var kinds: [String: Int]
    /// Else there are lines of gpsd or points of GPX among the sentences, which have no checksum.
    var isNMEA: Bool
    var decoded: NMEACounters
    var tracked: TrackerCounters
    var odometer: Double
    var geofences: [Geofence]
    var settings: [EffectiveConfiguration.Entry]

    /// What whoever passes the page on should know.
    var notice: String {
        let held =
            options.hideEnds.map {
                "Positions within \(InWords.distance($0)) of the ends of trips are left out of this page. It holds the others"
            } ?? "This page holds every position of the log"
        let load = options.tiles == nil ? " It loads nothing from anywhere." : ""
        return "\(held): think before you pass it on.\(load)"
    }

    var kept: [KeptPoint] { outcomes.first?.kept ?? [] }

    var published: Int { outcomes.first?.published ?? 0 }

    /// `kinds`, the most frequent first.
    var kindsByCount: [(String, Int)] {
        kinds.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }.map { ($0.key, $0.value) }
    }

    /// Kept while nothing moved: parked, or in a halt within a trip.
    var keptStanding: Int { kept.count { journey.isStanding(at: $0.time) } }

    /// Why there is neither a trip nor a stop; nil when there is one.
    var nothing: String? {
        guard journey.trips.isEmpty, journey.stops.isEmpty else { return nil }
        return tracked.admitted > 0 ? ReplayStory.noPlace : "no fix was believed"
    }
}
