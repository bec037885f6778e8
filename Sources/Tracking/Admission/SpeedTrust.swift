import WaypostCore

/// Whether the speed that a receiver reports is one: some report 0 wherever they go, or while it lags behind.
struct SpeedTrust: Sendable {
    private enum Verdict {
        /// It has been next to 0 all the time.
        case unproven
        /// It has been another.
        case proven
        /// It was next to 0 all the time while the position moved on.
        case stuck
    }

    /// m/s; a receiver that says less says that it stands.
    private static let speedMin = 0.1
    /// Seconds of fixes that move on, after which a speed of 0 is none.
    private static let span = 20.0
    /// At least so many fixes, and seconds between two of the trail.
    private static let fixesMin = 4
    private static let spacing = 0.9
    private static let countMax = 32

    private var verdict = Verdict.unproven
    private var trail = RingBuffer<(at: EventTime, coordinate: Coordinate)>(countMax: countMax)

    /// The speed is next to 0, and means nothing.
    var isStuck: Bool { verdict == .stuck }
    /// No fix has had another speed.
    private var isUnproven: Bool { verdict == .unproven && !trail.isEmpty }

    /// Another source, or the same one anew.
    mutating func begin() { self = SpeedTrust() }

    /// - Returns: whether this fix shows that the speed means nothing.
    mutating func observe(_ fix: Fix, at: EventTime) -> Bool {
        guard verdict != .proven, let speed = fix.speed else { return false }
        guard speed < Self.speedMin else {
            verdict = .proven
            trail.removeAll()
            return false
        }
        guard verdict == .unproven else { return false }
        if let last = trail.last {
            let seconds = at.seconds(since: last.at)
            if seconds < Self.spacing { return false }
            // Nothing is known of the way.
            if seconds > Self.span { trail.removeAll() }
        }
        trail.append((at, fix.coordinate))
        while trail.count > Self.fixesMin, at.seconds(since: trail[1].at) >= Self.span { trail.removeFirst() }
        guard at.seconds(since: trail[0].at) >= Self.span, movesOn() else { return false }
        verdict = .stuck
        return true
    }

    /// The asset has left by its positions alone.
    /// - Returns: whether the speed means nothing therefore.
    mutating func departed() -> Bool {
        guard isUnproven, movesOn() else { return false }
        verdict = .stuck
        return true
    }

    private func movesOn() -> Bool {
        guard trail.count >= Self.fixesMin else { return false }
        var way = Advance(from: trail[0].coordinate)
        for index in 1..<trail.count {
            let (before, now) = (trail[index - 1], trail[index])
            let step = before.coordinate.distance(to: now.coordinate)
            guard step <= Reach.speedMax * now.at.seconds(since: before.at) else { return false }
            way.add(now.coordinate)
        }
        return way.isWay(accuracy: 0)
    }
}
