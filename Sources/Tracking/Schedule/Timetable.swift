import WaypostCore

/// Which time windows there are, and when each is open in the local time of one place.
///
/// Local time decides, also on the days on which clocks change: hours that are skipped are left out, and hours that
/// occur twice are open twice.
public struct Timetable: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        var window: TimeWindow
        var hours: WeeklyHours
    }

    var zone: TimeZoneRules
    /// The schedule of the tracker first, then in the order in which they were added.
    private(set) var entries: [Entry] = []

    /// Without any window.
    public init() { zone = .utc }
    package init(zone: TimeZoneRules) { self.zone = zone }

    /// A window that is there already gets other hours.
    public mutating func set(_ window: TimeWindow, _ hours: WeeklyHours) {
        entries.removeAll { $0.window == window }
        entries.insert(
            Entry(window: window, hours: hours), at: window == .tracking ? entries.startIndex : entries.endIndex)
    }

    /// Hours given as text; a text that is not valid stays closed.
    public mutating func set(hours text: String) {
        if let hours = try? WeeklyHours(parsing: text) { set(.hours(text), hours) }
    }

    /// Whether hours include a time, and when that changes; nil = never.
    func state(of hours: WeeklyHours, at time: UTCTime) -> (isOpen: Bool, until: UTCTime?) {
        let start = time.secondsSince1970
        var now = start
        let isOpen = hours.isOpen(atLocal: now + zone.offset(at: now).seconds)
        // Each round goes on to the next change of the clocks; a zone has a few in a year.
        for _ in 0..<64 {
            let (offset, until) = zone.offset(at: now)
            guard hours.isOpen(atLocal: now + offset) == isOpen else { return (isOpen, UTCTime(secondsSince1970: now)) }
            guard let ahead = hours.secondsToChange(fromLocal: now + offset) else { return (isOpen, nil) }
            guard let until, until <= now + ahead else { return (isOpen, UTCTime(secondsSince1970: now + ahead)) }
            now = until
        }
        return (isOpen, nil)
    }

    /// Whether the tracker tracks at a time, and when that changes; nil = there is no schedule.
    public func tracking(at time: UTCTime) -> (isOpen: Bool, until: UTCTime?)? {
        entries.first { $0.window == .tracking }.map { state(of: $0.hours, at: time) }
    }
}

extension UTCTime {
    /// Whole seconds, rounded down, within what a calendar can handle.
    fileprivate var secondsSince1970: Int64 {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return max(-100_000_000_000, min(rest < 0 ? seconds - 1 : seconds, 1_000_000_000_000))
    }

    fileprivate init(secondsSince1970 seconds: Int64) { self.init(milliseconds: seconds * 1000) }
}
