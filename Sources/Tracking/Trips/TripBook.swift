import WaypostCore

/// The trip in progress, its halts, and what the odometer shows.
struct TripBook: Sendable {
    /// Moving this long without external power is towing, not a trip of its own.
    private static let towedAfter = Duration.seconds(120)
    /// Milliseconds; a smaller step of the receiver's clock may be a reader that was held up, and corrects itself.
    private static let clockStepMin = 10_000.0
    /// Milliseconds: the longest `no_fix_timeout`, after which no trip goes on.
    private static let silenceMax: Int64 = 7 * 86_400_000

    private var odometer: Odometer
    private var trip: StoredState.Trip?
    /// Departure while moving, standstill while parked.
    private(set) var since: UTCTime?
    /// When the trip began; nil while parked.
    var departure: UTCTime? { trip?.start }
    /// The beginning of the halt within the trip; nil while rolling or parked.
    private(set) var halt: MotionDetector.Moment?
    /// Event time of the departure, to notice towing; after a restart unknown until the first fix, and then at most `towedAfter`
    /// ago. The length of a trip follows from its dates.
    private var departedAt: EventTime?
    /// Whether the way since the halt began is known.
    private enum HaltWay {
        case seen
        /// The receiver was silent for so long that it is not.
        case unseen
        /// The position jumped: there was none.
        case jumped
    }
    private var haltWay = HaltWay.seen
    /// Seconds of the halt that ended last, as counted in the trip.
    private var lastIdle = 0.0

    init(restored: StoredState?) {
        odometer = Odometer(metres: restored?.odometer ?? 0, gapMetres: restored?.gapMetres ?? 0)
        since = restored?.since
        trip = restored?.trip
    }

    var metres: Double { odometer.metres }
    var gapMetres: Double { odometer.gapMetres }

    // MARK: Fixes

    /// - Parameters:
    ///   - afterGap: the receiver was silent for so long that the way to here is unknown.
    ///   - clockStep: milliseconds; nil = the receiver's clock runs evenly.
    mutating func fixReceived(
        _ time: UTCTime, at: EventTime, afterGap: Bool, clockStep: Double?, isMoving: Bool
    ) {
        if afterGap, haltWay == .seen { haltWay = .unseen }
        // A trip keeps its length.
        if let clockStep, abs(clockStep) > Self.clockStepMin, abs(clockStep) < 1e15, let start = trip?.start {
            trip?.start = start + .milliseconds(Int64(clockStep))
        }
        // Event times mean nothing after a restart: when the trip began follows from its date.
        guard departedAt == nil, isMoving, let trip else { return }
        let ago = min(max(0, time.milliseconds(since: trip.start)), Self.towedAfter.milliseconds)
        departedAt = at + .milliseconds(-ago)
    }

    /// The first fix after a restart: a trip that goes on did so all the way from the last fix of the run before.
    mutating func wentOn(from last: StoredState.LastFix, to time: UTCTime, at: EventTime) {
        let ago = time.milliseconds(since: last.time)
        guard trip != nil, (0...Self.silenceMax).contains(ago) else { return }
        odometer.start(at: last, at: at + .milliseconds(-ago))
    }

    mutating func advance(to fix: Fix, time: UTCTime, at: EventTime, speedMax: Double, noise: Double, gap: Double) {
        odometer.advance(to: fix, time: time, at: at, speedMax: speedMax, noise: noise, gap: gap)
    }

    mutating func observe(speed: Double?, max limit: Double) {
        if let speed, speed > trip?.maxSpeed ?? 0, speed <= limit { trip?.maxSpeed = speed }
    }

    /// Nothing is known about the way to the next fix.
    mutating func interrupted() {
        odometer.stop()
        haltWay = .jumped
    }

    // MARK: Changes of motion

    mutating func departed(_ time: UTCTime, at: EventTime, from place: Coordinate, withoutPower: Bool) {
        since = time
        halt = nil
        departedAt = at
        trip = StoredState.Trip(
            start: time, startCoordinate: place, startOdometer: odometer.metres, idle: 0, maxSpeed: nil,
            withoutPower: withoutPower)
    }

    mutating func start(at fix: Fix, time: UTCTime, at: EventTime) { odometer.start(at: fix, time: time, at: at) }

    /// - Parameter noise: metres counted just before that were none.
    mutating func halted(since moment: MotionDetector.Moment, noise: Double) {
        halt = moment
        haltWay = .seen
        odometer.settle()
        odometer.deduct(noise)
    }

    /// The halt counts from its last creep.
    mutating func crept(since moment: MotionDetector.Moment, metres: Double) {
        if let halt { trip?.idle += max(0, moment.at.seconds(since: halt.at)) }
        halt = moment
        if haltWay == .jumped { haltWay = .seen } else { odometer.add(metres) }
    }

    /// The last resumption was noise.
    mutating func movementWasNoise(since moment: MotionDetector.Moment) {
        halt = moment
        trip?.idle -= lastIdle
        lastIdle = 0
    }

    /// - Parameter from: the last fix that still stood; nil = none is known.
    mutating func resumed(from: FixRing.Entry?, place: Coordinate, since moment: MotionDetector.Moment) {
        halt = nil
        guard let from else { return }
        lastIdle = max(0, from.at.seconds(since: moment.at))
        trip?.idle += lastIdle
        let moved = place.distance(to: from.coordinate)
        if moved > from.horizontalAccuracy ?? FixFilter.unknownAccuracy {
            switch haltWay {
            case .seen: odometer.add(moved)
            case .unseen: odometer.addGap(moved)
            case .jumped: break
            }
        }
        odometer.start(at: from.fix, time: from.time, at: from.at)
    }

    /// - Returns: the trip that ended; nil = there was none.
    mutating func stopped(standstill: UTCTime?, decided: UTCTime) -> TripSummary? {
        let ended = trip.map { trip in
            TripSummary(
                start: trip.start, startCoordinate: trip.startCoordinate, end: standstill ?? decided,
                distance: max(0, odometer.metres - trip.startOdometer), idle: trip.idle, maxSpeed: trip.maxSpeed)
        }
        trip = nil
        since = standstill
        halt = nil
        departedAt = nil
        odometer.stop()
        return ended
    }

    // MARK: Towing

    /// When a trip that began without external power counts as towing; nil = it does not.
    var towDue: EventTime? {
        guard trip?.withoutPower == true, let departedAt else { return nil }
        return departedAt + Self.towedAfter
    }

    /// External power came, or the towing was recorded.
    mutating func towingSettled() { trip?.withoutPower = false }

    // MARK: Odometer

    /// Another reading; the trip so far keeps its length.
    mutating func odometerSet(_ metres: Double) {
        let before = odometer.metres
        odometer.set(metres)
        trip?.startOdometer += odometer.metres - before
    }

    func store(in state: inout StoredState) {
        state.since = since
        state.stopping = halt?.time
        state.odometer = odometer.metres
        state.gapMetres = odometer.gapMetres
        state.trip = trip
    }
}

extension TripBook {
    /// What holds between two calls.
    func checkInvariants() {
        odometer.checkInvariants()
        invariant(lastIdle.isFinite && lastIdle >= 0, "\(lastIdle) s of a trip were halts")
        invariant(trip != nil || departedAt == nil, "a departure without a trip")
    }
}
