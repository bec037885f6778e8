/// Dimension of a solution (NMEA GSA field 2).
public enum FixMode: Int, Sendable, Codable, Comparable {
    case none = 1
    case twoD = 2
    case threeD = 3

    public static func < (lhs: FixMode, rhs: FixMode) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// How a solution was reached (NMEA 0183 GGA field 6).
public enum FixQuality: Int, Sendable, Codable {
    case none = 0
    case gps = 1
    /// Differential or satellite-based augmentation.
    case dgps = 2
    case pps = 3
    /// RTK with fixed integers.
    case rtk = 4
    case rtkFloat = 5
    case deadReckoning = 6
    case manual = 7
    case simulated = 8

    /// The word on the wire (`gps`, `dgps`, `pps`, `rtk`, `float`, `dr`, `manual`, `simulated`); nil for none.
    public var word: String? {
        switch self {
        case .none: nil
        case .gps: "gps"
        case .dgps: "dgps"
        case .pps: "pps"
        case .rtk: "rtk"
        case .rtkFloat: "float"
        case .deadReckoning: "dr"
        case .manual: "manual"
        case .simulated: "simulated"
        }
    }
}

/// One solution of the receiver: all sentences of one epoch together. nil means not reported.
public struct Fix: Hashable, Sendable {
    /// UTC of the measurement. nil = the receiver has sent no date yet (*dateless*): shown, never recorded.
    public var time: UTCTime?
    /// Milliseconds since UTC midnight, 0…86 400 999 (a leap second is 86 400 000…).
    public var timeOfDay: Int
    /// Arrival of the first byte of the epoch.
    public var at: EventTime
    public var coordinate: Coordinate
    /// Metres above mean sea level.
    public var altitudeMSL: Double?
    /// Metres above the WGS 84 ellipsoid.
    public var altitudeHAE: Double?
    /// Metres, DRMS (contains 63–68 % of positions). nil when unknown, never 0.
    public var horizontalAccuracy: Double?
    /// Metres per second over ground.
    public var speed: Double?
    /// Degrees true over ground, 0…360.
    public var course: Double?
    public var hdop: Double?
    public var satellitesUsed: Int?
    public var mode: FixMode
    public var quality: FixQuality
    /// The date was moved by whole weeks.
    public var rollover: Bool

    public init(
        time: UTCTime?, timeOfDay: Int, at: EventTime, coordinate: Coordinate, altitudeMSL: Double? = nil,
        altitudeHAE: Double? = nil, horizontalAccuracy: Double? = nil, speed: Double? = nil, course: Double? = nil,
        hdop: Double? = nil, satellitesUsed: Int? = nil, mode: FixMode = .twoD, quality: FixQuality = .gps,
        rollover: Bool = false
    ) {
        self.time = time
        self.timeOfDay = timeOfDay
        self.at = at
        self.coordinate = coordinate
        self.altitudeMSL = altitudeMSL
        self.altitudeHAE = altitudeHAE
        self.horizontalAccuracy = horizontalAccuracy
        self.speed = speed
        self.course = course
        self.hdop = hdop
        self.satellitesUsed = satellitesUsed
        self.mode = mode
        self.quality = quality
        self.rollover = rollover
    }
}

/// Why an epoch holds no fix.
public enum NoFixReason: String, Sendable, Codable {
    /// The receiver says that it has no solution (RMC V, GGA quality 0, GSA mode 1, mode letter N).
    case void
    /// Valid by its flags, but without a readable position.
    case noPosition
}

/// An epoch without a usable position: news, not an error.
public struct VoidEpoch: Hashable, Sendable {
    /// UTC by the date known before this epoch (a void sentence's own date is never believed); nil without one.
    public var time: UTCTime?
    /// Milliseconds since UTC midnight; nil when the epoch has no time.
    public var timeOfDay: Int?
    /// Arrival of the first byte of the epoch.
    public var at: EventTime
    public var reason: NoFixReason
    public var quality: FixQuality
    public var satellitesUsed: Int?
    /// As the receiver listed them last; nil when it never did, and where nobody asked for every list.
    public var satellitesInView: Int?
    public var hdop: Double?

    public init(
        time: UTCTime?, timeOfDay: Int?, at: EventTime, reason: NoFixReason, quality: FixQuality = .none,
        satellitesUsed: Int? = nil, satellitesInView: Int? = nil, hdop: Double? = nil
    ) {
        self.time = time
        self.timeOfDay = timeOfDay
        self.at = at
        self.reason = reason
        self.quality = quality
        self.satellitesUsed = satellitesUsed
        self.satellitesInView = satellitesInView
        self.hdop = hdop
    }
}

/// The result of an epoch.
public enum Epoch: Hashable, Sendable {
    case fix(Fix)
    case void(VoidEpoch)
}
