/// Where what must hold by the program's own logic is looked at: in debug builds, and in the simulated world, which is a release.
@usableFromInline package enum Invariants {
    /// Called with the place and the words of one that does not hold; nil = none is looked at.
    ///
    /// It is set once, before any other thread begins.
    #if DEBUG
        @usableFromInline nonisolated(unsafe) package static var broken: (@Sendable (String) -> Void)? = {
            fatalError($0)
        }
    #else
        @usableFromInline nonisolated(unsafe) package static var broken: (@Sendable (String) -> Void)?
    #endif

    /// Whether they are looked at: a part with many asks first.
    @inlinable package static var areChecked: Bool { broken != nil }
}

/// States what must hold here whatever comes from outside: where it does not, the program is wrong.
///
/// It costs one comparison where none is looked at. What would be unsafe to go on with is a `precondition` instead.
///
/// - Parameters:
///   - holds: without side effects.
///   - what: is wrong, for who looks for the cause.
@inlinable @inline(__always)
package func invariant(
    _ holds: @autoclosure () -> Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    guard let broken = Invariants.broken else { return }
    if !holds() { broken("\(file):\(line): \(what())") }
}
