import WaypostCore

/// The fixes that the samplers saw, in order, for a check of those that they kept.
package struct SamplingTrace: Sendable {
    package struct Entry: Sendable {
        package var time: UTCTime
        /// Event time of its arrival.
        package var at: EventTime
        package var coordinate: Coordinate
        /// The position of an asset that stands, in place of the fix.
        package var isHeld: Bool
    }

    package private(set) var entries: [Entry] = []

    package init() {}

    mutating func add(_ time: UTCTime, at: EventTime, _ coordinate: Coordinate, isHeld: Bool) {
        entries.append(Entry(time: time, at: at, coordinate: coordinate, isHeld: isHeld))
    }

    /// Fixes from this time on were withdrawn, as far as they came after the last one kept; better ones for the same
    /// times follow.
    mutating func withdrawn(from time: UTCTime, after kept: UTCTime?) {
        while let last = entries.last, last.time >= time, kept.map({ last.time > $0 }) ?? true { entries.removeLast() }
    }
}
