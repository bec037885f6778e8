import NMEA
import Positioning

/// How a serial line is read.
public struct SerialSettings: Sendable {
    /// How the speed is chosen.
    public enum Speed: Hashable, Sendable {
        case fixed(LineSpeed)
        /// Try one after another until three sentences with good checksums arrive.
        case auto
    }

    public var device: SerialName
    /// The default is `auto`.
    public var speed: Speed
    /// What ``SerialSource/foundSpeed`` was at the last run: tried first.
    public var rememberedSpeed: LineSpeed?
    /// Time without a sentence after which the line is silent; three intervals of the receiver where that is longer. The
    /// default is 5 s.
    public var staleness: Duration
    public var decoder: NMEADecoder.Settings
    /// Which commands the receiver understands. The default is `none`.
    public var receiver: ReceiverProfile
    /// Where a gpsd is looked for that may hold the line.
    public var gpsd = GPSDInquiry.Host()

    public init(
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
