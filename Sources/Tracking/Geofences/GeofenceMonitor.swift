import Positioning

/// Which geofences the asset is inside of: ENTER, EXIT and DWELL, for each fence in strict alternation.
///
/// A side counts when two fixes in a row and 3 s agree on it, beyond the edge by more than a hysteresis that grows with
/// the accuracy; the event is dated at the first of them. No pass-through detection: a fence that lies between two fixes
/// is not seen.
public struct GeofenceMonitor: Sendable {
    var settings: Settings
    /// The usable ones.
    private(set) var fences: [Geofence] = []
    private var areas: [FenceArea] = []
    private var bounds: [FenceBounds] = []
    var revisions: [UInt32] = []
    /// A number for all fences together, in any order; 0 without fences.
    var setNumber: UInt64 = 0
    private var grid = FenceGrid([], above: 0)
    private var isWatched: [Bool] = []
    /// Fences that have not been looked at yet are neither inside nor outside.
    var isUnknown: [Bool] = []
    var hasUnknown = false
    private var unknownFixes = 0
    private var unknownSince: (time: UTCTime, at: EventTime)?
    var watches: [Watch] = []
    var told = 0
    var last: Sighting?
    /// A fence has another shape than in the run before.
    private var hasOtherShapes = false
    /// Crossings that could not be recorded yet, before the first dated fix or outside the hours.
    var owed: [Crossing] = []
    var awaitsDwells = false
    /// The earliest fix that a decision is waiting for the confirmation of.
    public private(set) var pendingSince: EventTime?
    /// Fences that cannot be used.
    public private(set) var refused = 0
    /// Stays that were too many at once to be told.
    public private(set) var untold = 0

    private static let debounceFixes = 2
    /// Seconds.
    private static let debounce = 3.0
    private static let hysteresis = 5.0...30.0

    public init(settings: Settings, restored: StoredState? = nil) {
        self.settings = settings
        arm(settings.fences)
        guard let restored else {
            forgetAll()
            return
        }
        // Unstored means outside, but of the fences of that run only.
        if restored.fenceSet != setNumber { forgetAll() }
        let numbers = Dictionary(fences.indices.map { (fences[$0].id, $0) }) { first, _ in first }
        for stay in restored.stays.prefix(Self.staysMax) {
            guard let index = numbers[stay.fence] else {
                if stay.isTold {
                    owed.append(Crossing(id: stay.fence, action: .exit, reason: .removed))
                }
                continue
            }
            guard !isWatched[index] else { continue }
            let isSame = revisions[index] == stay.revision
            hasOtherShapes = hasOtherShapes || !isSame
            isUnknown[index] = false
            watch(
                Watch(
                    fence: index, isInside: true, isTold: stay.isTold, enteredTime: stay.entered,
                    dwelled: stay.dwelled, cause: isSame ? .restart : .changed))
        }
        awaitsDwells = !watches.isEmpty
    }

    /// There is nothing to watch.
    public var isEmpty: Bool { fences.isEmpty }

    /// Something waits for the next dated fix.
    var awaitsFix: Bool { awaitsDwells || !owed.isEmpty }

    /// Ids of the fences that the asset is inside of, told or not, in no particular order.
    public var inside: [String] { watches.compactMap { $0.isInside ? fences[$0.fence].id : nil } }

    public func isInside(_ id: String) -> Bool { watches.contains { $0.isInside && fences[$0.fence].id == id } }

    mutating func arm(_ list: [Geofence]) {
        var ids: Set<String> = []
        refused = 0
        fences = []
        areas = []
        for fence in list {
            guard fences.count < Self.fencesMax, let area = FenceArea(fence.shape), ids.insert(fence.id).inserted else {
                refused += 1
                continue
            }
            fences.append(fence)
            areas.append(area)
        }
        bounds = areas.map(\.bounds)
        revisions = fences.map(\.revision)
        setNumber = revisions.reduce(fences.isEmpty ? 0 : 1) { sum, revision in
            // Spread, so that sums of small differences do not cancel out.
            let word = UInt64(revision) &* 0x9E37_79B9_7F4A_7C15
            return sum &+ (word ^ (word >> 29))
        }
        grid = FenceGrid(bounds, above: settings.gridAbove)
        isWatched = [Bool](repeating: false, count: fences.count)
        isUnknown = isWatched
    }

    private mutating func forgetAll() {
        for index in isUnknown.indices where !isWatched[index] { isUnknown[index] = true }
        lookAnew()
    }

    mutating func lookAnew() {
        hasUnknown = isUnknown.contains(true)
        unknownFixes = 0
        unknownSince = nil
    }

    mutating func watch(_ watch: Watch) {
        isWatched[watch.fence] = true
        if watch.isTold { told += 1 }
        watches.append(watch)
    }

    /// The last one takes its place.
    private mutating func unwatch(_ index: Int) {
        isWatched[watches[index].fence] = false
        isUnknown[watches[index].fence] = false
        if watches[index].isTold { told -= 1 }
        watches.swapAt(index, watches.count - 1)
        watches.removeLast()
    }
}

// What happens to the asset.
extension GeofenceMonitor {
    /// A fix that is reported. Sightings come in order of event time.
    /// - Returns: what it decides, in order of time; EXITs before ENTERs at one time, then by id.
    public mutating func reported(_ sighting: Sighting) -> [Crossing] {
        if isEmpty { return [] }
        var crossings: [Crossing] = []
        look(sighting, atOnce: false, &crossings)
        // Fixes of the past may follow one another within one call, with deadlines in between.
        if let due = nextDeadline, due <= sighting.at { takeDwells(through: sighting.at, sighting, &crossings) }
        if crossings.count > 1 { Self.order(&crossings) }
        return crossings
    }

    /// The place where the asset is parked, known from many fixes: it decides at once.
    mutating func placed(_ sighting: Sighting) -> [Crossing] {
        if isEmpty { return [] }
        var crossings: [Crossing] = []
        look(sighting, atOnce: true, &crossings)
        if crossings.count > 1 { Self.order(&crossings) }
        return crossings
    }

    /// A fence has not been looked at since it was told of, or was given its shape.
    var needsPlace: Bool { hasUnknown || hasOtherShapes }

    /// What was seen before does not count any more: the asset is elsewhere, or the clock is.
    mutating func forgetEvidence() {
        for index in watches.indices.reversed() where watches[index].pending != nil {
            if watches[index].isInside { watches[index].pending = nil } else { unwatchUndecided(index) }
        }
        pendingSince = nil
        unknownFixes = 0
        unknownSince = nil
    }

    private mutating func unwatchUndecided(_ index: Int) {
        let (fence, isFirst) = (watches[index].fence, watches[index].isFirst)
        unwatch(index)
        if isFirst, hasUnknown { isUnknown[fence] = true }
    }

    private mutating func look(_ sighting: Sighting, atOnce: Bool, _ crossings: inout [Crossing]) {
        let coordinate = sighting.coordinate
        // Half as much again: the plane of a large polygon far from the equator stretches distances.
        let step = 1.5 * (last?.coordinate.distance(to: coordinate) ?? .infinity)
        last = sighting
        hasOtherShapes = false
        let reach = Self.reach(sighting)
        var index = watches.count
        while index > 0 {
            index -= 1
            let fence = watches[index].fence
            if watches[index].isInside, watches[index].pending == nil, !atOnce {
                watches[index].clearance -= step
                if watches[index].clearance > 0 {
                    watches[index].cause = nil
                    continue
                }
            }
            let distance = distance(of: fence, coordinate)
            watches[index].clearance = -distance - Self.hysteresis.upperBound
            judge(index, side(of: fence, distance, reach), sighting, atOnce, &crossings)
        }
        for level in grid.levels.indices {
            for member in grid.levels[level].range(at: coordinate) {
                consider(Int(grid.levels[level].members[member]), coordinate, reach, sighting, atOnce, &crossings)
            }
        }
        for member in grid.loose.indices {
            consider(Int(grid.loose[member]), coordinate, reach, sighting, atOnce, &crossings)
        }
        if hasUnknown { settleUnknown(sighting, atOnce) }
        findPending()
    }

    mutating func findPending() {
        pendingSince = nil
        for index in watches.indices {
            guard let first = watches[index].pending?.at else { continue }
            pendingSince = min(pendingSince ?? first, first)
        }
    }

    /// The hysteresis of a large fence, in metres.
    static func reach(_ sighting: Sighting) -> Double {
        let accuracy = sighting.accuracy.flatMap { $0.isFinite ? $0 : nil } ?? FixFilter.unknownAccuracy
        return max(hysteresis.lowerBound, min(accuracy, hysteresis.upperBound))
    }

    @inline(__always)
    private mutating func consider(
        _ fence: Int, _ coordinate: Coordinate, _ reach: Double, _ sighting: Sighting, _ atOnce: Bool,
        _ crossings: inout [Crossing]
    ) {
        guard bounds[fence].contains(coordinate), !isWatched[fence] else { return }
        guard side(of: fence, distance(of: fence, coordinate), reach) == .inside else { return }
        watch(Watch(fence: fence, isFirst: isUnknown[fence]))
        judge(watches.count - 1, .inside, sighting, atOnce, &crossings)
    }

    enum Side { case inside, outside, onTheEdge }

    /// Metres beyond the edge, negative inside.
    func distance(of fence: Int, _ coordinate: Coordinate) -> Double {
        bounds[fence].contains(coordinate) ? areas[fence].signedDistance(to: coordinate) : .infinity
    }

    func side(of fence: Int, _ distance: Double, _ reach: Double) -> Side {
        // A small fence is not all edge.
        let edge = min(reach, areas[fence].size / 4)
        return distance < -edge ? .inside : distance > edge ? .outside : .onTheEdge
    }

    /// What one sighting says about one watched fence. May take the watch away.
    mutating func judge(
        _ index: Int, _ side: Side, _ sighting: Sighting, _ atOnce: Bool, _ crossings: inout [Crossing]
    ) {
        let isInside = watches[index].isInside
        guard side == (isInside ? .outside : .inside) else {
            watches[index].pending = nil
            if !isInside { return unwatchUndecided(index) }
            // A place that was stored tells nothing new, a fix does.
            if side == .inside, !atOnce { watches[index].cause = nil }
            return
        }
        if watches[index].pending == nil {
            watches[index].pending = sighting
            watches[index].pendingFixes = 0
        }
        watches[index].pendingFixes += 1
        guard let first = watches[index].pending else { return }
        if !atOnce {
            let held = Elapsed.seconds(from: (first.time, first.at), to: (sighting.time, sighting.at))
            guard watches[index].pendingFixes >= Self.debounceFixes, held >= Self.debounce else { return }
        }
        if isInside { left(index, first, &crossings) } else { entered(index, first, &crossings) }
    }

    private mutating func entered(_ index: Int, _ first: Sighting, _ crossings: inout [Crossing]) {
        let fence = fences[watches[index].fence]
        watches[index].pending = nil
        watches[index].isInside = true
        watches[index].enteredTime = first.time
        watches[index].enteredAt = first.at
        isUnknown[watches[index].fence] = false
        if watches[index].isFirst, !settings.initialEnter { return }
        guard told < Self.staysMax else {
            untold += 1
            return
        }
        watches[index].isTold = true
        told += 1
        if let dwell = fence.dwell { watches[index].dwellDue = first.at + dwell }
        let reason = watches[index].isFirst ? .initial : watches[index].cause ?? Reason(opening: first.opening)
        watches[index].cause = nil
        crossings.append(
            Crossing(id: fence.id, name: fence.name, action: .enter, reason: reason, sighting: first))
    }

    private mutating func left(_ index: Int, _ first: Sighting, _ crossings: inout [Crossing]) {
        let watch = watches[index]
        unwatch(index)
        guard watch.isTold else { return }
        let fence = fences[watch.fence]
        // Its time was over while it waited for another decision.
        if let due = watch.dwellDue, due < first.at { crossings.append(dwell(in: fence, first, due)) }
        crossings.append(
            Crossing(
                id: fence.id, name: fence.name, action: .exit, reason: watch.cause ?? Reason(opening: first.opening),
                sighting: first))
    }

    /// Once the asset was seen for as long as a decision takes, fences that it is not about to enter are outside.
    private mutating func settleUnknown(_ sighting: Sighting, _ atOnce: Bool) {
        let since = unknownSince ?? (sighting.time, sighting.at)
        unknownSince = since
        unknownFixes += 1
        if !atOnce {
            let seen = Elapsed.seconds(from: since, to: (sighting.time, sighting.at))
            guard unknownFixes >= Self.debounceFixes, seen >= Self.debounce else { return }
        }
        for index in isUnknown.indices { isUnknown[index] = false }
        hasUnknown = false
    }

    static func order(_ crossings: inout [Crossing]) {
        func rank(_ crossing: Crossing) -> (EventTime, Int) {
            let action =
                switch crossing.action {
                case .exit: 0
                case .enter: 1
                case .dwell: 2
                }
            return (crossing.due ?? crossing.sighting?.at ?? EventTime(nanoseconds: .max), action)
        }
        crossings.sort { rank($0) == rank($1) ? $0.id < $1.id : rank($0) < rank($1) }
    }
}

extension GeofenceMonitor.Reason {
    fileprivate init(opening: String?) { self = opening.flatMap { Self(rawValue: $0) } ?? .crossing }
}
