import Configuration
import WaypostCore

/// The host itself: clock (18), power (19), disk (22) and card (23).
enum HostChecks {
    private static let hour = 3600.0
    private static let clockTolerance = 5.0
    private static let disconnectsMin = 2
    private static let mebibyte: Int64 = 1 << 20

    static func clock(_ evidence: Evidence) -> Finding {
        if evidence.wallClock < SignalChecks.releaseMilliseconds {
            let day = UTCTime(milliseconds: evidence.wallClock).iso8601.prefix(10)
            return .broken("the host clock says \(day), before this waypost was made", evidence.setClock)
        }
        if !evidence.isFile, let status = evidence.status, let text = status.motion.lastFix,
            let fix = UTCTime.milliseconds(iso8601: text), let age = status.motion.lastFixAge
        {
            let ahead = Double(evidence.wallClock - fix) / 1000 - age
            // A whole day is a matter of the receiver's date.
            if abs(ahead) > clockTolerance, abs(ahead) < 86_400 {
                return .degraded(
                    "\(InWords.about(seconds: abs(ahead))) \(ahead > 0 ? "ahead of" : "behind") the receiver",
                    evidence.setClock)
            }
        }
        switch evidence.isClockSynchronised {
        case true?: return .ok("synchronised")
        case false?: return .degraded("no time service has set it", evidence.setClock)
        case nil: return .unknown("the kernel does not say whether it is synchronised", evidence.showClock)
        }
    }

    static func power(_ evidence: Evidence) -> Finding {
        let host = evidence.host
        let sensors = (host.names("/sys/class/hwmon") ?? []).map { "/sys/class/hwmon/\($0)" }
        let supply = sensors.first { host.word("\($0)/name") == "rpi_volt" }
        let better = "dmesg -T | grep -iE 'voltage|disconnect'  # a better supply, a powered hub"
        if let supply, host.word("\(supply)/in0_lcrit_alarm") == "1" {
            return .broken("the supply voltage is too low now", better)
        }
        guard let log = evidence.kernelLog else {
            return supply == nil
                ? .unknown("the kernel log cannot be read", evidence.doctorAsRoot)
                : .ok("the supply voltage is good now")
        }
        let dips = log.filter { $0.text.holds("Under-voltage detected") || $0.text.holds("Undervoltage detected") }
        if !dips.isEmpty {
            return .degraded(
                "the supply voltage was too low \(InWords.count(dips.count, "time")) since the start", better)
        }
        if case .line(let line) = evidence.receiver, let port = line.usbFolder?.split(separator: "/").last {
            let lost = log.filter {
                $0.at > evidence.uptime - hour && $0.text.holds("usb \(port): USB disconnect")
            }
            if lost.count >= disconnectsMin {
                return .degraded("the receiver was lost \(lost.count) times from USB within an hour", better)
            }
        }
        return .ok("no low voltage and no lost receiver in the kernel log")
    }

    static func disk(_ evidence: Evidence) -> Finding {
        guard let path = evidence.config?.outbox.settings.path else { return evidence.noConfiguration }
        let diskError = evidence.status?.queue.diskError.map {
            Finding.broken($0, "df -h \(path.parentDirectory.shellWord)")
        }
        guard let mount = MountPoint(of: path, on: evidence.host) else {
            return diskError
                ?? .unknown("the mounts cannot be read", "findmnt -T \(path.parentDirectory.shellWord)")
        }
        if ["tmpfs", "ramfs", "overlay", "overlayfs", "squashfs"].contains(mount.type) {
            let advice =
                evidence.host.isRaspberryPi && mount.type.hasPrefix("overlay")
                ? "sudo raspi-config nonint disable_overlayfs"
                : "path = \"/data/waypost/outbox.db\"  # in [outbox], on a disk"
            return .broken("the queue is on \(mount.type), which forgets all at power-off", advice)
        }
        if mount.isReadOnly {
            return .broken("\(mount.path) is mounted read-only", "sudo mount -o remount,rw \(mount.path.shellWord)")
        }
        if let diskError { return diskError }
        if let errors = mount.errors(on: evidence.host), errors > 0 {
            return .degraded(
                "\(InWords.count(errors, "error")) of the file system on \(mount.path)",
                "sudo touch /forcefsck  # and reboot")
        }
        guard let space = evidence.diskSpace else {
            return .unknown("the free space is not known", "df -h \(path.parentDirectory.shellWord)")
        }
        return room(space, mount, least: evidence.config?.outbox.settings.minFree)
    }

    /// - Parameter least: bytes below which the queue does not grow; nil = it always does.
    private static func room(_ space: Evidence.DiskSpace, _ mount: MountPoint, least: Int64?) -> Finding {
        let free = "\(space.bytesFree / mebibyte) MiB free on \(mount.path) (\(mount.type))"
        let advice = "sudo du -xh --max-depth=2 \(mount.path.shellWord) | sort -h | tail"
        if space.files > 0, space.filesFree < 16 { return .broken("no room for files on \(mount.path)", advice) }
        if let least, space.bytesFree < min(least, space.bytes / 4) {
            return .broken("\(free), less than min_free of [outbox]: the queue does not grow any more", advice)
        }
        if space.bytesFree < 8 * mebibyte { return .broken(free, advice) }
        if space.bytesFree < 100 * mebibyte { return .degraded(free, advice) }
        return .ok(free)
    }

    static func wear(_ evidence: Evidence) -> Finding {
        guard let path = evidence.config?.outbox.settings.path else { return evidence.noConfiguration }
        guard let mount = MountPoint(of: path, on: evidence.host),
            let device = evidence.host.resolved("/sys/dev/block/\(mount.number)")
        else {
            return .unknown("the disk behind the queue is not known", "findmnt -T \(path.parentDirectory.shellWord)")
        }
        let disk = evidence.host.exists("\(device)/partition") ? device.parentDirectory : device
        guard disk.split(separator: "/").last?.hasPrefix("mmcblk") ?? false else {
            return .ok("does not apply: no card")
        }
        let written = mount.writtenWords(on: evidence.host, uptime: evidence.uptime)
        guard let lives = evidence.host.word("\(disk)/device/life_time") else {
            return .unknown("SD cards do not report their wear\(written)")
        }
        // Tenths of the life that are used, one for each kind of memory; 0xb = beyond the end.
        let used = lives.split(separator: " ").compactMap { Int($0.dropFirst(2), radix: 16) }.max() ?? 0
        let reserve = evidence.host.word("\(disk)/device/pre_eol_info").flatMap { Int($0.dropFirst(2), radix: 16) } ?? 0
        if used > 10 || reserve >= 3 {
            return .broken("the eMMC is worn out", "sudo lsblk -o NAME,MODEL,SIZE  # replace it")
        }
        if used >= 9 { return atRisk("the eMMC has used \(used * 10) % of its life\(written)", disk, evidence.host) }
        if reserve == 2 { return atRisk("the eMMC has used 80 % of its spare blocks\(written)", disk, evidence.host) }
        guard used > 0 else { return .unknown("the eMMC does not report its wear\(written)") }
        return .ok("the eMMC has used at most \(used * 10) % of its life\(written)")
    }

    /// What writes to it besides the queue comes first: the journal, where it is kept over a reboot.
    private static func atRisk(_ found: String, _ disk: String, _ host: HostFolder) -> Finding {
        let journal = "/var/log/journal"
        guard !(host.names(journal) ?? []).isEmpty, let mount = MountPoint(of: "\(journal)/", on: host),
            host.resolved("/sys/dev/block/\(mount.number)")?.hasPrefix(disk) ?? false
        else { return .degraded(found, "commit_window = \"30s\"  # in [outbox]") }
        let file = "/etc/systemd/journald.conf.d/volatile.conf"
        return .degraded(
            "\(found); the journal is kept on it too",
            "printf '[Journal]\\nStorage=volatile\\n' | sudo install -D -m 644 /dev/stdin \(file)"
                + "  # then restart systemd-journald")
    }
}

/// What a path is mounted on.
struct MountPoint {
    /// A host with many containers has many mounts.
    private static let bytesMax = 1 << 20

    var path: String
    var type: String
    /// `179:2`
    var number: String
    var isReadOnly: Bool
    private var source: String

    /// nil where the mounts cannot be read.
    init?(of path: String, on host: HostFolder) {
        let path = host.realFolder(of: path) + "/"
        var best: MountPoint?
        for line in host.lines("/proc/self/mountinfo", bytesMax: Self.bytesMax) ?? [] {
            guard let mount = MountPoint(line) else { continue }
            let prefix = mount.path == "/" ? "/" : mount.path + "/"
            // A later mount covers an earlier one.
            if path.hasPrefix(prefix), mount.path.utf8.count >= (best?.path.utf8.count ?? 0) { best = mount }
        }
        guard let best else { return nil }
        self = best
    }

    /// `36 35 179:2 / /data rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw`
    private init?(_ line: String) {
        let parts = line.split(separator: " ")
        guard let dash = parts.firstIndex(of: "-"), dash >= 6, parts.count > dash + 3 else { return nil }
        number = String(parts[2])
        path = Self.unescaped(parts[4])
        type = String(parts[dash + 1])
        source = String(parts[dash + 2])
        isReadOnly = [parts[5], parts[dash + 3]].contains { $0.split(separator: ",").contains("ro") }
    }

    /// Blanks and the like are written as a backslash and three octal digits.
    private static func unescaped(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8) {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What ext4 noted since the last check; nil for other file systems.
    func errors(on host: HostFolder) -> Int? { ext4("errors_count", on: host) }

    /// `; 12 GiB written in its life, 350 MiB a day since the start`; empty where the file system does not count.
    func writtenWords(on host: HostFolder, uptime: Double) -> String {
        guard let lifetime = ext4("lifetime_write_kbytes", on: host), lifetime > 0 else { return "" }
        let words = "; \(Self.amount(Double(lifetime))) written in its life"
        // The first hour has the boot in it.
        guard uptime > 3600, let session = ext4("session_write_kbytes", on: host), session >= 0 else { return words }
        return "\(words), \(Self.amount(Double(session) / uptime * 86_400)) a day since the start"
    }

    private static func amount(_ kibibytes: Double) -> String {
        kibibytes < 10 * 1_048_576
            ? "\(InWords.whole(kibibytes / 1024)) MiB" : "\(InWords.whole(kibibytes / 1_048_576)) GiB"
    }

    private func ext4(_ name: String, on host: HostFolder) -> Int? {
        guard type == "ext4", let device = host.resolved("/sys/dev/block/\(number)")?.split(separator: "/").last else {
            return nil
        }
        return host.word("/sys/fs/ext4/\(device)/\(name)").flatMap { Int($0) }
    }
}
