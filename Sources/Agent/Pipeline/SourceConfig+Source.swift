import Configuration
import Sensors

extension SourceConfig {
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
