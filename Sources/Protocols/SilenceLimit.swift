import WaypostCore

/// How long a connection may be silent before it is no longer used: something on its way, such as a translation of addresses, may
/// forget it without a word. Learnt from the silences that connections have survived, and from those that they have not.
package struct SilenceLimit: Hashable, Sendable {
    /// Whatever is lost after less is lost for another reason.
    package static let least = Duration.seconds(10)

    private var longestSurvived = Duration.zero
    /// nil = no connection was lost.
    package private(set) var limit: Duration?

    package init() {}

    /// A connection worked after a silence.
    package mutating func survived(_ silence: Duration) {
        longestSurvived = max(longestSurvived, silence)
    }

    /// A connection was dead after a silence.
    package mutating func lost(after silence: Duration) {
        guard silence > Self.least else { return }
        // What has survived longer did so by another way, or by chance.
        if longestSurvived >= silence { longestSurvived = .zero }
        let share = Duration.nanoseconds(silence.nanoseconds / 5 * 4)
        let known = longestSurvived > Self.least ? longestSurvived : share
        limit = max(Self.least, min(known, limit ?? known))
    }
}
