import Sensors
import WaypostCore
import WaypostNMEA

/// Where the fixes come from.
package enum SourceConfig: Sendable {
    case serial(SerialSettings)
    case gpsd(GPSDSettings)
    case file(FileSettings)
    case tcp(TCPSettings)
    case udp(UDPSettings)

    /// How its bytes are decoded.
    package var decoding: NMEADecoder.Settings {
        switch self {
        case .serial(let settings): settings.decoder
        case .gpsd(let settings): settings.decoder
        case .file(let settings): settings.decoder
        case .tcp(let settings): settings.decoder
        case .udp(let settings): settings.decoder
        }
    }

    package var isFile: Bool {
        if case .file = self { true } else { false }
    }
}
