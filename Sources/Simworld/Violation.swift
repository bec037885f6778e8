import Positioning

/// What has to hold, by its number in the specification of the simulated world.
public enum Invariant: Int, Sendable, CaseIterable {
    case nothingLost = 1
    case neverSettledByAStranger = 2
    case inOrder = 3
    case oneIDOneContent = 4
    case duplicatesExplained = 5
    case isolation = 6
    case liveness = 7
    case politeness = 8
    case honestAge = 9
    case bounded = 10
    case numbersAddUp = 11
    case remote = 12
}

/// It did not hold.
public struct Violation: Error, Sendable, CustomStringConvertible {
    public var invariant: Invariant
    public var what: String
    /// Seconds since the world began.
    public var at: Double

    public var description: String { "invariant \(invariant.rawValue) (\(invariant)) at \(at) s: \(what)" }
}
