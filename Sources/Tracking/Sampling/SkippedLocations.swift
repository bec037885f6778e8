import WaypostCore

/// Fixes of one trackable that were not sent by themselves and ride along with its next message.
///
/// Ordered by fix time, equal times by sequence number. Beyond the limit the oldest by fix time are dropped. They are removed
/// when the message that carried them was acknowledged, not when it was sent: what was added in between stays.
public struct SkippedLocations<Element: Sendable>: Sendable {
    public struct Entry: Sendable {
        /// Time of the fix.
        public var time: UTCTime
        /// Number in the queue, unique within a trackable.
        public var sequence: Int64
        public var element: Element
    }

    /// Oldest first.
    public private(set) var entries: [Entry] = []
    public let countMax: Int

    /// - Parameter countMax: at least 1. The default is 60, as in Ably Asset Tracking.
    public init(countMax: Int = 60) { self.countMax = max(1, countMax) }
    public var count: Int { entries.count }
    public var isEmpty: Bool { entries.isEmpty }
    /// Oldest first.
    public var elements: [Element] { entries.map(\.element) }

    /// Adds a fix at its place in time; the oldest one is dropped when there are too many, which may be this one.
    public mutating func add(_ element: Element, time: UTCTime, sequence: Int64) {
        var index = entries.count
        while index > 0, (time, sequence) < (entries[index - 1].time, entries[index - 1].sequence) { index -= 1 }
        if entries.count >= countMax {
            if index == 0 { return }
            entries.removeFirst()
            index -= 1
        }
        entries.insert(Entry(time: time, sequence: sequence, element: element), at: index)
    }

    /// The message that carried these was acknowledged.
    public mutating func acknowledged(_ sequences: Set<Int64>) {
        entries.removeAll { sequences.contains($0.sequence) }
    }

    public mutating func removeAll() { entries.removeAll(keepingCapacity: true) }
}
