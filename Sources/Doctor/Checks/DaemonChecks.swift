import Configuration
import WaypostControl
import WaypostCore

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
            let advice = evidence.checkConfiguration
            // It tracks all the same, and the other checks are of what it runs on.
            return lastGood == nil ? .broken(found, advice) : .degraded(found, advice)
        case .unreadable:
            return .unknown(
                "\(path) may not be read by this user, or needs variables of the daemon", evidence.doctorAsRoot)
        }
    }

    /// What the daemon runs on instead.
    private static func inForce(_ daemon: Evidence.DaemonFound) -> String {
        guard case .answers(let status) = daemon else { return "" }
        switch status.configuration {
        case "last-good": return "; the daemon runs on the last good one"
        case "refused", "current": return "; the daemon runs on what it read before"
        default: return ""
        }
    }

    static func daemon(_ evidence: Evidence) -> Finding {
        switch evidence.daemon {
        case .answers(let status): return running(status, evidence)
        case .unreachable(let reason): return .unknown(reason, evidence.doctorAsRoot)
        case .silent(let reason): return .broken("it does not answer: \(reason)", evidence.restartDaemon)
        case .absent: return absent(evidence)
        }
    }

    private static func running(_ status: Status, _ evidence: Evidence) -> Finding {
        let unit = evidence.unit
        if status.version != AgentVersion.current {
            return .degraded(
                "\(status.version) runs, \(AgentVersion.current) is installed", evidence.restartDaemon)
        }
        let restarts = unit?["NRestarts"].flatMap { Int($0) } ?? 0
        let uptime = status.uptime ?? .infinity
        // systemd counts restarts from the last start by hand.
        if restarts > 0, let hangs = evidence.watchdogTimeouts, hangs > 0, uptime < recentUptime {
            return .degraded(
                "it hung, and its watchdog ended it: \(hangs == 1 ? "once" : "\(hangs) times") since the boot",
                evidence.log("-b -p warning"))
        }
        if restarts >= restartsMin, uptime < youngUptime {
            return .degraded(
                "restarted \(restarts) times, last \(InWords.about(seconds: uptime)) ago", evidence.log("-b -p warning")
            )
        }
        if unit?["NeedDaemonReload"] == "yes" {
            return .degraded("its unit was changed and not read again", "sudo systemctl daemon-reload")
        }
        if evidence.isOnlyStartedByHand {
            return .degraded("it runs, but does not start with the host", "sudo systemctl enable waypost")
        }
        if let problem = unexplained(status) { return .degraded(problem, evidence.waypost("status")) }
        let watchdog = ["0", "infinity"].contains(unit?["WatchdogUSec"]) ? ", without a watchdog" : ""
        return .ok("waypost \(status.version) has run for \(InWords.about(seconds: status.uptime ?? 0))\(watchdog)")
    }

    /// What the daemon reports that is of no other check: they look at configuration, receiver and endpoints themselves.
    private static func unexplained(_ status: Status) -> String? {
        let others = ["configuration", "receiver:", "geofences "] + status.endpoints.map { "\($0.name):" }
        return status.problems.first { problem in
            problem != status.queue.diskError && !others.contains { problem.hasPrefix($0) }
        }
    }

    private static func absent(_ evidence: Evidence) -> Finding {
        guard let unit = evidence.unit, let state = unit["ActiveState"] else {
            let noUnit = evidence.unit == nil ? "" : ", and there is no unit waypost.service"
            return .broken("no daemon answers\(noUnit)", evidence.startDaemon)
        }
        if unit["LoadState"] == "masked" { return .broken("its unit is masked", "sudo systemctl unmask waypost") }
        let log = evidence.log("-b -n 20")
        switch (state, unit["Result"] ?? "", unit["ExecMainStatus"] ?? "") {
        case (_, "watchdog", _): return .broken("it hung, and its watchdog ended it", log)
        case ("failed", _, "78"): return .broken("it ended: it refuses its configuration", evidence.checkConfiguration)
        case ("failed", let result, let code): return .broken("it ended (\(result), exit status \(code))", log)
        // systemd waits before it starts it again.
        case ("activating", _, let code) where unit["SubState"]?.hasPrefix("auto-restart") ?? false:
            return .broken("it ends again and again (last exit status \(code))", log)
        case ("activating", _, _): return .broken("it is being started, and does not answer yet", log)
        case ("inactive", _, _):
            let advice = evidence.isOnlyStartedByHand ? "sudo systemctl enable --now waypost" : evidence.startDaemon
            return .broken("it is not started", advice)
        default: return .broken("its unit is \(state), but it does not answer", evidence.restartDaemon)
        }
    }
}

extension Evidence {
    /// No target and no other unit wants the daemon.
    fileprivate var isOnlyStartedByHand: Bool {
        unit?["UnitFileState"] == "disabled" && ["WantedBy", "RequiredBy"].allSatisfy { unit?[$0]?.isEmpty ?? true }
    }
}
