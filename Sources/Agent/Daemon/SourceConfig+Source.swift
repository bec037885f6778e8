import NMEA
import Sensors

extension SourceConfig {
    /// How its bytes are decoded.
    public var decoding: NMEADecoder.Settings {
        switch self {
        case .serial(let settings): settings.decoder
        case .gpsd(let settings): settings.decoder
        case .file(let settings): settings.decoder
        case .tcp(let settings): settings.decoder
        case .udp(let settings): settings.decoder
        }
    }

    var isFile: Bool {
        if case .file = self { true } else { false }
    }

    /// Who else on this host reads the receiver, or may at any time, for people; asks gpsd, which takes a second at most.
    public var rivals: [String] {
        guard case .serial(let settings) = self else { return [] }
        let advice = "read it with kind = \"gpsd\", or set USBAUTO=false in /etc/default/gpsd"
        if settings.isHeldByGPSD { return ["gpsd has \(settings.device): \(advice)"] }
        guard settings.gpsd.isSocketActivated else { return [] }
        return ["gpsd.socket is active, and gpsd may open \(settings.device) too: \(advice)"]
    }

    /// - Parameter memory: of an earlier run.
    func makeSource(memory: SourceMemory?) -> any FixSource {
        switch self {
        case .serial(var settings):
            settings.rememberedSpeed = memory?.baud.flatMap(LineSpeed.init(baud:))
            return SerialSource(settings: settings)
        case .gpsd(let settings): return GPSDSource(settings: settings, jitter: { Double.random(in: 0..<1) })
        case .file(let settings): return FileSource(settings: settings, startAt: memory?.position)
        case .tcp(let settings): return TCPSource(settings: settings, jitter: { Double.random(in: 0..<1) })
        case .udp(let settings): return UDPSource(settings: settings)
        }
    }
}
