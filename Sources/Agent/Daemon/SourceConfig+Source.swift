import NMEA
import Sensors
import Systemd

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

    /// What a look at the receiver shows, for people.
    public struct Look: Sendable {
        /// What is there; nil = nobody was asked, or nothing answers.
        public var found: String?
        public var problems: [String] = []
    }

    /// Asks gpsd, where it is the source or may have the line of the source: three seconds at most. Everything else shows
    /// when the daemon opens it.
    public func look() -> Look {
        switch self {
        case .gpsd(let settings):
            let finding = settings.inquire()
            // What it calls itself and its devices is for who answers on the port to say.
            return Look(found: finding.words, problems: finding.problem.map { [$0] } ?? [])
        case .serial(let settings): return Look(problems: rivals(of: settings))
        case .file, .tcp, .udp: return Look()
        }
    }

    /// Who else on this host reads the receiver, or may at any time.
    private func rivals(of settings: SerialSettings) -> [String] {
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
