import WaypostCore

extension NMEADecoder {
    public struct Settings: Hashable, Sendable {
        /// The bytes come from a receiver as it sends them: an epoch is closed by 300 ms of silence, and by the sentence
        /// learnt to be the last of a cycle. The default is false: only another time of day and the end close it.
        public var live: Bool
        /// Metres of range error by quality, for receivers that report nothing better than HDOP.
        public var rangeErrors: UserRangeErrors
        /// Read RMC, GGA, GNS and GLL of this talker only (two letters), for two receivers behind one multiplexer. The
        /// default is nil: any talker.
        public var talker: String?
        /// Longest sentence in bytes from `$` to the last hex digit; at most 256, longer ones are dropped. The default is
        /// 128: the standard's 82 is exceeded by many receivers (RTK positions, vendor sentences).
        public var maximumLength: Int
        /// Accept known sentences without a checksum. The default is false.
        public var allowMissingChecksum: Bool
        public var rollover: Rollover
        /// The latest time at which the receiver is known to have been used: a repair leads to three years after it at most.
        public var latestKnownTime: UTCTime?
        /// Read each list of satellites that the receiver sends instead of one a minute, and tell with a void epoch how many
        /// were in view. It takes longer, and an epoch then depends on what came long before it.
        package var readsEverySurvey = false

        public init(
            live: Bool = false, rangeErrors: UserRangeErrors = .init(), talker: String? = nil,
            maximumLength: Int = 128, allowMissingChecksum: Bool = false, rollover: Rollover = .off
        ) {
            self.live = live
            self.rangeErrors = rangeErrors
            self.talker = talker
            self.maximumLength = maximumLength
            self.allowMissingChecksum = allowMissingChecksum
            self.rollover = rollover
        }
    }

    /// What to do with dates of receivers that are older than a rollover of the GPS week number (1999-08-22,
    /// 2019-04-07), and of those that count weeks wrongly in another way.
    public enum Rollover: Hashable, Sendable {
        /// Accept every date: old logs are legitimately old.
        case off
        /// With ``NMEADecoder/hostTime`` a date that differs from it by whole weeks is moved by them, and one that differs
        /// otherwise is not believed. Without it a date before the build date is moved forward by 1024 weeks until it is not,
        /// if that is at most three years after the build and ``Settings/latestKnownTime``. Dates that receivers show before
        /// they know the date, and those more than 15 years ahead, are none. What was moved is flagged.
        case repair(buildDate: CivilDate)
    }
}

/// User equivalent range error by quality, 1 sigma in metres: HDOP times this is the horizontal accuracy (DRMS).
public struct UserRangeErrors: Hashable, Sendable {
    public var gps: Double
    public var dgps: Double
    public var pps: Double
    public var rtk: Double
    public var rtkFloat: Double
    /// At the last fix of a satellite quality.
    public var deadReckoning: Double
    /// Metres for each second since that fix.
    public var deadReckoningGrowth: Double

    public init(
        gps: Double = 5, dgps: Double = 2.5, pps: Double = 2.5, rtk: Double = 0.05, rtkFloat: Double = 0.3,
        deadReckoning: Double = 10, deadReckoningGrowth: Double = 1
    ) {
        self.gps = gps
        self.dgps = dgps
        self.pps = pps
        self.rtk = rtk
        self.rtkFloat = rtkFloat
        self.deadReckoning = deadReckoning
        self.deadReckoningGrowth = deadReckoningGrowth
    }

    /// nil where HDOP means nothing: no fix, manual, simulated, and dead reckoning from an unknown start.
    ///
    /// - Parameter secondsAdrift: seconds since the last fix of quality 1…5; nil without one.
    public func metres(for quality: FixQuality, secondsAdrift: Double?) -> Double? {
        switch quality {
        case .gps: gps
        case .dgps: dgps
        case .pps: pps
        case .rtk: rtk
        case .rtkFloat: rtkFloat
        case .deadReckoning: secondsAdrift.map { deadReckoning + deadReckoningGrowth * max(0, $0) }
        case .none, .manual, .simulated: nil
        }
    }
}
