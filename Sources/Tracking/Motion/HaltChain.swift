import WaypostCore

/// Halts that follow each other closely, and where the asset was all the while.
///
/// Between towers a parked receiver now and then agrees with itself on ten metres of movement, and each time the stop
/// timeout would begin again. Seen as a whole, such halts are in one place; the halts of a queue are not.
struct HaltChain: Sendable {
    /// Positions for one stop timeout, after thinning.
    private static let perTimeout = 60.0
    private static let countMax = 128

    /// The first halt of the chain; nil = none.
    private(set) var began: MotionDetector.Moment?
    private var resumed: EventTime?
    private var places = RingBuffer<(at: EventTime, coordinate: Coordinate)>(countMax: countMax)
    private var spacing = 5.0

    mutating func clear() {
        began = nil
        resumed = nil
        places.removeAll()
    }

    mutating func halted(since: MotionDetector.Moment, timeout: Double) {
        if let resumed, since.at.seconds(since: resumed) <= Tuning.chainMovementMax, began != nil {
            self.resumed = nil
            return
        }
        clear()
        began = since
        spacing = max(1, timeout / Self.perTimeout)
    }

    mutating func ended(at: EventTime) { resumed = at }

    mutating func note(_ coordinate: Coordinate, at: EventTime) {
        guard began != nil else { return }
        if let resumed, at.seconds(since: resumed) > Tuning.chainMovementMax { return clear() }
        if let last = places.last, at.seconds(since: last.at) < spacing { return }
        places.append((at, coordinate))
    }

    /// Where the asset is by the last three positions, and since when.
    /// - Parameters:
    ///   - instant: nothing before it counts.
    ///   - tolerance: metres from there within which a position is there; a single one beyond is noise.
    /// - Returns: nil = too little was seen.
    func arrival(since instant: EventTime, tolerance: Double, plane: LocalPlane) -> (place: Coordinate, at: EventTime)?
    {
        var first = places.count
        while first > 0, places[first - 1].at >= instant { first -= 1 }
        guard places.count - first >= 3 else { return nil }
        let recent = places.count - 3
        let middle = median(recent..<places.count, plane)
        var index = recent
        var isAway = false
        while index > first {
            let wasAway = isAway
            isAway = (plane.point(places[index - 1].coordinate) - middle).length > tolerance
            if isAway, wasAway { return (plane.coordinate(middle), places[index + 1].at) }
            index -= 1
        }
        return (plane.coordinate(middle), isAway && first + 1 < places.count ? places[first + 1].at : instant)
    }

    /// Metres of each position since an instant from a place, with the seconds since the one before.
    func scatter(
        around place: Coordinate, since instant: EventTime, plane: LocalPlane
    ) -> [(distance: Double, elapsed: Double)] {
        let middle = plane.point(place)
        return (0..<places.count).dropFirst().filter { places[$0].at >= instant }.map {
            let elapsed = places[$0].at.seconds(since: places[$0 - 1].at)
            return ((plane.point(places[$0].coordinate) - middle).length, elapsed)
        }
    }

    /// Where the asset stood for the whole chain; nil = it went somewhere.
    /// - Parameter tolerance: metres by which the middle of the first quarter and of the last may differ.
    func place(tolerance: Double, plane: LocalPlane) -> Coordinate? {
        guard places.count >= 24 else { return nil }
        let quarter = places.count / 4
        let first = median(0..<quarter, plane)
        let last = median((places.count - quarter)..<places.count, plane)
        guard (first - last).length <= tolerance else { return nil }
        let middle = median(0..<places.count, plane)
        let near = (0..<places.count).count { (plane.point(places[$0].coordinate) - middle).length <= 2 * tolerance }
        return near * 4 >= places.count * 3 ? plane.coordinate(middle) : nil
    }

    private func median(_ range: Range<Int>, _ plane: LocalPlane) -> PlanePoint {
        let points = range.map { plane.point(places[$0].coordinate) }
        return PlanePoint(
            east: points.map(\.east).sorted()[points.count / 2], north: points.map(\.north).sorted()[points.count / 2])
    }
}
