import Configuration
import WaypostControl
import WaypostCore

/// Settings from afar: check 28.
enum RemoteChecks {
    /// Of the periods of polling: a server that was silent for longer is not there.
    private static let periodsMax = 2.0
    private static let reasonsShown = 2

    static func settings(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        guard let remote = config.remote else { return .ok("none are allowed") }
        if let reach = evidence.settingsReach, let failure = reach.failure {
            return .degraded(
                "settings_url: \(failure.layer): \(failure.message)", DeliveryChecks.advice(reach, failure, evidence))
        }
        guard let running = evidence.status else { return evidence.noStatus }
        guard let status = running.remote else {
            return .degraded("the daemon runs without them: it was started before", evidence.restartDaemon)
        }
        let period = remote.isAsked ? remote.poll.inSeconds : nil
        return problem(status, evidence) ?? contact(status, running.uptime ?? 0, every: period, evidence)
    }

    /// What the daemon has met; nil = nothing.
    private static func problem(_ status: RemoteStatus, _ evidence: Evidence) -> Finding? {
        if let problem = status.problem { return .degraded(problem, evidence.log("-n 20 -g 'settings from afar'")) }
        let show = evidence.waypost("remote")
        if let refused = status.refused { return .degraded("a document was refused: \(refused)", show) }
        guard status.state == "rejected" || status.state == "reverted" else { return nil }
        let reasons = (status.rejected?.entries ?? []).map { $0.name.isEmpty ? $0.value : "\($0.name): \($0.value)" }
        let more = reasons.count > reasonsShown ? " (and \(reasons.count - reasonsShown) more)" : ""
        let why = reasons.prefix(reasonsShown).joined(separator: "; ")
        let became = status.state == "rejected" ? "was rejected" : "was taken back"
        return .degraded("version \(status.version) \(became)\(why.isEmpty ? "" : ": \(why)")\(more)", show)
    }

    /// - Parameters:
    ///   - uptime: seconds.
    ///   - period: seconds between two polls; nil = documents come by themselves.
    private static func contact(
        _ status: RemoteStatus, _ uptime: Double, every period: Double?, _ evidence: Evidence
    ) -> Finding {
        let age = status.lastContactAge
        if let period, (age ?? uptime) > periodsMax * period {
            let last = age.map { "the server answered last \(InWords.about(seconds: $0)) ago" }
            return .degraded(
                last ?? "no answer of the server since the start, \(InWords.about(seconds: uptime)) ago",
                evidence.waypost("remote"))
        }
        var words = "the file alone is in force"
        if let version = status.inForce { words = "version \(version) is in force" }
        if let version = status.inForce, let rest = status.rest {
            words = "version \(version) is on trial, \(InWords.about(seconds: rest)) of it left"
        }
        return .ok(words + (age.map { ", the server answered \(InWords.about(seconds: $0)) ago" } ?? ""))
    }
}
