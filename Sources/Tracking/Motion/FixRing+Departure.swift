import Positioning

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension FixRing {
    /// Metres per second over three fixes at which the asset still moves.
    private static let movingSpeed = 0.6
    /// The same as a multiple of the speed that this receiver reports while parked.
    private static let movingNoise = 2.0
    /// Seconds that a pause within the departure may last (reversing out, then forward).
    private static let pauseMax = 20.0
    /// Metres of movement before a pause that make it part of the departure.
    private static let evidenceBeforePause = 8.0
    /// Seconds; no departure lies further back.
    private static let backMax = 180.0

    /// Walks back from the newest fix while it moves.
    /// - Parameters:
    ///   - floor: never before this instant.
    ///   - noise: m/s that the receiver reports of an asset that stands; 0 = unknown.
    /// - Returns: the index of the last fix that still stood; the oldest one if all of them move. nil when empty.
    func departure(notBefore floor: EventTime?, plane: LocalPlane, interval: Double, noise: Double = 0) -> Int? {
        guard let newest else { return nil }
        var oldest = count - 1
        while oldest > 0, isUsable(oldest - 1, newest: newest, floor: floor, interval: interval) { oldest -= 1 }

        let least = max(Self.movingSpeed, Self.movingNoise * noise)
        var index = count - 1
        while index > oldest {
            if isMoving(index, from: oldest, plane: plane, least: least) {
                index -= 1
            } else if let earlier = movementBeforePause(endingAt: index, from: oldest, plane: plane, least: least) {
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
        return newest.at.seconds(since: entry.at) <= Self.backMax
            && self[index + 1].at.seconds(since: entry.at) <= max(5, 3 * interval)
    }

    /// The last fix of an earlier movement that was long enough, at most a pause before a standing fix.
    private func movementBeforePause(
        endingAt standing: Int, from oldest: Int, plane: LocalPlane, least: Double
    ) -> Int? {
        var last = standing
        while last > oldest, !isMoving(last, from: oldest, plane: plane, least: least) {
            if self[standing].at.seconds(since: self[last].at) > Self.pauseMax { return nil }
            last -= 1
        }
        guard last > oldest, self[standing].at.seconds(since: self[last].at) <= Self.pauseMax else { return nil }
        var first = last
        var path = PlanePoint.zero
        while first > oldest, isMoving(first, from: oldest, plane: plane, least: least) {
            let seconds = min(3, self[first].at.seconds(since: self[first - 1].at))
            path = path + (velocity(first, plane: plane) ?? .zero) * seconds
            first -= 1
        }
        return path.length >= Self.evidenceBeforePause ? last : nil
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
            >= Self.movingSpeed
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
