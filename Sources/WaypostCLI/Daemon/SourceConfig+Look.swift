import Configuration
import Sensors

extension SourceConfig {
    /// What a look at the receiver shows, for people.
    struct Look: Sendable {
        /// What is there; nil = nobody was asked, or nothing answers.
        var found: String?
        var problems: [String] = []
    }

    /// Asks gpsd, where it is the source or may have the line of the source: three seconds at most. Everything else shows
    /// when the daemon opens it.
    func look() -> Look {
        switch self {
        case .gpsd(let settings):
            let finding = settings.inquire()
            // These names come from whoever answers on the port.
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
}
