/// The satellites that a receiver reports (GSV), whether it uses them or not. No fix depends on it.
public struct SatelliteView: Hashable, Sendable {
    /// A satellite that is heard this well can be used in a fix: dB-Hz.
    public static let strongMin = 30

    /// Above the horizon by the receiver's almanac, over all constellations. 0 = it sees none.
    public var inView: Int
    /// How many of them are received with at least ``strongMin``; nil = the source does not say.
    public var strong: Int?
    /// Carrier to noise density of the satellite that is received best, dB-Hz; nil when none is received.
    public var best: Int?
    /// Median over those that are received, dB-Hz, the lower of two in the middle; nil when none is.
    public var median: Int?

    public init(inView: Int, strong: Int? = nil, best: Int? = nil, median: Int? = nil) {
        self.inView = inView
        self.strong = strong
        self.best = best
        self.median = median
    }
}
