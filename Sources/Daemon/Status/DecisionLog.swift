import WaypostCore
import WaypostTracking

/// The last decisions of tracking, for people who ask why. Fixes and heartbeats are none.
struct DecisionLog {
    struct Entry: Equatable {
        /// From 1 on.
        var number: Int
        /// Boot clock.
        var at: EventTime
        /// UTC; nil before the first dated fix.
        var time: UTCTime?
        var kind: String
        var what: String
        var reason: String?
        var motion: MotionChange?

        /// Of several trackables each has a record of its own.
        func isSame(_ other: Entry) -> Bool {
            kind == other.kind && what == other.what && reason == other.reason && at == other.at
        }
    }

    static let countMax = 20
    /// Names of fences may be long.
    private static let bytesMax = 200

    /// The oldest first.
    private(set) var entries: [Entry] = []

    /// - Parameter decided: UTC of the decision.
    mutating func note(_ effect: Effect, decided: @autoclosure () -> UTCTime?, at now: EventTime) {
        guard let (kind, what, reason) = Self.words(effect) else { return }
        let shortened = what.cut(toBytes: Self.bytesMax)
        var entry = Entry(
            number: (entries.last?.number ?? 0) + 1, at: now, time: decided(), kind: kind, what: shortened,
            reason: reason)
        if case .announceMotion(let change) = effect { entry.motion = change }
        if let last = entries.last, last.isSame(entry) { return }
        if entries.count >= Self.countMax { entries.removeFirst() }
        entries.append(entry)
    }

    /// The oldest first.
    /// - Parameter number: only later ones; nil, or the number of another process = all.
    func entries(after number: Int?) -> ArraySlice<Entry> {
        guard let number, let last = entries.last, number <= last.number else { return entries[...] }
        return entries.suffix(last.number - max(0, number))
    }

    /// nil = no decision, or one that another effect shows.
    private static func words(_ effect: Effect) -> (kind: String, what: String, reason: String?)? {
        switch effect {
        case .announceMotion(let change):
            let what = change.moving ? "departed" : change.trip == nil ? "parked where first seen" : "parked"
            return ("motion", what, change.reason.rawValue)
        case .record(let location): return words(location)
        case .setReceiver(let resolution):
            return ("receiver", "asked for \(resolution.words)", nil)
        case .sleepReceiver(let until): return ("receiver", until == nil ? "released" : "put to sleep", nil)
        case .wakeReceiver: return ("receiver", "woken", nil)
        case .count(.jump):
            return ("clock", "far positions led on, or agreed for three minutes: the asset is there now", nil)
        case .count(.clockStep): return ("clock", "the receiver's clock was set back; following it", nil)
        case .announceRule(let rule, let reason):
            return ("rule", "locations are kept by \(rule.rawValue)", reason.words)
        case .announceMove(_, let metres):
            let what = "parked \(InWords.distance(metres)) away; nobody saw the way"
            return ("motion", what, RecordReason.moved.rawValue)
        case .announceHalt, .announceGap, .announceLowBattery, .announceResolution, .count: return nil
        }
    }

    private static func words(_ location: Location) -> (kind: String, what: String, reason: String?)? {
        switch location.event {
        case .geofence:
            guard let crossing = location.geofence else { return nil }
            return ("geofence", "\(crossing.action.rawValue) \(crossing.name ?? crossing.id)", location.reason)
        case .gap:
            // After a restart it is noted together with its end.
            return ("gap", "no fix since \(InWords.stamp(location.time)) UTC", location.reason)
        case .power: return ("power", location.reason ?? "changed", nil)
        case .panic: return ("panic", "by request", nil)
        case .none: return location.reason == SegmentOpening.gap.rawValue ? ("gap", "ends here", nil) : nil
        case .requested: return ("requested", "a fix from afar", location.reason)
        case .settings: return ("settings", "changed from afar", location.reason)
        case .motionchange, .heartbeat, .trip, .beacon: return nil
        }
    }
}
