import Configuration
import Doctor
import Glibc
import WaypostControl
import WaypostCore
import WaypostHost

/// Gathers from this host what `Doctor` judges. Nothing is changed, and everything has a limit of time.
struct HostLook {
    /// What systemd says of the unit.
    private static let properties = [
        "LoadState", "ActiveState", "SubState", "Result", "ExecMainStatus", "MainPID", "NRestarts", "NeedDaemonReload",
        "User",
        "DevicePolicy", "DeviceAllow", "WatchdogUSec", "UnitFileState", "WantedBy", "RequiredBy",
    ]
    private static let proxyVariables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY"]
    private static let kernelLinesMax = 50_000
    private static let secondsBetweenLooks = 2.0
    private static let managerLinesMax = 200
    /// Bytes of a queue that are checked within a second or two.
    private static let verifiedMax: Int64 = 64 << 20

    let daemon: DaemonOptions

    func evidence() -> Evidence {
        let (configuration, author) = lookAtConfiguration()
        var evidence = Evidence(
            host: HostFolder(root: "/"), configurationPath: daemon.config, configuration: configuration,
            daemon: .absent)
        let started = Self.bootTime
        let socket = daemon.place().socket.path
        let (first, answering) = ask(socket)
        let wallClock = HostIdentity.wallClockMs()
        evidence.unit = Self.unit()
        evidence.watchdogTimeouts = Self.watchdogTimeouts(evidence.unit)
        evidence.kernelLog = Self.kernelLog()
        evidence.isClockSynchronised = HostClock.isSynchronised
        evidence.proxyVariables = Self.proxyVariables.filter { ProcessEnvironment.variables[$0] != nil }
        if let config = evidence.config {
            // Without the rights of its author, nothing of what it names is looked at.
            try? FileOwner.acting(as: author) { Self.lookAtFiles(of: config, &evidence) }
            let queue = NamedPath(path: config.outbox.settings.path, author: author)
            evidence.queue = Self.lookAt(queue, isVerified: first.isAbsent)
        }
        (evidence.daemon, evidence.answering) = (first, answering)
        evidence.bytesPerSecond = bytesPerSecond(socket, since: first, at: started)
        evidence.wallClock = wallClock
        evidence.uptime = Self.kernelTime
        return evidence
    }

    /// - Returns: also the user who wrote it, where that is not root.
    private func lookAtConfiguration() -> (Evidence.ConfigurationFound, author: FileOwner?) {
        do throws(ConfigurationProblems) {
            let (loaded, author) = try ConfigurationFile.ofDaemon(daemon.config)
            guard let refused = loaded.refused else { return (.valid(loaded), nil) }
            return (Self.found(refused.problems, lastGood: loaded), author)
        } catch {
            return (Self.found(error.problems), nil)
        }
    }

    /// What is at the other ends of the paths and URLs of a configuration, but for its queue.
    private static func lookAtFiles(of config: AgentConfig, _ evidence: inout Evidence) {
        evidence.diskSpace = space(config.outbox.settings.path)
        let tried = config.endpoints.filter(EndpointProbe.canBeTried)
        let settings = EndpointProbe.settingsServer(config)
        let reaches = EndpointProbe.reaches(tried + [settings].compactMap(\.self))
        evidence.reaches = reaches.map { Array($0.prefix(tried.count)) }
        if settings != nil { evidence.settingsReach = reaches?.last }
        evidence.untried = config.endpoints.filter { !EndpointProbe.canBeTried($0) }.map(\.settings.name)
        evidence.clientCertificates = EndpointProbe.certificates(config.endpoints)
    }

    private static func found(
        _ problems: [ConfigurationProblem], lastGood: LoadedConfiguration? = nil
    ) -> Evidence.ConfigurationFound {
        // The daemon may see more.
        let certain = problems.filter { !$0.dependsOnReader }
        return certain.isEmpty ? .unreadable : .invalid(certain.map(\.description), lastGood: lastGood)
    }

    private static var bootTime: Double { HostClock.bootTime.seconds(since: .zero) }

    /// As in the kernel log, whose clock stands still while the host sleeps.
    private static var kernelTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

// The daemon.
extension HostLook {
    private func ask(_ path: String) -> (Evidence.DaemonFound, process: Int?) {
        do {
            let client = ControlClient(path: path)
            let reply = try client.answer(to: ControlFrame.line(StatusRequest()))
            return (.answers(try ControlFrame.read(reply.line)), reply.process)
        } catch let error as SystemError {
            if let denial = daemon.denial(error) { return (.unreachable(denial), nil) }
            switch error.code {
            case ENOENT, ECONNREFUSED: return (.absent, nil)
            case EPERM: return (.unreachable("\(error)"), nil)
            default: return (.silent("\(error)"), nil)
            }
        } catch {
            return (.silent("\(error)"), nil)
        }
    }

    /// Asks again. Waits only for the rest of a moment in which sentences must have come.
    private func bytesPerSecond(
        _ path: String, since first: Evidence.DaemonFound, at started: Double
    ) -> Double? {
        guard case .answers(let status) = first else { return nil }
        let rest = Self.secondsBetweenLooks - (Self.bootTime - started)
        if rest > 0 { usleep(UInt32(rest * 1e6)) }
        let after = Self.bootTime - started
        guard after > 0, case .answers(let later) = ask(path).0 else { return nil }
        return max(0, Double(later.source.bytes) - Double(status.source.bytes)) / after
    }

    /// nil where there is no systemd; empty without the unit.
    private static func unit() -> [String: String]? {
        guard access("/run/systemd/system", F_OK) == 0,
            let text = ProgramOutput.read(
                ["systemctl", "show", "waypost.service", "--property", properties.joined(separator: ",")], seconds: 5)
        else { return nil }
        var unit: [String: String] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            let name = String(parts[0])
            unit[name] = unit[name].map { "\($0)\n\(parts[1])" } ?? String(parts[1])
        }
        return unit["LoadState"] == "not-found" ? [:] : unit
    }

    /// What the manager said since the boot, as far as it may be read. Only the journal remembers it once the unit works again.
    private static func watchdogTimeouts(_ unit: [String: String]?) -> Int? {
        guard let restarts = unit?["NRestarts"].flatMap({ Int($0) }), restarts > 0 else { return nil }
        let said = ProgramOutput.read(
            ["journalctl", "-b", "-q", "-o", "cat", "-n", "\(managerLinesMax)", "_PID=1", "UNIT=waypost.service"],
            seconds: 3)
        return said.map { $0.split(separator: "\n").count { $0.firstOccurrence(of: "Watchdog timeout") != nil } }
    }
}

// What no file shows.
extension HostLook {
    /// nil where it may not be read.
    private static func kernelLog() -> [Evidence.KernelLine]? {
        let descriptor = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var lines: [Evidence.KernelLine] = []
        var record = [UInt8](repeating: 0, count: 8192)
        // One record for each read; EPIPE = some were overwritten meanwhile.
        for _ in 0..<kernelLinesMax {
            let count = read(descriptor, &record, record.count)
            if count < 0, errno == EPIPE || errno == EINTR { continue }
            guard count > 0 else { break }
            if let line = kernelLine(String(decoding: record[..<count], as: UTF8.self)) { lines.append(line) }
        }
        // A container may have the device, and nothing in it.
        return lines.isEmpty ? nil : lines
    }

    /// `6,339,5140900,-;usb 1-1: USB disconnect, device number 4`, and properties on further lines.
    private static func kernelLine(_ record: String) -> Evidence.KernelLine? {
        let parts = record.split(separator: ";", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let head = parts[0].split(separator: ",")
        guard head.count > 2, let microseconds = Double(head[2]) else { return nil }
        return .init(at: microseconds / 1e6, String(parts[1].prefix { $0 != "\n" }))
    }

    /// Of the folder that the queue is in, or will be made in.
    private static func space(_ path: String) -> Evidence.DiskSpace? {
        var info = statvfs()
        var folder = path.parentDirectory
        while statvfs(folder, &info) != 0 {
            guard errno == ENOENT, folder != folder.parentDirectory else { return nil }
            folder = folder.parentDirectory
        }
        let block = Int64(clamping: info.f_frsize)
        return .init(
            bytes: Int64(clamping: info.f_blocks) &* block, bytesFree: Int64(clamping: info.f_bavail) &* block,
            files: Int64(clamping: info.f_files), filesFree: Int64(clamping: info.f_favail))
    }

    /// - Parameter isVerified: also looks at every page, unless that takes long: nothing else reads it.
    private static func lookAt(_ queue: NamedPath, isVerified: Bool) -> Evidence.QueueFound {
        let path = queue.path
        do {
            return try queue.acting {
                var info = stat()
                guard stat(path, &info) == 0 else {
                    return errno == EACCES ? .unreadable("\(path) may not be read") : .absent
                }
                let isSmall = info.st_size <= verifiedMax
                let queue = try QueueReport(path: path)
                let problems = isVerified && isSmall ? try queue.problems(quick: true) : []
                return problems.isEmpty ? .sound(try queue.summary().lines.first ?? "") : .damaged(problems)
            }
        } catch let error as QueueReport.Failure {
            // EX_DATAERR
            return error.exitCode == 65 ? .damaged([error.description]) : .unreadable(error.description)
        } catch {
            return .unreadable("\(path) may not be read")
        }
    }
}

extension Evidence.DaemonFound {
    fileprivate var isAbsent: Bool { if case .absent = self { true } else { false } }
}
