import WaypostCore

/// Fixes that lead from one place to another. Neither noise nor positions that jump do.
struct Advance: Sendable {
    /// Metres, and the share of all steps, that the way must be in a straight line.
    private static let netMin = 100.0
    private static let netShare = 0.7
    /// The share of it that a single step of a few may be: the third of three steps from a standstill is 5/9.
    private static let stepShare = 2.0 / 3

    private let origin: Coordinate
    private var last: Coordinate
    private var path = 0.0
    private var longest = 0.0

    init(from origin: Coordinate) {
        self.origin = origin
        last = origin
    }

    mutating func add(_ coordinate: Coordinate) {
        let step = last.distance(to: coordinate)
        path += step
        longest = max(longest, step)
        last = coordinate
    }

    /// Metres from the first fix to the last one.
    var net: Double { origin.distance(to: last) }

    /// The fixes lead forward by more than so many metres, and no single step is most of it.
    func leads(over metres: Double) -> Bool {
        let net = net
        return net > metres && net > Self.netShare * path && longest <= Self.stepShare * net
    }

    /// A way in several steps, each of them forward.
    /// - Parameter accuracy: metres of the first and the last fix together.
    func isWay(accuracy: Double) -> Bool {
        let net = net
        return net > Self.netMin + accuracy && net > Self.netShare * path && longest <= net / 2
    }
}
