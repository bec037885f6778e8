import WaypostCore

/// How long a connection may be silent before something between ends it, as nginx does after 60 s by default: three losses in a row
/// after equal silences show it.
struct KeepAliveWatch {
    /// After a packet of either side, the other one is asked.
    private(set) var interval: Duration
    private let learns: Bool
    /// Of the last losses.
    private var silences: [Duration] = []

    private static let lossesMin = 3
    private static let tolerance = Duration.seconds(5)
    private static let shortest = Duration.seconds(15)

    /// - Parameter learns: nobody has set the interval.
    init(_ interval: Duration, learns: Bool) { (self.interval, self.learns) = (interval, learns) }

    /// The other side has ended the connection without a word, while nothing was unanswered.
    ///
    /// - Returns: whether the interval is shorter from now on: four fifths of such a silence.
    mutating func lost(after silence: Duration) -> Bool {
        guard learns, silence >= Self.shortest else { return false }
        silences = silences.suffix(Self.lossesMin - 1) + [silence]
        guard silences.count == Self.lossesMin, let least = silences.min(), let most = silences.max(),
            most - least <= Self.tolerance
        else { return false }
        silences = []
        let shorter = max(Self.shortest, .nanoseconds(least.nanoseconds / 5 * 4))
        guard shorter < interval else { return false }
        interval = shorter
        return true
    }
}
