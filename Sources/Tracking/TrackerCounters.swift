import Positioning

/// Counts since the start of the process.
public struct TrackerCounters: Hashable, Sendable {
    /// Fixes that were believed.
    public internal(set) var admitted = 0
    private var rejections = [Int](repeating: 0, count: FixFilter.Rejection.allCases.count)
    private var recordsByEvent = [Int](repeating: 0, count: LocationEvent.allCases.count)
    /// Departures announced.
    public internal(set) var trips = 0
    /// Stops announced: ends of trips. Where an asset stands when it is first seen it made no stop.
    public internal(set) var stops = 0
    /// Halts that ended without a stop.
    public internal(set) var halts = 0
    /// Silences longer than `gapAfter`, recorded or not.
    public internal(set) var gaps = 0
    /// Places that were believed after three far fixes.
    public internal(set) var jumps = 0
    /// Clocks of the receiver that were believed after ten older times.
    public internal(set) var clockSteps = 0
    /// Panics before there was any dated fix.
    public internal(set) var panicsRefused = 0
    /// Subscribers beyond the number that a trackable may have.
    public internal(set) var subscribersRefused = 0
    /// Epochs without a fix.
    public internal(set) var voidEpochs = 0

    public init() {}

    public func rejected(_ reason: FixFilter.Rejection) -> Int { rejections[Self.index(reason)] }
    public var rejected: Int { rejections.reduce(0, +) }
    public func records(_ event: LocationEvent) -> Int { recordsByEvent[Self.index(event)] }
    public var records: Int { recordsByEvent.reduce(0, +) }

    mutating func countRejection(_ reason: FixFilter.Rejection) { rejections[Self.index(reason)] += 1 }
    mutating func countRecord(_ event: LocationEvent) { recordsByEvent[Self.index(event)] += 1 }

    private static func index(_ reason: FixFilter.Rejection) -> Int {
        switch reason {
        case .position: 0
        case .simulated: 1
        case .dateless: 2
        case .duplicate: 3
        case .age: 4
        case .accuracy: 5
        case .impliedSpeed: 6
        }
    }

    private static func index(_ event: LocationEvent) -> Int {
        switch event {
        case .none: 0
        case .motionchange: 1
        case .geofence: 2
        case .heartbeat: 3
        case .power: 4
        case .gap: 5
        case .trip: 6
        case .panic: 7
        }
    }
}
