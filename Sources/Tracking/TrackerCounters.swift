import WaypostCore

/// Counts since the start of the process.
public struct TrackerCounters: Hashable, Sendable {
    /// Fixes that were believed.
    public internal(set) var admitted = 0
    private var rejections: [FixFilter.Rejection: Int] = [:]
    /// Locations recorded, whatever their event.
    public private(set) var records = 0
    /// Those of geofence events.
    public private(set) var crossings = 0
    /// Departures announced.
    public private(set) var trips = 0
    /// Stops announced: ends of trips. Where an asset stands when it is first seen it made no stop.
    public private(set) var stops = 0
    /// Halts that ended without a stop.
    public private(set) var halts = 0
    /// Silences longer than `gapAfter`, recorded or not.
    public internal(set) var gaps = 0
    /// Places that were believed after three far fixes.
    public private(set) var jumps = 0
    /// Clocks of the receiver that were believed after ten older times.
    public private(set) var clockSteps = 0
    /// Panics before there was any dated fix.
    public private(set) var panicsRefused = 0
    /// Subscribers beyond the number that a trackable may have.
    public private(set) var subscribersRefused = 0
    /// Epochs without a fix.
    public internal(set) var voidEpochs = 0

    public init() {}
    public func rejected(_ reason: FixFilter.Rejection) -> Int { rejections[reason] ?? 0 }
    public var rejected: Int { rejections.values.reduce(0, +) }

    mutating func count(_ effect: Effect) {
        switch effect {
        case .record(let location):
            records += 1
            if location.event == .geofence { crossings += 1 }
        case .announceMotion(let change):
            if change.moving { trips += 1 } else if change.trip != nil { stops += 1 }
        case .announceHalt: halts += 1
        case .count(.rejected(let reason)): rejections[reason, default: 0] += 1
        case .count(.jump): jumps += 1
        case .count(.clockStep): clockSteps += 1
        case .count(.panicRefused): panicsRefused += 1
        case .count(.subscriberRefused): subscribersRefused += 1
        case .announceGap, .announceMove, .announceLowBattery, .announceResolution, .announceRule, .setReceiver,
            .sleepReceiver,
            .wakeReceiver:
            break
        }
    }
}
