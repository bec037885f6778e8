/// How well motion was decided, on one drive or summed over many.
///
/// Definitions: a *false trip* is announced while parked with no departure within a minute. *Phantom* metres lie between
/// consecutive stored locations inside one parked interval. The *start latency* is the true way and time from the departure
/// to the announcement. The *departed error* is the true way covered before the departure as dated. The *stop delay* is what
/// the announcement of a stop lacks of standstill plus stop timeout. A *false stop* is announced during a trip, except an
/// honest `gap`. What nobody could see counts from the first fix after it.
package struct MotionScore: Hashable, Sendable {
    /// One thing that went wrong, with all that is needed to see it again.
    package struct Violation: Hashable, Sendable {
        /// Milliseconds since the start of the drive.
        package var at: Int
        package var what: String
    }

    package var parkedSeconds = 0.0
    package var falseTrips = 0
    /// Metres after the stop was announced.
    package var phantomParked = 0.0
    /// Metres between standstill and the announcement.
    package var phantomStopping = 0.0

    package var trips = 0
    /// Trips of 300 m and more of which nothing was announced.
    package var missed = 0
    /// Trips announced as the continuation of the one before.
    package var merged = 0
    /// Metres.
    package var startMetres: [Double] = []
    /// Seconds, in the order of `startMetres`.
    package var startSeconds: [Double] = []
    /// Metres.
    package var departedErrors: [Double] = []
    /// Seconds by which departures were dated too early.
    package var departedEarly: [Double] = []

    /// Seconds, negative = early.
    package var stopDelays: [Double] = []
    /// Seconds after the instant at which a standstill without sky could be known: the first fix after it, or the time
    /// without a fix that ends a trip.
    package var blindStopDelays: [Double] = []
    package var unseenStops = 0
    package var falseStops = 0
    package var tripSeconds = 0.0

    package var trueStops = 0
    package var announcedStops = 0
    package var matchedStops = 0

    /// Metres of the odometer and of the truth, where there were fixes.
    package var odometer = 0.0
    package var metres = 0.0

    /// Of the fixes with which the asset truly moved, and of those among them that were off by more than twice their accuracy.
    package var line = LineScore()
    package var reflections = LineScore()
    /// Locations that were kept.
    package var kept = 0

    package var violations: [Violation] = []

    package init() {}

    package static func += (sum: inout MotionScore, more: MotionScore) {
        sum.parkedSeconds += more.parkedSeconds
        sum.falseTrips += more.falseTrips
        sum.phantomParked += more.phantomParked
        sum.phantomStopping += more.phantomStopping
        sum.trips += more.trips
        sum.missed += more.missed
        sum.merged += more.merged
        sum.startMetres += more.startMetres
        sum.startSeconds += more.startSeconds
        sum.departedErrors += more.departedErrors
        sum.departedEarly += more.departedEarly
        sum.stopDelays += more.stopDelays
        sum.blindStopDelays += more.blindStopDelays
        sum.unseenStops += more.unseenStops
        sum.falseStops += more.falseStops
        sum.tripSeconds += more.tripSeconds
        sum.trueStops += more.trueStops
        sum.announcedStops += more.announcedStops
        sum.matchedStops += more.matchedStops
        sum.odometer += more.odometer
        sum.metres += more.metres
        sum.line += more.line
        sum.reflections += more.reflections
        sum.kept += more.kept
    }

    package var parkedDays: Double { parkedSeconds / 86_400 }

    /// Harmonic mean of the shares of true stops that were announced and of announced stops that were true.
    package var stopF1: Double {
        let all = Double(trueStops + announcedStops)
        return all > 0 ? 2 * Double(matchedStops) / all : 1
    }

    /// Share of the true metres by which the odometer is wrong; nil without a metre.
    package var odometerError: Double? { metres > 0 ? odometer / metres - 1 : nil }

    /// The value below which so large a share lies, by the nearest rank; nil of nothing.
    package static func quantile(_ share: Double, of values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let rank = Int((share * Double(values.count)).rounded(.up))
        return values.sorted()[max(0, min(values.count - 1, rank - 1))]
    }
}
