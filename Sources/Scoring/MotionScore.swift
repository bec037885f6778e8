/// How well motion was decided, on one drive or summed over many.
///
/// Definitions: a *false trip* is announced while parked with no departure within a minute. *Phantom* metres lie between
/// consecutive stored locations inside one parked interval. The *start latency* is the true way and time from the departure
/// to the announcement. The *departed error* is the true way covered before the departure as dated. The *stop delay* is what
/// the announcement of a stop lacks of standstill plus stop timeout. A *false stop* is announced during a trip, except an
/// honest `gap`. What nobody could see counts from the first fix after it.
public struct MotionScore: Hashable, Sendable {
    /// One thing that went wrong, with all that is needed to see it again.
    public struct Violation: Hashable, Sendable {
        /// Milliseconds since the start of the drive.
        public var at: Int
        public var what: String
    }

    public var parkedSeconds = 0.0
    public var falseTrips = 0
    /// Metres after the stop was announced.
    public var phantomParked = 0.0
    /// Metres between standstill and the announcement.
    public var phantomStopping = 0.0

    public var trips = 0
    /// Trips of 300 m and more of which nothing was announced.
    public var missed = 0
    /// Trips announced as the continuation of the one before.
    public var merged = 0
    /// Metres.
    public var startMetres: [Double] = []
    /// Seconds, in the order of `startMetres`.
    public var startSeconds: [Double] = []
    /// Metres.
    public var departedErrors: [Double] = []
    /// Seconds by which departures were dated too early.
    public var departedEarly: [Double] = []

    /// Seconds, negative = early.
    public var stopDelays: [Double] = []
    /// Seconds after the instant at which a standstill without sky could be known: the first fix after it, or the time
    /// without a fix that ends a trip.
    public var blindStopDelays: [Double] = []
    public var unseenStops = 0
    public var falseStops = 0
    public var tripSeconds = 0.0

    public var trueStops = 0
    public var announcedStops = 0
    public var matchedStops = 0

    /// Metres of the odometer and of the truth, where there were fixes.
    public var odometer = 0.0
    public var metres = 0.0

    /// Of the fixes with which the asset truly moved, and of those among them that were off by more than twice their accuracy.
    public var line = LineScore()
    public var reflections = LineScore()
    /// Locations that were kept.
    public var kept = 0

    public var violations: [Violation] = []

    public init() {}

    public static func += (sum: inout MotionScore, more: MotionScore) {
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

    public var parkedDays: Double { parkedSeconds / 86_400 }

    /// Harmonic mean of the shares of true stops that were announced and of announced stops that were true.
    public var stopF1: Double {
        let all = Double(trueStops + announcedStops)
        return all > 0 ? 2 * Double(matchedStops) / all : 1
    }

    /// Share of the true metres by which the odometer is wrong; nil without a metre.
    public var odometerError: Double? { metres > 0 ? odometer / metres - 1 : nil }

    /// The value below which so large a share lies, by the nearest rank; nil of nothing.
    public static func quantile(_ share: Double, of values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let rank = Int((share * Double(values.count)).rounded(.up))
        return values.sorted()[max(0, min(values.count - 1, rank - 1))]
    }
}
