import WaypostCore

/// Admission: decides which fixes are believed. A rejected fix is counted, never silently lost.
public struct FixFilter: Sendable {
    public struct Settings: Hashable, Sendable {
        /// Believe fixes that the receiver calls simulated or entered by hand. The default is false: a tracker that
        /// follows a simulator is nearly always an accident.
        public var allowSimulated = false
        /// Metres; a fix that is less accurate is rejected. The default is 100. A fix without accuracy passes. Below
        /// 15 or so a receiver in a street canyon falls silent; above 1000 cell-tower quality enters the track.
        public var accuracyMax = 100.0
        /// Metres per second between two fixes beyond both accuracies. The default is 70 (252 km/h). Rejected fixes that
        /// agree among themselves are believed once a way leads on from them, or after three minutes, so that a ferry or a
        /// cold start cannot block forever.
        public var speedMax = 70.0

        public init() {}
    }

    /// Why a fix was not believed, in the order of the checks.
    public enum Rejection: String, Sendable, Codable, CaseIterable {
        /// No solution, or exactly 0°/0°, which receivers send when they lose the sky.
        case position
        case simulated
        /// The receiver has sent no date yet, or one that no calendar has.
        case dateless
        /// Same time and place as the last one.
        case duplicate
        /// Not later than the last one.
        case age
        case accuracy
        case impliedSpeed = "implied-speed"
    }

    public enum Verdict: Hashable, Sendable {
        case admitted
        /// Admitted, and earlier evidence is worth nothing: far fixes that agree led on, or went on for long.
        case admittedAfterJump
        /// Admitted, and the receiver's clock went back: the tenth of ten older times that rise.
        case admittedAfterClockStep
        case rejected(Rejection)
    }

    /// Fixes in a row with an older but rising time after which the time is believed.
    static let risingMax = 10
    /// Far fixes in a row, consistent among themselves, before which the place is never believed; and as many as are needed
    /// where no more had been believed before.
    static let farMin = 3
    /// Time that they go on, after which it is believed.
    static let farFor = Duration.seconds(180)
    /// Metres from a standstill that nothing drives within so many seconds.
    private static let standingReach = (metres: 1000.0, seconds: 60.0)
    /// m/s below which the asset stood.
    private static let standingSpeed = 3.0
    /// Metres assumed where the receiver reports no accuracy.
    static let unknownAccuracy = 10.0

    public var settings: Settings

    private struct Sighting {
        var time: UTCTime
        var at: EventTime
        var coordinate: Coordinate
        var accuracy: Double
    }

    private var last: Sighting?
    /// The last believed fix stood.
    private var stood = false
    /// Believed fixes in a row, as far as it matters.
    private var believed = 0
    private var rising: (count: Int, time: UTCTime) = (0, UTCTime(milliseconds: 0))
    private var far: (count: Int, first: Sighting, last: Sighting, way: Advance)?

    public init(settings: Settings) { self.settings = settings }

    public mutating func admit(_ fix: Fix, at: EventTime) -> Verdict {
        guard fix.mode >= .twoD, fix.quality != .none,
            fix.coordinate.latitudeE7 != 0 || fix.coordinate.longitudeE7 != 0,
            fix.coordinate.isOnEarth
        else { return .rejected(.position) }
        if !settings.allowSimulated, fix.quality == .simulated || fix.quality == .manual {
            return .rejected(.simulated)
        }
        guard let time = fix.time, time.isPlausible else { return .rejected(.dateless) }
        let seen = Sighting(
            time: time, at: at, coordinate: fix.coordinate,
            accuracy: fix.horizontalAccuracy ?? Self.unknownAccuracy)
        guard let last else { return isAccurate(fix) ? believe(seen, .admitted) : .rejected(.accuracy) }

        var verdict = Verdict.admitted
        if time <= last.time {
            if time == last.time, fix.coordinate == last.coordinate { return .rejected(.duplicate) }
            guard hasRisenLongEnough(time) else { return .rejected(.age) }
            verdict = .admittedAfterClockStep
        }
        guard isAccurate(fix) else { return .rejected(.accuracy) }
        guard !goesOnFar(seen, from: last), isPlausible(from: last, to: seen, standing: stood) else {
            return isThere(seen) ? believe(seen, .admittedAfterJump) : .rejected(.impliedSpeed)
        }
        noteSpeed(fix.speed, from: last, to: seen)
        return believe(seen, verdict)
    }

    private mutating func noteSpeed(_ speed: Double?, from a: Sighting, to b: Sighting) {
        let seconds = Elapsed.seconds(from: (a.time, a.at), to: (b.time, b.at))
        guard seconds > 0 else { return }
        guard speed ?? 0 < Self.standingSpeed else { return stood = false }
        let accuracy = a.accuracy + b.accuracy
        // Most fixes of an asset that stands are settled without trigonometry, like all of one that drives.
        stood =
            a.coordinate.distanceMax(to: b.coordinate) - accuracy < Self.standingSpeed * seconds
            || (a.coordinate.distance(to: b.coordinate) - a.accuracy - b.accuracy) / seconds < Self.standingSpeed
    }

    private mutating func believe(_ seen: Sighting, _ verdict: Verdict) -> Verdict {
        believed = verdict == .admittedAfterJump ? far?.count ?? 1 : min(believed + 1, Self.farMin)
        if verdict == .admittedAfterJump { stood = false }
        last = seen
        rising.count = 0
        far = nil
        return verdict
    }

    private func isAccurate(_ fix: Fix) -> Bool {
        guard let accuracy = fix.horizontalAccuracy else { return true }
        return accuracy > 0 && accuracy <= settings.accuracyMax
    }

    private mutating func hasRisenLongEnough(_ time: UTCTime) -> Bool {
        rising.count = rising.count > 0 && time > rising.time ? rising.count + 1 : 1
        rising.time = time
        return rising.count >= Self.risingMax
    }

    /// It is where others were that could not be reached: that time has passed since does not bring the asset there.
    private func goesOnFar(_ seen: Sighting, from last: Sighting) -> Bool {
        guard let far, isPlausible(from: far.last, to: seen) else { return false }
        let seconds = Elapsed.seconds(from: (last.time, last.at), to: (far.first.time, far.first.at))
        return !isPlausible(from: last, to: seen, in: seconds, standing: stood)
    }

    private func isPlausible(
        from a: Sighting, to b: Sighting, in seconds: Double? = nil, standing: Bool = false
    ) -> Bool {
        let seconds = seconds ?? Elapsed.seconds(from: (a.time, a.at), to: (b.time, b.at))
        var metres = settings.speedMax * seconds
        if standing, seconds <= Self.standingReach.seconds { metres = min(metres, Self.standingReach.metres) }
        let allowed = metres + a.accuracy + b.accuracy
        // Most fixes are settled without trigonometry.
        if a.coordinate.distanceMax(to: b.coordinate) <= allowed { return true }
        return a.coordinate.distance(to: b.coordinate) <= allowed
    }

    /// Whether far fixes have shown that the asset is where they are: a way leads on from them, they have gone on for long, or
    /// they are more than those that were believed before.
    private mutating func isThere(_ seen: Sighting) -> Bool {
        guard var far, isPlausible(from: far.last, to: seen) else {
            far = (1, seen, seen, Advance(from: seen.coordinate))
            return false
        }
        let accuracy = far.last.accuracy + seen.accuracy
        far.count += 1
        far.last = seen
        far.way.add(seen.coordinate)
        self.far = far
        guard far.count >= Self.farMin else { return false }
        return believed < Self.farMin || seen.at.duration(since: far.first.at) >= Self.farFor
            || far.way.isWay(accuracy: accuracy)
    }
}

extension FixFilter {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(believed >= 0, "\(believed) fixes were believed")
        invariant(rising.count >= 0, "\(rising.count) fixes with rising times")
        invariant(far.map { $0.count >= 1 && $0.first.at <= $0.last.at } ?? true, "fixes far away that are in no order")
    }
}
