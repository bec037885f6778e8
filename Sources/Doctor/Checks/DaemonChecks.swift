import Configuration
import ControlProtocol
import Positioning

/// Configuration and daemon: checks 1 and 2.
enum DaemonChecks {
    private static let restartsMin = 3
    private static let youngUptime = 600.0
    private static let recentUptime = 86_400.0

    static func configuration(_ evidence: Evidence) -> Finding {
        let path = evidence.configurationPath
        switch evidence.configuration {
        case .valid(let loaded):
            let count = loaded.warnings.count
            let warnings = count == 0 ? "" : ", \(InWords.count(count, "warning"))"
            return .ok("\(loaded.files.joined(separator: ", ")): valid\(warnings)")
        case .invalid(let problems, let lastGood):
            let more = problems.count > 1 ? " (and \(problems.count - 1) more)" : ""
            let found = (problems.first ?? "\(path) cannot be used") + more + inForce(evidence.daemon)
            let advice = "sudo waypost check \(path.shellWord)"
            // It tracks all the same, and the other checks are of what it runs on.
            return lastGood == nil ? .broken(found, advice) : .degraded(found, advice)
        case .unreadable:
            return .unknown(
                "\(path) may not be read by this user, or needs variables of the daemon", "sudo waypost doctor")
        }
    }

    /// What the daemon runs on instead.
    private static func inForce(_ daemon: Evidence.DaemonFound) -> String {
        guard case .answers(let status, _) = daemon else { return "" }
        switch status.configuration {
        case "last-good": return "; the daemon runs on the last good one"
        case "refused", "current": return "; the daemon runs on what it read before"
        default: return ""
        }
    }

    static func daemon(_ evidence: Evidence) -> Finding {
        switch evidence.daemon {
        case .answers(let status, _): return running(status, evidence)
        case .unreachable(let reason): return .unknown(reason, "sudo waypost doctor")
        case .silent(let reason): return .broken("it does not answer: \(reason)", "sudo systemctl restart waypost")
        case .absent: return absent(evidence.unit)
        }
    }

    private static func running(_ status: Status, _ evidence: Evidence) -> Finding {
        let unit = evidence.unit
        if status.version != AgentVersion.current {
            return .degraded(
                "\(status.version) runs, \(AgentVersion.current) is installed", "sudo systemctl restart waypost")
        }
        let restarts = unit?["NRestarts"].flatMap { Int($0) } ?? 0
        let uptime = status.uptime ?? .infinity
        // systemd counts restarts from the last start by hand.
        if restarts > 0, let hangs = evidence.watchdogTimeouts, hangs > 0, uptime < recentUptime {
            return .degraded(
                "it hung, and its watchdog ended it: \(hangs == 1 ? "once" : "\(hangs) times") since the boot",
                "journalctl -u waypost -b -p warning")
        }
        if restarts >= restartsMin, uptime < youngUptime {
            return .degraded(
                "restarted \(restarts) times, last \(span(uptime)) ago", "journalctl -u waypost -b -p warning")
        }
        if unit?["NeedDaemonReload"] == "yes" {
            return .degraded("its unit was changed and not read again", "sudo systemctl daemon-reload")
        }
        if let problem = unexplained(status) { return .degraded(problem, "waypost status") }
        let watchdog = ["0", "infinity"].contains(unit?["WatchdogUSec"]) ? ", without a watchdog" : ""
        return .ok("waypost \(status.version) has run for \(span(status.uptime ?? 0))\(watchdog)")
    }

    /// What the daemon reports that is of no other check: they look at configuration, receiver and endpoints themselves.
    private static func unexplained(_ status: Status) -> String? {
        let others = ["configuration", "receiver:"] + status.endpoints.map { "\($0.name):" }
        return status.problems.first { problem in
            problem != status.queue.diskError && !others.contains { problem.hasPrefix($0) }
        }
    }

    private static func absent(_ unit: [String: String]?) -> Finding {
        guard let unit, let state = unit["ActiveState"] else {
            return .broken("no daemon answers, and there is no unit waypost.service", "waypost run")
        }
        switch (state, unit["Result"] ?? "", unit["ExecMainStatus"] ?? "") {
        case (_, "watchdog", _): return .broken("it hung, and its watchdog ended it", "journalctl -u waypost -b -n 20")
        case ("failed", _, "78"): return .broken("it ended: it refuses its configuration", "sudo waypost check")
        case ("failed", let result, let code):
            return .broken("it ended (\(result), exit status \(code))", "journalctl -u waypost -b -n 20")
        case ("activating", _, let code):
            return .broken("it starts again and again (last exit status \(code))", "journalctl -u waypost -b -n 20")
        case ("inactive", _, _): return .broken("it is not started", "sudo systemctl start waypost")
        default: return .broken("its unit is \(state), but it does not answer", "sudo systemctl restart waypost")
        }
    }

    /// `3 min`, for people.
    static func span(_ seconds: Double) -> String {
        switch seconds {
        case ..<120: "\(whole(seconds)) s"
        case ..<7200: "\(whole(seconds / 60)) min"
        case ..<172_800: "\(whole(seconds / 3600)) h"
        default: "\(whole(seconds / 86_400)) days"
        }
    }

    /// Rounded, and bounded: the numbers come from whoever answers on the socket.
    static func whole(_ value: Double) -> Int { value.isNaN ? 0 : Int(max(0, min(value, 1e9)).rounded()) }
}
