import WaypostCore
import WaypostTracking

/// What the rule `track-error` makes of one log, under one bound and one delay.
package struct TrackErrorScore: Sendable {
    /// Metres, as set.
    package let bound: Double
    /// Seconds, as set.
    package let maxDelay: Int
    /// Metres: the largest verified distance of a fix from the track. The promise is `bound`; positions are rounded to
    /// 1e-7 degree.
    package let worst: Double
    /// Of the fix that lies there.
    package let worstTime: UTCTime?
    /// Fixes that the sampler took.
    package let fixes: Int
    /// Fixes that no pair of records has between them.
    package let uncovered: Int
    /// Records that the rule is answerable for: all after the first one of each stretch between changes of state.
    package let kept: Int
    /// The least number of records that keeps the same promise.
    package let least: Int
    /// Records of the plain triggers (100 m, 10°, 300 s) on the same fixes.
    package let baseline: Int
    /// Metres on the odometer.
    package let metres: Double
    /// Seconds from a fix to the decision to keep it, at most.
    package let longestWait: Double

    /// Metres above the bound that rounding may cost.
    package static let tolerance = 0.05

    package var keepsItsPromise: Bool { worst <= bound + Self.tolerance && uncovered == 0 }

    /// - Parameter bytes: NMEA 0183.
    package init(_ bytes: [UInt8], bound: Double, maxDelay: Int, countsPoints: Bool = true) {
        var settings = Tracker.Settings(trackables: [Trackable(id: "asset")])
        settings.sampling.rule = .trackError
        settings.sampling.bound = bound
        settings.sampling.maxDelay = .seconds(maxDelay)
        var courses: [UTCTime: Double] = [:]
        let tracked = TrackedLog(bytes, settings: settings, tracesSampling: true) { epoch, _ in
            if countsPoints, case .fix(let fix) = epoch, let time = fix.time { courses[time] = fix.course }
        }
        let taken = tracked.samplingTrace.entries
        let verifier = TrackErrorVerifier(
            records: tracked.locations,
            taken: taken.map {
                .init(
                    time: $0.time, coordinate: $0.coordinate, course: $0.isHeld ? nil : courses[$0.time],
                    isHeld: $0.isHeld)
            })
        self.bound = bound
        self.maxDelay = maxDelay
        worst = verifier.worst
        worstTime = verifier.worstTime
        fixes = taken.count
        uncovered = verifier.uncovered
        kept = verifier.spans.reduce(0) { $0 + $1.kept }
        let spans = countsPoints ? verifier.spans : []
        least = spans.reduce(0) { $0 + $1.least(bound: bound, delay: Int64(maxDelay) * 1000) }
        baseline = spans.reduce(0) { $0 + $1.baseline() }
        metres = tracked.tracker.state.odometer
        var arrivals: [UTCTime: EventTime] = [:]
        for fix in taken { arrivals[fix.time] = fix.at }
        longestWait =
            tracked.locations.filter { $0.event == .none }
            .compactMap { location in arrivals[location.time].map { location.at.seconds(since: $0) } }.max() ?? 0
    }
}
