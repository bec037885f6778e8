import Positioning

/// Script → truth → noise → NMEA, one epoch at a time.
///
/// Motion and noise draw from generators of their own, so the same seed gives the same drive under every preset.
public struct SimulatedDrive: Sendable {
    public struct Settings: Sendable {
        public var seed: UInt64
        /// nil = derived from `seed`.
        public var noiseSeed: UInt64?
        public var preset: NoisePreset
        /// UTC of the first epoch.
        public var start: UTCTime
        public var origin: Coordinate
        /// Milliseconds between epochs, a multiple of 10. The default is 1000.
        public var period: Int
        public var sentences: NMEAWriter.Sentences

        public init(
            seed: UInt64, noiseSeed: UInt64? = nil, preset: NoisePreset = .street,
            start: UTCTime = Settings.defaultStart, origin: Coordinate = Settings.defaultOrigin, period: Int = 1000,
            sentences: NMEAWriter.Sentences = .standard
        ) {
            self.seed = seed
            self.noiseSeed = noiseSeed
            self.preset = preset
            self.start = start
            self.origin = origin
            self.period = period
            self.sentences = sentences
        }

        /// 2026-03-02T07:00:00Z, a Monday.
        public static let defaultStart = UTCTime(milliseconds: 1_772_434_800_000)
        /// 52.52 N, 13.405 E.
        public static let defaultOrigin = Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_050_000)
    }

    public let settings: Settings
    public let truth: DriveTruth
    private let plane: LocalPlane
    private let writer: NMEAWriter
    private var receiver: NoisyReceiver
    private var index = 0

    public init(_ scenario: Scenario, settings: Settings) {
        self.init(along: Self.truth(of: scenario, settings: settings), settings: settings)
    }

    /// Another receiver in the same vehicle: the truth of a drive costs more than its noise.
    /// - Parameter truth: made with the seed, origin and period of `settings`.
    public init(along truth: DriveTruth, settings: Settings) {
        self.settings = settings
        self.truth = truth
        plane = LocalPlane(origin: settings.origin)
        writer = NMEAWriter(sentences: settings.sentences)
        receiver = NoisyReceiver(
            preset: settings.preset, seed: settings.noiseSeed ?? ~settings.seed, period: settings.period)
    }

    /// Where the vehicle goes, whatever the receiver makes of it.
    public static func truth(of scenario: Scenario, settings: Settings) -> DriveTruth {
        var motion = SplitMix64(seed: settings.seed)
        let legs = scenario.legs(&motion)
        let heading = motion.uniform(0...360)
        return DriveTruth(following: legs, from: settings.origin, heading: heading, period: settings.period)
    }

    /// The bytes of the next epoch: empty while the receiver is off, nil at the end of the drive.
    public mutating func nextEpoch() -> [UInt8]? {
        guard index < truth.samples.count else { return nil }
        let sample = truth.samples[index]
        index += 1
        let time = settings.start + .milliseconds(sample.elapsed)
        return writer.epoch(receiver.measured(sample), at: time, on: plane)
    }

    /// The whole log.
    public mutating func allBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        while let epoch = nextEpoch() { bytes += epoch }
        return bytes
    }
}
