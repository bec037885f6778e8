import WaypostCore

/// Script → truth → noise → NMEA, one epoch at a time.
///
/// Motion and noise draw from generators of their own, so the same seed gives the same drive under every preset.
package struct SimulatedDrive: Sendable {
    package struct Settings: Sendable {
        package var seed: UInt64
        /// nil = derived from `seed`.
        package var noiseSeed: UInt64?
        package var preset: NoisePreset
        /// UTC of the first epoch.
        package var start: UTCTime
        package var origin: Coordinate
        /// Milliseconds between epochs, a multiple of 10. The default is 1000.
        package var period: Int
        package var sentences: NMEAWriter.Sentences

        package init(
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
        package static let defaultStart = UTCTime(milliseconds: 1_772_434_800_000)
        /// 52.52 N, 13.405 E.
        package static let defaultOrigin = Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_050_000)
    }

    package let settings: Settings
    package let truth: DriveTruth
    private let plane: LocalPlane
    private let writer: NMEAWriter
    private var receiver: NoisyReceiver
    private var index = 0

    package init(_ scenario: Scenario, settings: Settings) {
        self.init(along: Self.truth(of: scenario, settings: settings), settings: settings)
    }

    /// Another receiver in the same vehicle: the truth of a drive costs more than its noise.
    /// - Parameter truth: made with the seed, origin and period of `settings`.
    package init(along truth: DriveTruth, settings: Settings) {
        self.settings = settings
        self.truth = truth
        plane = LocalPlane(origin: settings.origin)
        writer = NMEAWriter(sentences: settings.sentences)
        receiver = NoisyReceiver(
            preset: settings.preset, seed: settings.noiseSeed ?? ~settings.seed, period: settings.period)
    }

    /// Where the vehicle goes, whatever the receiver makes of it.
    package static func truth(of scenario: Scenario, settings: Settings) -> DriveTruth {
        var motion = SplitMix64(seed: settings.seed)
        let legs = scenario.legs(&motion)
        let heading = motion.uniform(0...360)
        return DriveTruth(following: legs, from: settings.origin, heading: heading, period: settings.period)
    }

    /// The bytes of the next epoch: empty while the receiver is off, nil at the end of the drive.
    package mutating func nextEpoch() -> [UInt8]? {
        guard index < truth.samples.count else { return nil }
        let sample = truth.samples[index]
        index += 1
        let time = settings.start + .milliseconds(sample.elapsed)
        return writer.epoch(receiver.measured(sample), at: time, on: plane)
    }

    /// The whole log.
    package mutating func allBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        while let epoch = nextEpoch() { bytes += epoch }
        return bytes
    }
}
