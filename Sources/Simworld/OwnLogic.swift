import WaypostCore

/// What the program states itself: `invariant` of `Core`.
package enum OwnLogic {
    /// Of the world that is under way.
    nonisolated(unsafe) static var books: Books?

    /// What does not hold from now on is a violation of the world that is under way. For a program that runs one at a time.
    package static func watch() { Invariants.broken = { OwnLogic.books?.fail(.ownLogic, $0) } }
}
