import WaypostCore
import WaypostNMEA

/// How a serial line is read.
package struct SerialSettings: Sendable {
    /// How the speed is chosen.
    package enum Speed: Hashable, Sendable {
        case fixed(LineSpeed)
        /// Try one after another until three sentences with good checksums arrive.
        case auto
    }

    package var device: SerialName
    /// The default is `auto`.
    package var speed: Speed
    /// What ``SerialSource/foundSpeed`` was at the last run: tried first.
    package var rememberedSpeed: LineSpeed?
    /// Time without a sentence after which the line is silent; three intervals of the receiver where that is longer. The
    /// default is 5 s.
    package var staleness: Duration
    package var decoder: NMEADecoder.Settings
    /// Which commands the receiver understands. The default is `none`.
    package var receiver: ReceiverProfile
    /// Where a gpsd is looked for that may hold the line.
    package var gpsd = GPSDInquiry.Host()

    package init(
        device: SerialName, speed: Speed = .auto, rememberedSpeed: LineSpeed? = nil, staleness: Duration = .seconds(5),
        decoder: NMEADecoder.Settings = .init(), receiver: ReceiverProfile = .none
    ) {
        self.device = device
        self.speed = speed
        self.rememberedSpeed = rememberedSpeed
        self.staleness = staleness
        self.decoder = decoder
        self.receiver = receiver
    }
}
