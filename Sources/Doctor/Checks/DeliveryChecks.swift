import Configuration
import ControlProtocol
import Positioning
import Sensors

/// The way to the servers and what waits for it: checks 20, 21 and 24; and two receivers on one name: check 25.
enum DeliveryChecks {
    private static let copiesShown = 3

    static func endpoints(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        if config.endpoints.isEmpty { return .ok("none is configured") }
        guard let reaches = evidence.reaches else { return .unknown("no endpoint was tried", "waypost doctor") }
        if let failed = reaches.first(where: { $0.failure != nil }) {
            let proxy = evidence.proxyVariables.isEmpty ? "" : "; waypost does not use \(evidence.proxyVariables[0])"
            let found = "\(failed.endpoint): \(failed.failure ?? "")\(proxy)"
            let host = failed.peer.split(separator: ":").first.map(String.init) ?? failed.peer
            let advice = failed.isClock ? "timedatectl" : "getent ahosts \(host.shellWord); ip route"
            let isAll = reaches.allSatisfy { $0.failure != nil }
            return isAll ? .broken(found, advice) : .degraded(found, advice)
        }
        for endpoint in evidence.status?.endpoints ?? [] {
            // What pauses an endpoint for its credentials is a check of its own.
            if let problem = endpoint.problem, !isAuth(endpoint) {
                return .degraded(
                    "\(endpoint.name): \(problem)", "waypost profile render --endpoint \(endpoint.name.shellWord)")
            }
        }
        let slowest = reaches.map(\.milliseconds).max() ?? 0
        return .ok("\(reaches.count) \(reaches.count == 1 ? "answers" : "answer") within \(slowest) ms")
    }

    private static func isAuth(_ endpoint: EndpointStatus) -> Bool {
        endpoint.state == "paused" && endpoint.reason == "auth"
    }

    static func credentials(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        for endpoint in evidence.status?.endpoints ?? [] where isAuth(endpoint) {
            let name = endpoint.name.shellWord
            return .broken(
                "\(endpoint.name): the server refuses them", "waypost endpoint resume \(name)  # once renewed")
        }
        var count = 0
        for endpoint in config.endpoints {
            for (name, reference) in endpoint.secrets.sorted(by: { $0.key < $1.key }) {
                count += 1
                if let problem = problem(reference, evidence) {
                    return Finding(
                        state: problem.state, found: "\(endpoint.settings.name): secret \(name): \(problem.found)",
                        advice: problem.advice)
                }
            }
        }
        return .ok(count == 0 ? "none is needed" : "\(count) \(count == 1 ? "secret" : "secrets") in place")
    }

    /// nil = it can be used by the daemon, or that cannot be seen from outside of its unit.
    private static func problem(_ reference: Secret.Reference, _ evidence: Evidence) -> Finding? {
        switch reference {
        case .environment: return nil
        case .credential(let name):
            // systemd does not print what a unit loads, but root sees what it was given.
            guard let given = evidence.host.names("/run/credentials/waypost.service") else {
                return .unknown("what its unit was given cannot be seen", "sudo waypost doctor")
            }
            if given.contains(name) { return nil }
            return .broken(
                "its unit does not load credential \(name)",
                "sudo systemctl edit waypost  # [Service] LoadCredential=\(name):/etc/waypost/\(name)")
        case .file(let path):
            guard let file = evidence.host.permissions(path) else {
                return evidence.host.exists(path) || evidence.host.names(path.parentDirectory) == nil
                    ? .unknown("\(path) may not be looked at", "sudo waypost doctor")
                    : .broken("\(path) is not there", "ls -l \(path.parentDirectory.shellWord)")
            }
            if file.mode & 0o077 != 0 {
                return .broken("\(path) may be read by others", "sudo chmod 600 \(path.shellWord)")
            }
            guard let user = evidence.host.user(evidence.serviceUser) else { return nil }
            if user.id == 0 || (file.user == user.id && file.mode & 0o400 != 0) { return nil }
            let owner = evidence.serviceUser.shellWord
            return .broken("\(path) does not belong to \(owner)", "sudo chown \(owner) \(path.shellWord)")
        }
    }

    static func queue(_ evidence: Evidence) -> Finding {
        guard let path = evidence.config?.outbox.settings.path else { return evidence.noConfiguration }
        switch evidence.queue {
        case .damaged(let problems)?:
            return .broken(problems.first ?? "it is damaged", "sudo systemctl restart waypost  # it saves what it can")
        case .unreadable(let reason)?: return .unknown(reason, "sudo waypost doctor")
        case nil: return .unknown("it was not looked at", "sudo waypost queue verify")
        case .absent?: return .ok("there is none yet")
        case .sound(let words)?:
            let prefix = "\(path.split(separator: "/").last ?? "").corrupt-"
            let copies = (evidence.host.names(path.parentDirectory) ?? []).filter {
                $0.hasPrefix(prefix) && $0.dropFirst(prefix.utf8.count).allSatisfy(\.isNumber)
            }
            guard !copies.isEmpty else { return .ok(words) }
            let shown = copies.prefix(copiesShown).joined(separator: ", ")
            return .degraded(
                "damaged copies were set aside: \(shown)",
                "ls -l \(path.parentDirectory.shellWord)  # keep to report, or delete")
        }
    }

    static func oneReceiver(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard let noted = evidence.host.names("/run/udev/data") else {
                return .unknown("udev does not run, or may not be read")
            }
            let receivers = noted.filter { name in
                name.hasPrefix("c") && evidence.host.udevProperties(name)?["WAYPOST_GPS"] == "1"
            }
            guard receivers.count > 1, line.path == "/dev/waypost/gps" else {
                return .ok("\(line.path) names one receiver")
            }
            guard let serial = line.usb?.serial, serial.utf8.allSatisfy(\.isPlain) else {
                return .degraded(
                    "\(receivers.count) receivers share \(line.path)",
                    "ls -l /dev/serial/by-path  # path of one of them")
            }
            return .degraded(
                "\(receivers.count) receivers share \(line.path)",
                "serial_number = \"\(serial)\"  # in [source], instead of path")
        }
    }
}
