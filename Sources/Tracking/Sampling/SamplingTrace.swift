import Positioning

/// What the samplers took, in order, so that somebody else can judge what they kept of it.
package struct SamplingTrace: Sendable {
    package struct Taken: Sendable {
        package var time: UTCTime
        /// Event time of its arrival.
        package var at: EventTime
        package var coordinate: Coordinate
        /// The position of an asset that stands, in place of the fix.
        package var isHeld: Bool
    }

    package private(set) var taken: [Taken] = []

    package init() {}

    mutating func taken(_ time: UTCTime, at: EventTime, _ coordinate: Coordinate, isHeld: Bool) {
        taken.append(Taken(time: time, at: at, coordinate: coordinate, isHeld: isHeld))
    }

    /// Fixes from this time on were taken back, as far as they came after the last one kept; better ones for the same
    /// times follow.
    mutating func withdrawn(from time: UTCTime, after kept: UTCTime?) {
        while let last = taken.last, last.time >= time, kept.map({ last.time > $0 }) ?? true { taken.removeLast() }
    }
}
