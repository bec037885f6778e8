import Configuration
import Sensors
import WaypostCore
import WaypostNMEA

extension SourceConfig {
    /// - Parameter memory: of an earlier run.
    func makeSource(memory: SourceMemory?) -> any FixSource {
        switch memory.map(remembering) ?? self {
        case .serial(var settings):
            settings.rememberedSpeed = memory?.baud.flatMap(LineSpeed.init(baud:))
            return SerialSource(settings: settings)
        case .gpsd(let settings): return GPSDSource(settings: settings, jitter: { Double.random(in: 0..<1) })
        case .file(let settings): return FileSource(settings: settings, startAt: memory?.position)
        case .tcp(let settings): return TCPSource(settings: settings, jitter: { Double.random(in: 0..<1) })
        case .udp(let settings): return UDPSource(settings: settings)
        }
    }

    /// With the latest time at which the receiver is known to have been used. A repair counts for the receiver that it was
    /// confirmed for.
    func remembering(_ memory: SourceMemory) -> SourceConfig {
        let repaired = memory.receiver == receiver ? memory.repaired : nil
        let known = [memory.trusted, repaired].compactMap(\.self).max()
        switch self {
        case .serial(var settings):
            settings.decoder.latestKnownTime = known
            return .serial(settings)
        case .gpsd(var settings):
            settings.decoder.latestKnownTime = known
            return .gpsd(settings)
        case .file(var settings):
            settings.decoder.latestKnownTime = known
            return .file(settings)
        case .tcp(var settings):
            settings.decoder.latestKnownTime = known
            return .tcp(settings)
        case .udp(var settings):
            settings.decoder.latestKnownTime = known
            return .udp(settings)
        }
    }

    /// What distinguishes the receiver from others that may be configured after it.
    var receiver: String {
        switch self {
        case .serial(let settings): "serial \(settings.device)"
        case .gpsd(let settings): "gpsd \(settings.host) \(settings.port) \(settings.device ?? "")"
        case .file(let settings): "file \(settings.path)"
        case .tcp(let settings): "tcp \(settings.host) \(settings.port)"
        case .udp(let settings): "udp \(settings.port) \(settings.from ?? "")"
        }
    }
}
