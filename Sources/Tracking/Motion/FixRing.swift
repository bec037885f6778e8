import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The fixes of the last minutes, in memory only: a departure is recognised late and dated back with them.
struct FixRing: Sendable {
    /// A fix in 88 bytes; NaN stands for nil.
    struct Entry: Sendable {
        var at: EventTime
        var time: UTCTime
        var coordinate: Coordinate
        private var altitudeMSL: Double
        private var altitudeHAE: Double
        private var accuracy: Double
        private var reportedSpeed: Double
        private var reportedCourse: Double
        private var hdop: Double
        private var satellites: Int16
        private var mode: UInt8
        private var quality: UInt8
        private var rollover: Bool

        init(_ fix: Fix, time: UTCTime, at: EventTime) {
            self.at = at
            self.time = time
            coordinate = fix.coordinate
            altitudeMSL = fix.altitudeMSL ?? .nan
            altitudeHAE = fix.altitudeHAE ?? .nan
            accuracy = fix.horizontalAccuracy ?? .nan
            reportedSpeed = fix.speed ?? .nan
            reportedCourse = fix.course ?? .nan
            hdop = fix.hdop ?? .nan
            satellites = fix.satellitesUsed.map { Int16(clamping: $0) } ?? -1
            mode = UInt8(clamping: fix.mode.rawValue)
            quality = UInt8(clamping: fix.quality.rawValue)
            rollover = fix.rollover
        }

        mutating func forgetSpeed() {
            reportedSpeed = .nan
            reportedCourse = .nan
        }

        var speed: Double? { reportedSpeed.isNaN ? nil : reportedSpeed }
        var course: Double? { reportedCourse.isNaN ? nil : reportedCourse }
        var horizontalAccuracy: Double? { accuracy.isNaN ? nil : accuracy }

        var fix: Fix {
            Fix(
                time: time, timeOfDay: time.timeOfDay, at: at, coordinate: coordinate,
                altitudeMSL: altitudeMSL.isNaN ? nil : altitudeMSL, altitudeHAE: altitudeHAE.isNaN ? nil : altitudeHAE,
                horizontalAccuracy: horizontalAccuracy, speed: speed, course: course, hdop: hdop.isNaN ? nil : hdop,
                satellitesUsed: satellites < 0 ? nil : Int(satellites), mode: FixMode(rawValue: Int(mode)) ?? .twoD,
                quality: FixQuality(rawValue: Int(quality)) ?? .gps, rollover: rollover)
        }
    }

    private static let bytesMax = 65_536
    private static let spacing = 0.8

    private var entries = RingBuffer<Entry>(countMax: bytesMax / MemoryLayout<Entry>.stride)
    /// Seconds.
    var span: Double

    init(span: Duration) { self.span = span.inSeconds }
    var count: Int { entries.count }
    var newest: Entry? { entries.last }
    subscript(index: Int) -> Entry { entries[index] }
    mutating func removeAll() { entries.removeAll() }

    /// The speeds meant nothing.
    mutating func forgetSpeeds() {
        for index in 0..<entries.count { entries[index].forgetSpeed() }
    }

    /// The fixes before the newest one are no part of what begins now.
    mutating func keepNewest() { entries.removeFirst(max(0, entries.count - 1)) }

    /// Thinned to 1 Hz: a fix replaces its predecessor that came within a second of the one before. The newest is always in.
    mutating func append(_ fix: Fix, time: UTCTime, at: EventTime) {
        let entry = Entry(fix, time: time, at: at)
        let count = entries.count
        if count >= 2, entries[count - 1].at.seconds(since: entries[count - 2].at) < Self.spacing {
            entries[count - 1] = entry
        } else {
            entries.append(entry)
        }
        while entries.count > 1, at.seconds(since: entries[0].at) > span { entries.removeFirst() }
    }

    /// Whether most fixes of the minute before this one are within a radius, in metres, of a place; false with fewer than five.
    func wasMostly(within radius: Double, of place: Coordinate, before index: Int) -> Bool {
        let end = entries[index].at
        var number = 0
        var near = 0
        for index in (0..<index).reversed() {
            guard end.seconds(since: entries[index].at) <= 60 else { break }
            number += 1
            if entries[index].coordinate.distance(to: place) <= radius { near += 1 }
        }
        return number >= 5 && 2 * near > number
    }

    /// The median of the last 30 s, fixes of poor accuracy left out; nil when there is none.
    func recentPlace(accuracyMax: Double) -> StoredState.Anchor? {
        guard let newest = entries.last else { return nil }
        var place = PlaceEstimate(countMax: 40)
        for index in 0..<entries.count where newest.at.seconds(since: entries[index].at) <= 30 {
            let entry = entries[index]
            if (entry.horizontalAccuracy ?? 0) <= accuracyMax {
                place.add(entry.coordinate, accuracy: entry.horizontalAccuracy, at: entry.at)
            }
        }
        return place.median()
    }
}

// MARK: Departure

extension FixRing {
    /// The first of the newest fixes that are all farther than this from a place; nil = the newest is not.
    func firstBeyond(_ metres: Double, from place: Coordinate) -> Int? {
        let first = (0..<count).last { self[$0].coordinate.distance(to: place) <= metres }.map { $0 + 1 } ?? 0
        return first < count ? first : nil
    }

    /// The last fix that may have been at a place where the asset stood: those after it are all beyond their accuracy.
    /// - Parameter floor: never before this instant.
    /// - Returns: nil = none is left.
    func lastAt(_ place: Coordinate, notBefore floor: EventTime) -> Int? {
        for index in (0..<count).reversed() {
            let entry = self[index]
            guard entry.at >= floor else { return nil }
            let accuracy = min(entry.horizontalAccuracy ?? FixFilter.unknownAccuracy, Tuning.fenceAccuracyMax)
            if entry.coordinate.distance(to: place) <= accuracy + Tuning.heldSlack { return index }
        }
        return nil
    }

    /// Walks back from the newest fix while it moves.
    /// - Parameters:
    ///   - floor: never before this instant.
    ///   - noise: m/s that the receiver reports of an asset that stands; 0 = unknown.
    ///   - evidence: metres of movement before a pause that make it part of the departure.
    /// - Returns: the index of the last fix that still stood; the oldest one if all of them move. nil when empty.
    func departure(
        notBefore floor: EventTime?, plane: LocalPlane, interval: Double, noise: Double = 0,
        evidence: Double = Tuning.departureEvidence
    ) -> Int? {
        guard let newest else { return nil }
        var oldest = count - 1
        while oldest > 0, isUsable(oldest - 1, newest: newest, floor: floor, interval: interval) { oldest -= 1 }

        let least = max(Tuning.departureSpeed, Tuning.departureNoise * noise)
        var index = count - 1
        while index > oldest {
            if isMoving(index, from: oldest, plane: plane, least: least) {
                index -= 1
            } else if let earlier = movementBeforePause(
                endingAt: index, from: oldest, plane: plane, least: least, evidence: evidence)
            {
                index = earlier
            } else {
                break
            }
        }
        return index
    }

    private func isUsable(_ index: Int, newest: Entry, floor: EventTime?, interval: Double) -> Bool {
        let entry = self[index]
        if let floor, entry.at < floor { return false }
        return newest.at.seconds(since: entry.at) <= Tuning.departureBackMax
            && self[index + 1].at.seconds(since: entry.at) <= max(5, 3 * interval)
    }

    /// The last fix of an earlier movement that was long enough, at most a pause before a standing fix. Who walks is as slow as
    /// a noisy receiver for a moment now and then: that is no end of it.
    private func movementBeforePause(
        endingAt standing: Int, from oldest: Int, plane: LocalPlane, least: Double, evidence: Double
    ) -> Int? {
        var last = standing
        while last > oldest, !isMoving(last, from: oldest, plane: plane, least: least) {
            if self[standing].at.seconds(since: self[last].at) > Tuning.departurePauseMax { return nil }
            last -= 1
        }
        guard last > oldest, self[standing].at.seconds(since: self[last].at) <= Tuning.departurePauseMax else {
            return nil
        }
        var first = last
        var path = PlanePoint.zero
        var moved = last
        while first > oldest, self[moved].at.seconds(since: self[first].at) <= Tuning.departureFalter {
            if isMoving(first, from: oldest, plane: plane, least: least) {
                let seconds = min(3, self[first].at.seconds(since: self[first - 1].at))
                path = path + (velocity(first, plane: plane) ?? .zero) * seconds
                if path.length >= evidence { return last }
                moved = first
            }
            first -= 1
        }
        return nil
    }

    /// By the mean velocity vector of three neighbours; without Doppler by the displacement over about six seconds.
    private func isMoving(_ index: Int, from oldest: Int, plane: LocalPlane, least: Double) -> Bool {
        if self[index].speed != nil {
            var sum = PlanePoint.zero
            var number = 0.0
            for neighbour in max(oldest, index - 1)...min(count - 1, index + 1) {
                guard let velocity = velocity(neighbour, plane: plane) else { continue }
                sum = sum + velocity
                number += 1
            }
            return number > 0 && sum.length / number >= least
        }
        var from = index
        while from > oldest, self[index].at.seconds(since: self[from].at) < 3 { from -= 1 }
        var to = index
        while to < count - 1, self[to].at.seconds(since: self[index].at) < 3 { to += 1 }
        let seconds = self[to].at.seconds(since: self[from].at)
        guard seconds > 0 else { return false }
        return (plane.point(self[to].coordinate) - plane.point(self[from].coordinate)).length / seconds
            >= Tuning.departureSpeed
    }

    private func velocity(_ index: Int, plane: LocalPlane) -> PlanePoint? {
        let entry = self[index]
        guard let speed = entry.speed, speed.isFinite else { return nil }
        if let course = entry.course, course.isFinite {
            let angle = course * .pi / 180
            return PlanePoint(east: speed * sin(angle), north: speed * cos(angle))
        }
        guard index > 0 else { return .zero }
        let step = plane.point(entry.coordinate) - plane.point(self[index - 1].coordinate)
        let length = step.length
        return length > 0 ? step * (speed / length) : .zero
    }
}

extension FixRing {
    /// What holds between two calls.
    func checkInvariants() {
        entries.checkInvariants()
        invariant(span.isFinite, "it keeps \(span) s")
        invariant(
            entries.count < 2 || entries[entries.count - 2].at <= entries[entries.count - 1].at,
            "its newest fix is older than the one before")
    }
}
