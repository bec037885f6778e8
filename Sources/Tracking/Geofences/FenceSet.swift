import WaypostCore

/// The fences that can be used, ready for the question on which side of each a position is.
struct FenceSet: Sendable {
    enum Side { case inside, outside, onTheEdge }

    private(set) var fences: [Geofence] = []
    /// One that differs from the run before means another shape.
    let revisions: [UInt32]
    /// A number for all fences together, in any order; 0 without fences.
    let number: UInt64
    /// Fences that cannot be used.
    private(set) var refused = 0
    private var areas: [FenceArea] = []
    private let bounds: [FenceBounds]
    private var grid: FenceGrid

    init(_ settings: GeofenceMonitor.Settings) {
        var ids: Set<String> = []
        for fence in settings.fences {
            guard fences.count < GeofenceMonitor.fencesMax, let area = FenceArea(fence.shape),
                ids.insert(fence.id).inserted
            else {
                refused += 1
                continue
            }
            fences.append(fence)
            areas.append(area)
        }
        bounds = areas.map(\.bounds)
        revisions = fences.map(\.revision)
        number = revisions.reduce(fences.isEmpty ? 0 : 1) { sum, revision in
            // Spread, so that sums of small differences do not cancel out.
            let word = UInt64(revision) &* 0x9E37_79B9_7F4A_7C15
            return sum &+ (word ^ (word >> 29))
        }
        grid = FenceGrid(bounds, above: settings.gridAbove)
    }

    var indicesByID: [String: Int] {
        Dictionary(fences.indices.map { (fences[$0].id, $0) }) { first, _ in first }
    }

    /// Metres beyond the edge, negative inside.
    func distance(of fence: Int, _ coordinate: Coordinate) -> Double {
        bounds[fence].contains(coordinate) ? areas[fence].signedDistance(to: coordinate) : .infinity
    }

    /// - Parameter hysteresis: metres, for a large fence; less for a small one, or it would be all edge.
    func side(of fence: Int, at distance: Double, hysteresis: Double) -> Side {
        let edge = min(hysteresis, areas[fence].size / 4)
        return distance < -edge ? .inside : distance > edge ? .outside : .onTheEdge
    }

    /// The fences whose bounds contain a position, without those that are left out.
    mutating func near(_ coordinate: Coordinate, leavingOut isLeftOut: [Bool]) -> [Int] {
        var near: [Int] = []
        let bounds = bounds
        grid.visit(coordinate) { fence in
            if bounds[fence].contains(coordinate), !isLeftOut[fence] { near.append(fence) }
        }
        return near
    }
}
