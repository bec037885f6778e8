import Configuration
import Glibc
import WaypostCore

/// Whether the receiver's line is there, stays there, and may be opened: checks 3 to 7.
enum LineChecks {
    private static let pseudoTerminals = 136...143

    static func receiverThere(_ evidence: Evidence) -> Finding {
        switch evidence.receiver {
        case .line(let line):
            let usb = line.usb.map { " (usb \($0))" } ?? ""
            return .ok(line.path == line.node ? "\(line.node)\(usb)" : "\(line.path) is \(line.node)\(usb)")
        case .missing(let name):
            let others = evidence.host.serialLines
            guard let other = others.first else {
                return .broken("\(name) is not there, and no other receiver is plugged in", "ls -l /dev/serial/by-id")
            }
            let path = evidence.host.stablePath(of: other) ?? other
            let more = others.count > 1 ? ", and \(others.count - 1) more" : ""
            let found = path == other ? other : "\(path) (\(other))"
            return .broken("\(name) is not there; \(found) is\(more)", "path = \"\(path)\"  # in [source]")
        case .elsewhere(let words): return .ok("does not apply: the source is \(words)")
        case .unknown: return evidence.noConfiguration
        }
    }

    static func stableName(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            let name = line.path.split(separator: "/")
            let kinds = ["ttyUSB", "ttyACM", "ttyS", "ttyAMA"]
            guard name.count == 2, kinds.contains(where: { name[1].hasPrefix($0) }) else {
                return .ok("\(line.path) stays the same")
            }
            // A name that was found by the identity of its USB device is looked up each time.
            if case .serial(let settings)? = evidence.config?.source, case .usb = settings.device {
                return .ok("found by its USB identity")
            }
            guard let stable = line.stablePath else {
                if line.usbFolder == nil { return .ok("\(line.path) is a UART of the board") }
                return .degraded(
                    "\(line.path) may be another device after the next boot",
                    "udevadm info \(line.node.shellWord)  # name it by usb_id in [source], instead of path")
            }
            return .degraded(
                "\(line.path) may be another device after the next boot", "path = \"\(stable)\"  # in [source]")
        }
    }

    static func unitMayOpen(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard evidence.hasSystemd else { return .ok("does not apply: no systemd") }
            guard let unit = evidence.unit else { return .unknown("systemd does not say what its unit may open") }
            guard let policy = unit["DevicePolicy"], !unit.isEmpty else {
                return .ok("does not apply: there is no unit")
            }
            let entries = (unit["DeviceAllow"] ?? "").split(separator: "\n").map { $0.split(separator: " ") }
            if policy == "auto", entries.allSatisfy(\.isEmpty) { return .ok("its unit may open every device") }
            guard let major = line.major else { return .unknown("the device number of \(line.node) is not known") }
            if policy != "strict", pseudoTerminals.contains(major) {
                return .ok("every unit may open pseudo-terminals")
            }
            let driver = evidence.host.driver(ofMajor: major)
            let isAllowed = entries.contains { entry in
                guard let what = entry.first, entry.count < 2 || (entry[1].contains("r") && entry[1].contains("w"))
                else { return false }
                if what.hasPrefix("/") { return evidence.host.resolved(String(what)) == line.node }
                guard what.hasPrefix("char-") else { return false }
                let pattern = String(what.dropFirst("char-".utf8.count))
                // As systemd: a number, or a pattern of names in /proc/devices.
                return Int(pattern) == major || driver.map { fnmatch(pattern, $0, 0) == 0 } ?? (pattern == "*")
            }
            if isAllowed { return .ok("its unit may open major number \(major)") }
            return .broken(
                "its unit may not open \(line.node): DeviceAllow= lacks char-\(major)",
                "sudo systemctl edit waypost  # [Service] DeviceAllow=char-\(major) rw")
        }
    }

    static func group(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard let node = evidence.host.permissions(line.node) else {
                return .unknown("\(line.node) cannot be read")
            }
            if node.mode & 0o006 == 0o006 { return .ok("\(line.node) is open to every user") }
            guard let process = evidence.daemonProcess,
                let identity = ProcessIdentity(evidence.host.lines("/proc/\(process)/status"))
            else { return .unknown("the groups of the daemon are not known", evidence.doctorAsRoot) }
            if identity.user == 0 { return .ok("the daemon runs as root") }
            if identity.user == node.user, node.mode & 0o600 == 0o600 { return .ok("the daemon owns \(line.node)") }
            if node.listed.contains(identity.user) { return .ok("a udev rule gives the daemon \(line.node)") }
            let group = evidence.host.groupName(node.group) ?? String(node.group)
            let user = evidence.serviceUser
            // Nobody joins the group of root, and a mode that is changed by hand lasts until the next plug-in.
            guard group != "root", node.mode & 0o060 == 0o060 else {
                let rule = RivalChecks.rule(line.usb, at: line.name, "GROUP=\"\(user)\", MODE=\"0660\"")
                return .broken(
                    "no group that \(user) could join may read and write \(line.node)",
                    RivalChecks.adding(rule) + " && sudo udevadm trigger \(line.node.shellWord)")
            }
            if identity.groups.contains(node.group) { return .ok("the daemon is in group \(group)") }
            if evidence.host.isListed(user, inGroup: node.group) {
                return .broken(
                    "\(user) was added to group \(group), but the daemon started before", evidence.restartDaemon)
            }
            return .broken(
                "the daemon is not in group \(group) of \(line.node)",
                "sudo usermod -aG \(group.shellWord) \(user.shellWord) && \(evidence.restartDaemon)")
        }
    }

    static func holder(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            let own = evidence.daemonProcess
            // Where processes of others are hidden, so is this one.
            var isComplete = evidence.host.exists("/proc/1")
            for process in evidence.host.processes where process != own {
                guard let descriptors = evidence.host.names("/proc/\(process)/fd") else {
                    if evidence.host.exists("/proc/\(process)") { isComplete = false }
                    continue
                }
                guard descriptors.contains(where: { evidence.host.link("/proc/\(process)/fd/\($0)") == line.node })
                else { continue }
                return held(line.node, by: process, on: evidence.host)
            }
            guard isComplete else {
                return .unknown("not every process shows what it has open", evidence.doctorAsRoot)
            }
            return .ok("no other program has \(line.node) open")
        }
    }

    private static func held(_ node: String, by process: Int, on host: HostFolder) -> Finding {
        let program = host.program(of: process) ?? "process \(process)"
        let found = "\(program) (process \(process)) has \(node) open"
        if program == "gpsd" { return .broken(found, "kind = \"gpsd\"  # in [source], instead of serial and path") }
        if let unit = host.unit(of: process), unit.hasSuffix(".service") {
            return .broken(found, "sudo systemctl disable --now \(unit.shellWord)")
        }
        if program == "waypost" {
            let look = host.exists("/run/systemd/system") ? "systemctl status" : "ps -fp"
            return .broken("a second waypost (process \(process)) has \(node) open", "\(look) \(process)")
        }
        return .broken(found, "sudo kill \(process)")
    }
}

/// Who a process is, from its `status` in `/proc`.
private struct ProcessIdentity {
    var user: UInt32
    var groups: Set<UInt32>

    init?(_ lines: [String]?) {
        func numbers(_ name: String) -> [UInt32]? {
            lines?.first { $0.hasPrefix(name) }?.dropFirst(name.utf8.count)
                .split { $0 == "\t" || $0 == " " }.compactMap { UInt32($0) }
        }
        // The second of each is the effective one.
        guard let users = numbers("Uid:"), users.count > 1, let groups = numbers("Gid:"), groups.count > 1 else {
            return nil
        }
        user = users[1]
        self.groups = Set([groups[1]] + (numbers("Groups:") ?? []))
    }
}

extension HostFolder {
    /// `ttyUSB` of 188, from `/proc/devices`.
    fileprivate func driver(ofMajor major: Int) -> String? {
        for line in lines("/proc/devices") ?? [] {
            // Block devices have numbers of their own.
            if line.hasPrefix("Block") { return nil }
            let parts = line.split(separator: " ")
            if parts.count == 2, Int(parts[0]) == major { return String(parts[1]) }
        }
        return nil
    }
}
