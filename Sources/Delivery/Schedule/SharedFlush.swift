import WaypostCore

/// A flush that a whole fleet may have at the same moment, and that each device therefore makes at a time of its own.
enum SharedFlush: Hashable, Sendable {
    case none
    /// Wanted since then, and nothing waited: the next row goes out at the next turn of the device.
    case ofNextRow(since: EventTime)
    case due(EventTime)

    /// When what waits goes out; nil = that is not known, or nothing is wanted.
    var due: EventTime? { if case .due(let instant) = self { instant } else { nil } }
}
