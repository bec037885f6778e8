import WaypostCore

/// The fixes since the last kept one, as far as they limit which fix may be kept next.
///
/// Between a kept fix A and the next one B the asset is assumed to move evenly with v = (B − A) / (t_B − t_A). It passes a fix P
/// between them within the bound exactly if |v − (P − A) / (t_P − t_A)| ≤ bound / (t_P − t_A): P is a disc in the plane of
/// velocities, and B may be kept if its velocity lies in all discs (the velocity form of CISED, arXiv 1801.05360, with the
/// discs themselves instead of polygons). Memory is constant and nothing is allocated for a fix.
struct TrackErrorSegment: Sendable {
    /// At most this many fixes; then one is kept.
    static let countMax = 256
    /// At least this many of the last fixes at one place can be withdrawn.
    private static let withdrawable = 64

    private struct Disc: Sendable {
        /// m/s.
        var velocity: PlanePoint
        /// m²/s².
        var radiusSquared: Double
        /// Milliseconds since the kept fix.
        var elapsed: Int64

        /// Metres from the kept fix.
        var offset: PlanePoint { velocity * (Double(elapsed) / 1000) }

        @inline(__always)
        func contains(_ other: PlanePoint) -> Bool {
            let (east, north) = (other.east - velocity.east, other.north - velocity.north)
            return east * east + north * north <= radiusSquared
        }
    }

    /// Metres.
    private let bound: Double
    private var start = UTCTime(milliseconds: 0)
    private var plane = LocalPlane(origin: Coordinate(latitudeE7: 0, longitudeE7: 0))
    private var discs: ContiguousArray<Disc> = []
    /// Discs at the end of the list that are of one place.
    private var run = 0
    /// Between this disc and the next one there were more of the same place; nil = nowhere.
    private var hole: Int?
    private var place = Coordinate(latitudeE7: 0, longitudeE7: 0)
    /// The delay counts from here: the last fix that still stood at the kept one.
    private var delayStart = UTCTime(milliseconds: 0)
    /// The fix that is kept next unless a later one may be; nil = none came since the last kept one.
    private(set) var newest: LocationSampler.Selected?
    /// Event time of the first fix that adds to the kept one.
    private(set) var newsAt: EventTime?

    init(bound: Double) {
        self.bound = max(0, bound)
        discs.reserveCapacity(Self.countMax)
    }

    mutating func begin(at kept: LocationSampler.Selected) {
        start = kept.time
        plane = LocalPlane(origin: kept.coordinate)
        discs.removeAll(keepingCapacity: true)
        run = 0
        hole = nil
        place = kept.coordinate
        delayStart = kept.time
        newest = nil
        newsAt = nil
    }

    var isFull: Bool { discs.count >= Self.countMax }

    /// How long the news since the kept fix would have waited by then.
    func delayMs(at time: UTCTime) -> Int64 {
        let (delay, overflow) = time.milliseconds.subtractingReportingOverflow(delayStart.milliseconds)
        return overflow ? .max : delay
    }

    func admits(time: UTCTime, coordinate: Coordinate) -> Bool {
        let point = plane.point(coordinate)
        let elapsed = elapsed(to: time)
        guard elapsed > 0 else { return discs.isEmpty && point.length <= bound }
        let velocity = point * (1000 / Double(elapsed))
        // The newest disc is the smallest: what fails mostly fails there.
        for index in discs.indices.reversed() where !discs[index].contains(velocity) { return false }
        return true
    }

    /// Adds a fix that is admitted.
    /// - Returns: false when it cannot be added because it is elsewhere at the very time of the kept one.
    mutating func append(_ fix: LocationSampler.Selected, at: EventTime, standing: Bool) -> Bool {
        let point = plane.point(fix.coordinate)
        let elapsed = elapsed(to: fix.time)
        // At the time of the kept fix the line is at the kept fix, whatever comes.
        guard elapsed > 0 else { return point.length <= bound }
        if newsAt == nil {
            if standing, fix.coordinate == plane.origin { delayStart = fix.time } else { newsAt = at }
        }
        newest = fix
        add(point, elapsed, at: fix.coordinate)
        return true
    }

    /// See `LocationSampler.split`.
    mutating func split(at recorded: LocationSampler.Selected) -> Bool {
        let (old, oldPlane, since, news, last) = (discs, plane, start, newsAt, newest)
        begin(at: recorded)
        guard let last else { return true }
        var admitted = true
        for disc in old {
            let time = UTCTime(milliseconds: since.milliseconds &+ disc.elapsed)
            guard time > recorded.time else { continue }
            let coordinate = oldPlane.coordinate(disc.offset)
            admitted = admits(time: time, coordinate: coordinate)
            add(plane.point(coordinate), elapsed(to: time), at: coordinate)
        }
        newest = last
        newsAt = news
        return admitted
    }

    mutating func withdraw(from time: UTCTime) {
        guard newest != nil else { return }
        let limit = elapsed(to: time)
        // What the hole held is not known one by one.
        let countMin = hole.map { $0 + 2 } ?? 0
        while discs.count > countMin, let last = discs.last, last.elapsed >= limit { discs.removeLast() }
        run = 1
        guard let last = discs.last else {
            begin(at: LocationSampler.Selected(time: start, coordinate: plane.origin))
            return
        }
        place = plane.coordinate(last.offset)
        let time = UTCTime(milliseconds: start.milliseconds &+ last.elapsed)
        if newest.map({ $0.time > time }) ?? false {
            newest = LocationSampler.Selected(time: time, coordinate: place)
        }
        delayStart = min(delayStart, time)
    }

    private func elapsed(to time: UTCTime) -> Int64 {
        let (elapsed, overflow) = time.milliseconds.subtractingReportingOverflow(start.milliseconds)
        return overflow ? .max : elapsed
    }

    private mutating func add(_ point: PlanePoint, _ elapsed: Int64, at coordinate: Coordinate) {
        let seconds = Double(elapsed) / 1000
        let radius = bound / seconds
        discs.append(
            Disc(velocity: point * (1 / seconds), radiusSquared: radius * radius, elapsed: elapsed))
        run = coordinate == place ? run + 1 : 1
        place = coordinate
        if isFull { thin() }
    }

    /// Of fixes at one place the first and the last limit the velocity as much as all of them: in between the distance from
    /// the line is never greater than at both ends.
    private mutating func thin() {
        guard run > 2 * Self.withdrawable else { return }
        let first = discs.count - run
        hole = first
        discs.removeSubrange((first + 1)..<(discs.count - Self.withdrawable))
        run = Self.withdrawable + 1
    }
}

extension TrackErrorSegment {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(discs.count <= Self.countMax, "\(discs.count) discs")
        invariant(bound.isFinite && bound > 0, "a bound of \(bound) m")
        invariant(run >= 0, "a run of \(run)")
    }
}
