import WaypostCore

/// What has to hold, by its number in the specification of the simulated world.
package enum Invariant: Int, Sendable, CaseIterable {
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
    /// One that the program states itself: `invariant` of `Core`.
    case ownLogic = 13
}

/// It did not hold.
package struct Violation: Error, Sendable, CustomStringConvertible {
    package var invariant: Invariant
    package var what: String
    /// Seconds since the world began.
    package var at: Double

    package var description: String { "invariant \(invariant.rawValue) (\(invariant)) at \(at) s: \(what)" }
}
