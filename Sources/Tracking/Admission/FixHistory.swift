import WaypostCore

/// The believed fixes: the newest one, the ring of those before it, and the rate, speed and silence that follow from them.
struct FixHistory: Sendable {
    /// What a new fix says about the time since the one before.
    struct Arrival {
        /// Seconds since the last believed fix, across a restart by the receiver's time; nil for the first one ever.
        let silence: Double?
        /// Milliseconds by which the receiver's clock moved against the event time; nil below 2 s, which is jitter.
        let clockStep: Double?
        /// With the first fix of this run: the last one of the run before.
        let restored: StoredState.LastFix?
    }

    private static let clockStepMin = 2000.0

    /// Of this run.
    private(set) var newest: Fix?
    private(set) var newestAt: EventTime?
    /// The last fix of the run before, until the first one of this run.
    private(set) var restored: StoredState.LastFix?
    private(set) var ring: FixRing
    /// Around the asset.
    private(set) var plane = LocalPlane(origin: Coordinate(latitudeE7: 0, longitudeE7: 0))
    private var measured = MeasuredInterval()
    private var averageSpeed = AverageSpeed()

    init(span: Duration, restored: StoredState.LastFix?) {
        ring = FixRing(span: span)
        self.restored = restored
    }

    mutating func reload(span: Duration) { ring.span = span.inSeconds }

    /// Measured seconds between two fixes.
    var interval: Double { measured.seconds }

    /// m/s, smoothed over half a minute; nil = unknown.
    func speed(at now: EventTime) -> Double? { averageSpeed.value(at: now) }

    /// See `Tracker.utc(at:)`.
    func utc(at: EventTime) -> UTCTime? {
        guard let newestAt, let time = newest?.time else { return nil }
        return time + at.duration(since: newestAt)
    }

    /// An instant is too recent for the receiver to have fallen silent since.
    func isFresh(_ instant: EventTime?, at now: EventTime) -> Bool {
        instant.map { now.seconds(since: $0) <= max(10, 3 * interval) } ?? false
    }

    /// - Parameter measuresInterval: false after epochs without a fix.
    mutating func append(_ fix: Fix, time: UTCTime, at: EventTime, measuresInterval: Bool) -> Arrival {
        let arrival = Arrival(
            silence: silence(before: time, at: at), clockStep: clockStep(to: time, at: at), restored: restored)
        if let newestAt, measuresInterval { measured.observe(at.seconds(since: newestAt)) }
        follow(fix.coordinate)
        ring.append(fix, time: time, at: at)
        newest = fix
        newestAt = at
        restored = nil
        averageSpeed.observe(fix.speed, at: at)
        return arrival
    }

    /// Nothing is known about the way to the newest fix.
    mutating func keepNewest() { ring.keepNewest() }
    mutating func clearRing() { ring.removeAll() }
    /// The speeds of the ring meant nothing.
    mutating func forgetSpeeds() { ring.forgetSpeeds() }

    private func silence(before time: UTCTime, at: EventTime) -> Double? {
        if let newestAt { return at.seconds(since: newestAt) }
        guard let restored else { return nil }
        let (elapsed, overflow) = time.milliseconds.subtractingReportingOverflow(restored.time.milliseconds)
        return overflow ? 0 : max(0, Double(elapsed) / 1000)
    }

    private func clockStep(to time: UTCTime, at: EventTime) -> Double? {
        guard let newestAt, let last = newest?.time else { return nil }
        let reported = Double(time.milliseconds) - Double(last.milliseconds)
        let step = reported - 1000 * at.seconds(since: newestAt)
        return abs(step) > Self.clockStepMin ? step : nil
    }

    /// The plane moves with the asset, so that its scale stays good to a part in a thousand.
    private mutating func follow(_ coordinate: Coordinate) {
        let north = abs(Int64(coordinate.latitudeE7) - Int64(plane.origin.latitudeE7))
        let east = abs(Int64(coordinate.longitudeE7) - Int64(plane.origin.longitudeE7))
        if north > 300_000 || east > 10_000_000 { plane = LocalPlane(origin: coordinate) }
    }

    func store(in state: inout StoredState) {
        state.lastFix =
            newest.flatMap { fix in
                fix.time.map {
                    StoredState.LastFix(
                        time: $0, coordinate: fix.coordinate, accuracy: fix.horizontalAccuracy,
                        altitudeMSL: fix.altitudeMSL.flatMap { $0.isFinite ? $0 : nil },
                        altitudeHAE: fix.altitudeHAE.flatMap { $0.isFinite ? $0 : nil })
                }
            } ?? restored
    }
}

extension FixHistory {
    /// What holds between two calls.
    func checkInvariants() {
        ring.checkInvariants()
        invariant((newest == nil) == (newestAt == nil), "a fix without the time of its receipt")
    }
}
