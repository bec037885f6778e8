import WaypostCore

/// How far a drive was from the line that was kept of it: every fix that was believed while the asset moved, against the straight
/// line between the locations before and after it, at its own time.
///
/// It shares nothing with what chooses them, nor with what holds the position of an asset that stands.
package struct LineScore: Hashable, Sendable {
    /// Metres: the fix that is farthest from the line; nil = no fix lies between two locations.
    package private(set) var worst: Double?
    /// Metres by which a fix is beyond the bound and its own accuracy, at most; negative = none is.
    package private(set) var excess: Double?
    /// Milliseconds since the start of the drive: of the fix with this excess.
    package private(set) var excessAt: Int?

    /// Metres, as the settings ask for by default.
    static let bound = 5.0
    /// Milliseconds that are no time.
    private static let instant = 10
    /// Metres per second from which on an asset moves.
    static let speedMin = 1.0
    /// Metres of a fix that says nothing of its own.
    static let accuracyUnknown = 10.0

    init() {}

    static func += (sum: inout LineScore, more: LineScore) {
        if let other = more.worst { sum.worst = max(sum.worst ?? other, other) }
        guard let other = more.excess, other > sum.excess ?? -.infinity else { return }
        sum.excess = other
        sum.excessAt = more.excessAt
    }

    /// - Parameters:
    ///   - seen: believed fixes, rising in time.
    ///   - points: what was kept.
    init(of seen: [DriveRecord.Seen], along points: [DriveRecord.Point]) {
        let kept = points.sorted { $0.time < $1.time }
        var next = 0
        for fix in seen {
            while next < kept.count, kept[next].time <= fix.time { next += 1 }
            guard next > 0, next < kept.count else { continue }
            let (before, after) = (kept[next - 1], kept[next])
            let share = Double(fix.time - before.time) / Double(after.time - before.time)
            let there = before.place + (after.place - before.place) * share
            var distance = (fix.place - there).length
            // A departure that follows a stop in the same fix is dated a moment after it.
            if after.time - fix.time <= Self.instant { distance = min(distance, (fix.place - after.place).length) }
            worst = max(worst ?? 0, distance)
            let beyond = distance - Self.bound - (fix.accuracy ?? Self.accuracyUnknown)
            guard beyond > excess ?? -.infinity else { continue }
            excess = beyond
            excessAt = fix.time
        }
    }
}
