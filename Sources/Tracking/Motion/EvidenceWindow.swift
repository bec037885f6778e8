import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How much movement the fixes of the last quarter of a minute agree on.
///
/// Doppler alone is noise (parked receivers report up to 1.7 m/s), displacement alone is multipath; the two agree only when
/// the asset moves. Velocities are summed as vectors: speeds as magnitudes never average to zero.
struct EvidenceWindow: Sendable {
    struct Entry: Sendable {
        var at: EventTime
        var time: UTCTime
        /// Seconds of this window's own clock, which follows the receiver's while that is sane.
        var clock: Double
        /// Metres; the velocities summed up to here.
        var path: PlanePoint
        /// m/s; zero without Doppler.
        var velocity: PlanePoint
        var coordinate: Coordinate
        /// nil without a velocity.
        var speed: Double?
        var accuracy: Double?
    }

    /// 25 Hz for 15 s; above that the window is shorter, never larger.
    private static let countMax = 384

    private var entries = RingBuffer<Entry>(countMax: countMax)
    /// Index of the entry that the vector speed is measured from.
    private var short = 0
    /// The same for the surge.
    private var brief = 0
    private var displaced = Persistence()
    private var doppler: (velocity: PlanePoint, at: EventTime)?

    /// Metres of agreed movement across the window; 0 = none.
    private(set) var evidence = 0.0
    /// Metres per second of the vector speed over 5 s (10 s without Doppler); nil before the fixes span them.
    private(set) var vectorSpeed: Double?
    /// Metres per second of the velocity vector over 3 s; 0 without Doppler, or before the fixes span them.
    private(set) var surge = 0.0
    /// Metres by the velocities alone, whatever the positions say; 0 without Doppler.
    private(set) var path = 0.0
    /// The last fix had a velocity.
    private(set) var hasDoppler = false

    mutating func clear() {
        entries.removeAll()
        short = 0
        brief = 0
        displaced.reset()
        doppler = nil
        evidence = 0
        path = 0
        vectorSpeed = nil
        surge = 0
    }

    /// Fixes before an instant stop counting: a halt is judged by itself.
    mutating func forget(before instant: EventTime) {
        var number = 0
        while number < entries.count, entries[number].at < instant { number += 1 }
        drop(number)
    }

    /// - Parameter assumed: metres, the accuracy of a fix that reports none.
    mutating func append(
        _ fix: Fix, time: UTCTime, at: EventTime, plane: LocalPlane, interval: Double, assumed: Double
    ) {
        let accuracy = max(fix.horizontalAccuracy ?? assumed, 5)
        var clock = 0.0
        var path = PlanePoint.zero
        var elapsed = 0.0
        if let last = entries.last {
            elapsed = Elapsed.seconds(from: (last.time, last.at), to: (time, at))
            if elapsed > max(5, 3 * interval)
                || fix.speed == nil && hasJumped(to: fix.coordinate, in: elapsed, plane: plane, accuracy: accuracy)
            {
                clear()
            } else {
                clock = last.clock + elapsed
                path = last.path
            }
        }
        let from = entries.last?.coordinate
        let velocity = velocity(of: fix, at: at, from: from, plane: plane, interval: interval)
        if from != nil, let velocity { path = path + velocity * min(elapsed, max(3, 1.5 * interval)) }
        hasDoppler = velocity != nil
        entries.append(
            Entry(
                at: at, time: time, clock: clock, path: path, velocity: velocity ?? .zero, coordinate: fix.coordinate,
                speed: velocity == nil ? nil : (fix.speed ?? velocity?.length), accuracy: fix.horizontalAccuracy))
        trim(to: max(15, 3 * interval))
        judge(accuracy: accuracy, at: at, plane: plane, interval: interval)
    }

    /// Without Doppler a position that jumps would pass for movement.
    private func hasJumped(
        to coordinate: Coordinate, in seconds: Double, plane: LocalPlane, accuracy: Double
    ) -> Bool {
        guard let last = entries.last else { return false }
        let step = (plane.point(coordinate) - plane.point(last.coordinate)).length
        // Of a first fix it is not known whether it stood.
        var speed = Reach.speedMax
        if entries.count > 1 {
            let before = entries[entries.count - 2]
            let elapsed = last.clock - before.clock
            let way = (plane.point(last.coordinate) - plane.point(before.coordinate)).length
            speed = elapsed > 0 ? way / elapsed : 0
        }
        return step > Reach.metres(in: seconds, from: speed, accuracy: 2 * accuracy)
    }

    /// East and north, m/s. A speed without a course (receivers leave it out when slow) gets the direction in which the
    /// position went; a fix without either keeps the last velocity for two seconds (RMC less often than GGA).
    private mutating func velocity(
        of fix: Fix, at: EventTime, from: Coordinate?, plane: LocalPlane, interval: Double
    ) -> PlanePoint? {
        guard let speed = fix.speed, speed.isFinite, speed >= 0 else {
            guard let doppler, at.seconds(since: doppler.at) <= max(2, 1.5 * interval) else { return nil }
            return doppler.velocity
        }
        var velocity = PlanePoint.zero
        if let course = fix.course, course.isFinite {
            if speed > 0 {
                let angle = course * .pi / 180
                velocity = PlanePoint(east: speed * sin(angle), north: speed * cos(angle))
            }
        } else if let from {
            let step = plane.point(fix.coordinate) - plane.point(from)
            let length = step.length
            if length > 0 { velocity = step * (speed / length) }
        }
        doppler = (velocity, at)
        return velocity
    }

    private mutating func trim(to span: Double) {
        guard let newest = entries.last?.clock else { return }
        var number = 0
        while newest - entries[number].clock > span + 0.01 { number += 1 }
        drop(number)
    }

    private mutating func drop(_ number: Int) {
        guard number > 0 else { return }
        entries.removeFirst(number)
        short = max(0, short - number)
        brief = max(0, brief - number)
    }

    private mutating func judge(accuracy: Double, at: EventTime, plane: LocalPlane, interval: Double) {
        let first = entries[0]
        let newest = entries[entries.count - 1]
        let displacement = plane.point(newest.coordinate) - plane.point(first.coordinate)
        let path = newest.path - first.path

        if hasDoppler {
            let travelled = Self.travelled(path, displacement, by: newest.velocity - first.velocity, interval: interval)
            let length = travelled.length
            self.path = length
            evidence = (displacement - travelled).length <= max(Tuning.windowAgreement, length / 2) ? length : 0
            judgeSurge(newest, interval: interval)
        } else {
            surge = 0
            self.path = 0
            displaced.observe(displacement.length > 3 * accuracy, at: at)
            let holds = displaced.holds(Tuning.displacedFixes) || displaced.holds(2, for: Tuning.displacedSpan)
            evidence = holds ? displacement.length : 0
        }

        let span = 0.98 * max(hasDoppler ? 5 : 10, interval)
        while short + 2 < entries.count, newest.clock - entries[short + 1].clock >= span { short += 1 }
        let start = entries[short]
        let seconds = newest.clock - start.clock
        if seconds < span || seconds <= 0 {
            vectorSpeed = nil
        } else if hasDoppler {
            vectorSpeed = (newest.path - start.path).length / seconds
        } else {
            vectorSpeed = (plane.point(newest.coordinate) - plane.point(start.coordinate)).length / seconds
        }
    }

    /// The path, moved on by what the velocity lags behind while the asset speeds up or slows down: a car that pulls away is
    /// metres ahead of its Doppler path, and these are the metres in which a start is to be seen. Within a sum over slow
    /// fixes the velocity may be ahead as well.
    private static func travelled(
        _ path: PlanePoint, _ displacement: PlanePoint, by change: PlanePoint, interval: Double
    ) -> PlanePoint {
        let square = change.east * change.east + change.north * change.north
        guard square > 1 else { return path }
        let lead = displacement - path
        let lag = (lead.east * change.east + lead.north * change.north) / square
        return path + change * max(-interval / 2, min(Tuning.velocityLagMax, lag))
    }

    private mutating func judgeSurge(_ newest: Entry, interval: Double) {
        let span = 0.98 * max(Tuning.surgeSpan, interval)
        while brief + 2 < entries.count, newest.clock - entries[brief + 1].clock >= span { brief += 1 }
        let start = entries[brief]
        let seconds = newest.clock - start.clock
        surge = seconds < span ? 0 : (newest.path - start.path).length / seconds
    }

    /// The velocity vector of the last fix, m/s; nil without Doppler.
    var newestVelocity: PlanePoint? { hasDoppler ? entries.last?.velocity : nil }

    /// Seconds that the window spans.
    var span: Double { entries.isEmpty ? 0 : entries[entries.count - 1].clock - entries[0].clock }

    /// The entries from the first of the newest run of slow fixes, at most `back` seconds old.
    func quietRun(below speed: Double, back: Double) -> [Entry] {
        guard let newest = entries.last else { return [] }
        var index = entries.count - 1
        while index > 0, newest.clock - entries[index - 1].clock <= back, (entries[index - 1].speed ?? 0) < speed {
            index -= 1
        }
        return (index..<entries.count).map { entries[$0] }
    }

    /// Metres by the speeds of the window below a limit, without the step to the last fix; 0 without Doppler.
    func travelledBeforeNewest(below limit: Double) -> Double {
        guard entries.count > 2 else { return 0 }
        var metres = 0.0
        for index in 1..<(entries.count - 1) {
            guard let before = entries[index - 1].speed, let now = entries[index].speed, max(before, now) < limit else {
                continue
            }
            metres += (before + now) / 2 * (entries[index].clock - entries[index - 1].clock)
        }
        return metres
    }

    /// Speed of the last fix, m/s; nil without one.
    var newestSpeed: Double? { entries.last?.speed }
}

extension EvidenceWindow {
    /// What holds between two calls.
    func checkInvariants() {
        entries.checkInvariants()
        invariant(evidence.isFinite && evidence >= 0, "evidence of \(evidence) m")
        invariant(path.isFinite && path >= 0, "a path of \(path) m")
        invariant(surge.isFinite && surge >= 0, "a surge of \(surge) m/s")
        invariant(vectorSpeed.map { $0.isFinite && $0 >= 0 } ?? true, "a vector speed of \(vectorSpeed ?? 0) m/s")
        invariant(short >= 0 && short <= entries.count, "the window of 5 s begins at \(short) of \(entries.count)")
        invariant(brief >= 0 && brief <= entries.count, "the window of 3 s begins at \(brief) of \(entries.count)")
        invariant(
            entries.count < 2 || entries[entries.count - 2].at <= entries[entries.count - 1].at,
            "its newest fix is older than the one before")
    }
}
