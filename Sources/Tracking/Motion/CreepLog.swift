import WaypostCore

/// How far a jam moved an asset during a halt, a few metres at a time.
///
/// A creep is too short to end a halt, and positions drift farther than one within minutes. So only the steps count that
/// the place made while speed and position agreed on movement, each from the mean before to the mean after; what drifts
/// in between does not.
struct CreepLog: Sendable {
    private var origin: Coordinate?
    private var calm = Mean()
    private var before: PlanePoint?
    private var sum = PlanePoint.zero
    private var lastAt: EventTime?
    /// The end of the creep that goes on, or whose step is not known yet; nil while it is too slow to be one.
    private var ended: MotionDetector.Moment?

    /// The end of the last creep that made a step.
    private(set) var last: MotionDetector.Moment?

    private struct Mean {
        var point = PlanePoint.zero
        var seconds = 0.0

        mutating func add(_ point: PlanePoint, elapsed: Double, memory: Double) {
            seconds = min(memory, seconds + elapsed)
            self.point = self.point + (point - self.point) * (elapsed / seconds)
        }
    }

    /// A halt begins at this place.
    mutating func begin(at origin: Coordinate) {
        self = CreepLog()
        self.origin = origin
    }

    /// - Parameters:
    ///   - creeps: speed and position agree on movement within the evidence window.
    ///   - rolls: the asset moves at this very instant; the window remembers a creep for longer.
    ///   - step: metres that count as one.
    mutating func observe(
        _ coordinate: Coordinate, creeps: Bool, rolls: Bool, step: Double, at moment: MotionDetector.Moment,
        plane: LocalPlane
    ) {
        guard let origin else { return }
        let point = plane.point(coordinate) - plane.point(origin)
        let elapsed = min(5, max(0.01, lastAt.map { moment.at.seconds(since: $0) } ?? 1))
        lastAt = moment.at
        if creeps {
            if before == nil {
                before = calm.seconds > 0 ? calm.point : point
                ended = nil
            }
            calm = Mean()
            if rolls { ended = moment }
            return
        }
        calm.add(point, elapsed: elapsed, memory: Tuning.creepCalmMemory)
        guard let from = before, calm.seconds >= Tuning.creepCalmAfter else { return }
        let made = calm.point - from
        sum = sum + made
        if made.length >= step { last = ended ?? last }
        before = nil
    }

    /// Metres from the first place to the present one, by creeps alone.
    /// - Parameter coordinate: where the asset is now, for a creep that is not over.
    func distance(_ coordinate: Coordinate, plane: LocalPlane) -> Double {
        guard let origin, let from = before else { return sum.length }
        let now = calm.seconds > 0 ? calm.point : plane.point(coordinate) - plane.point(origin)
        return (sum + now - from).length
    }

    /// Since when the asset stands, if it crept; a creep in progress counts.
    var standsSince: MotionDetector.Moment? { before == nil ? last : ended ?? last }
}
