import Configuration
import Glibc
import Sensors

extension SourceConfig {
    /// What a look at the receiver shows, for people.
    struct Look: Sendable {
        /// What is there; nil = nobody was asked, or nothing answers.
        var found: String?
        var problems: [String] = []
    }

    /// Asks gpsd, where it is the source or may have the line of the source: ten seconds at most. Everything else shows
    /// when the daemon opens it.
    func look() -> Look {
        switch self {
        case .gpsd(let settings):
            let finding = settings.inquire()
            // These names come from whoever answers on the port.
            return Look(found: finding.words, problems: finding.problem.map { [$0] } ?? [])
        case .serial(let settings): return Look(problems: missing(settings.device) + rivals(of: settings))
        case .file(let settings) where settings.path != "-": return Look(problems: missing(.path(settings.path)))
        case .file, .tcp, .udp: return Look()
        }
    }

    private func missing(_ name: SerialName) -> [String] {
        switch name {
        case .path(let path):
            guard access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR else { return [] }
            if case .file = self { return ["\(path) is not there"] }
            return ["\(path) is not there: is the receiver plugged in? ls -l /dev/serial/by-id, or sudo waypost init"]
        case .usb: return name.absence.map { [$0] } ?? []
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
