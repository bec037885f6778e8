import NMEA
import Sensors

extension SourceConfig {
    /// How its bytes are decoded.
    public var decoding: NMEADecoder.Settings {
        switch self {
        case .serial(let settings): settings.decoder
        case .file(let settings): settings.decoder
        case .tcp(let settings): settings.decoder
        case .udp(let settings): settings.decoder
        }
    }

    /// - Parameter startAt: where a file was read to before.
    func makeSource(startAt: FilePosition?) -> any FixSource {
        switch self {
        case .serial(let settings): SerialSource(settings: settings)
        case .file(let settings): FileSource(settings: settings, startAt: startAt)
        case .tcp(let settings): TCPSource(settings: settings, jitter: { Double.random(in: 0..<1) })
        case .udp(let settings): UDPSource(settings: settings)
        }
    }
}
