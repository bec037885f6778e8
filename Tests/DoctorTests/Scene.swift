import Configuration
import ConfigurationTestSupport
import Doctor
import Glibc
import Protocols
import Synchronization
import TestSupport
import WaypostControl

/// A host that is made up: its files, and the values that no file shows. As made here, all is well.
struct Scene {
    /// Contents by path.
    var files: [String: String] = [:]
    /// Targets by path, relative as those of sysfs and udev are.
    var links: [String: String] = [:]
    var modes: [String: mode_t] = [:]
    /// Users who may read and write by an access control list, by path.
    var listed: [String: UInt32] = [:]
    var source = "kind = \"serial\"\npath = \"/dev/serial/by-id/usb-u-blox_7-if00\""
    var more = ""
    /// nil = it is valid, or what `configurationFound` says.
    var configurationFound: Evidence.ConfigurationFound?
    /// With what it is wrong there, the configuration made here is the last good one.
    var keepsLastGood = false
    var configurationPath = "/etc/waypost/waypost.toml"
    var status = Scene.goodStatus
    var bytesPerSecond: Double? = 500
    /// nil = it answers with `status`.
    var daemon: Evidence.DaemonFound?
    var answering: Int? = 500
    var unit: [String: String]? = [
        "LoadState": "loaded", "ActiveState": "active", "MainPID": "500", "NRestarts": "0", "User": "waypost",
        "DevicePolicy": "closed", "DeviceAllow": "char-166 rw\nchar-188 rw\nchar-4 rw\nchar-204 rw",
    ]
    var kernelLog: [Evidence.KernelLine]? = [.init(at: 3, "usb 1-1.2: new full-speed USB device number 4")]
    var isClockSynchronised: Bool? = true
    /// 2026-11-20T10:00:00Z
    var wallClock: Int64 = 1_795_168_800_000
    var reaches: [Evidence.Reach]? = [
        .init(
            endpoint: "main", host: "fleet.example", peer: "fleet.example:443", failure: nil, milliseconds: 120)
    ]
    var settingsReach: Evidence.Reach?
    var untried: [String] = []
    var watchdogTimeouts: Int?
    var clientCertificates: [String: CertificateDates] = [:]
    var diskSpace: Evidence.DiskSpace? = .init(
        bytes: 8 << 30, bytesFree: 4 << 30, files: 500_000, filesFree: 400_000)
    var queue: Evidence.QueueFound? = .sound("queue outbox.db: 12 rows")

    /// A Compute Module with a u-blox receiver on USB and eMMC.
    static var pi: Scene {
        var scene = Scene()
        let usb = "/sys/devices/platform/scb/usb1/1-1/1-1.2"
        scene.files = [
            "\(usb)/idVendor": "1546\n", "\(usb)/idProduct": "01a7\n", "\(usb)/serial": "UB7X1\n",
            "\(usb)/1-1.2:1.0/tty/ttyACM0/dev": "166:0\n", "/dev/ttyACM0": "",
            "/run/systemd/system/units": "",
            "/run/udev/data/c166:0": "S:serial/by-id/usb-u-blox_7-if00\nE:WAYPOST_GPS=1\nE:ID_MM_DEVICE_IGNORE=1\n",
            "/usr/lib/udev/rules.d/70-waypost.rules": "", "/etc/udev/rules.d/README": "",
            "/proc/cmdline": "console=tty1 root=PARTUUID=1-02 rootwait\n",
            "/proc/devices":
                "Character devices:\n  4 ttyS\n166 ttyACM\n188 ttyUSB\n207 ttymxc\n\nBlock devices:\n179 mmc\n",
            "/proc/device-tree/model": "Raspberry Pi Compute Module 4 Rev 1.0\0",
            "/proc/1/comm": "systemd\n", "/proc/500/comm": "waypost\n", "/proc/500/cmdline": "/usr/bin/waypost\0run\0",
            "/proc/500/status":
                "Name:\twaypost\nUid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t\(group) 991 \n",
            "/proc/700/comm": "bash\n", "/proc/700/cgroup": "0::/user.slice/session-1.scope\n",
            "/etc/group": "root:x:60000:\ndialout:x:\(group):waypost\nwaypost:x:991:\n",
            "/etc/passwd": "root:x:0:0::/root:/bin/sh\nwaypost:x:990:991::/:/bin/false\n",
            "/proc/self/mountinfo": "24 1 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw\n",
            "/sys/devices/mmc0/mmcblk0/mmcblk0p2/partition": "2\n",
            "/sys/devices/mmc0/mmcblk0/device/life_time": "0x01 0x02\n",
            "/sys/devices/mmc0/mmcblk0/device/pre_eol_info": "0x01\n",
            "/sys/fs/ext4/mmcblk0p2/errors_count": "0\n",
            "/sys/class/hwmon/hwmon0/name": "rpi_volt\n", "/sys/class/hwmon/hwmon0/in0_lcrit_alarm": "0\n",
            "/boot/firmware/config.txt": "arm_64bit=1\n", "/var/lib/waypost/outbox.db": "",
        ]
        scene.links = [
            "/dev/serial/by-id/usb-u-blox_7-if00": "../../ttyACM0",
            "/sys/class/tty/ttyACM0": "../../devices/platform/scb/usb1/1-1/1-1.2/1-1.2:1.0/tty/ttyACM0",
            "\(usb)/1-1.2:1.0/tty/ttyACM0/device": "../../../1-1.2:1.0",
            "/sys/dev/block/179:2": "../../devices/mmc0/mmcblk0/mmcblk0p2",
            "/proc/1/fd/0": "/dev/null", "/proc/500/fd/7": "/dev/ttyACM0", "/proc/700/fd/0": "/dev/pts/0",
        ]
        scene.modes = ["/dev/ttyACM0": 0o660]
        scene.more = upload
        return scene
    }

    /// A PC with a receiver on its own serial port, and a disk.
    static var pc: Scene {
        var scene = Scene.pi
        for path in scene.files.keys where path.hasPrefix("/sys/devices") || path.hasPrefix("/proc/device-tree") {
            scene.files[path] = nil
        }
        for path in scene.links.keys where path.hasPrefix("/sys") || path.hasPrefix("/dev") { scene.links[path] = nil }
        scene.source = "kind = \"serial\"\npath = \"/dev/ttyS0\""
        scene.files["/dev/ttyS0"] = ""
        scene.files["/sys/devices/pnp0/00:04/tty/ttyS0/dev"] = "4:64\n"
        scene.links["/sys/class/tty/ttyS0"] = "../../devices/pnp0/00:04/tty/ttyS0"
        scene.files["/proc/tty/driver/serial"] =
            "serinfo:1.0 driver revision:\n0: uart:16550A port:3F8 irq:4 tx:0 rx:9 fe:77\n"
        scene.files["/proc/self/mountinfo"] = "24 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        scene.files["/sys/devices/pci/sda/sda1/partition"] = "1\n"
        scene.links["/sys/dev/block/8:1"] = "../../devices/pci/sda/sda1"
        scene.modes = ["/dev/ttyS0": 0o660]
        return scene
    }

    /// No systemd, no udev, no kernel log; gpsd on the host.
    static var container: Scene {
        var scene = Scene()
        scene.source = "kind = \"gpsd\"\nhost = \"172.17.0.1\""
        scene.files = [
            "/proc/cmdline": "quiet\n", "/proc/1/comm": "waypost\n", "/proc/1/cmdline": "waypost\0run\0",
            "/proc/self/mountinfo":
                "24 1 0:50 / / rw - overlay overlay rw\n30 24 8:1 /v /var/lib/waypost rw - ext4 /dev/sda1 rw\n",
            "/var/lib/waypost/outbox.db": "",
        ]
        scene.unit = nil
        scene.kernelLog = nil
        scene.isClockSynchronised = nil
        scene.more = upload
        scene.status.source.baud = nil
        scene.status.source.bestCN0 = nil
        scene.status.source.satellitesStrong = nil
        return scene
    }

    /// The same host without systemd: the daemon is process 500 all the same.
    mutating func loseSystemd() {
        files["/run/systemd/system/units"] = nil
        unit = nil
    }

    private static var group: gid_t { getegid() }

    static var goodStatus: Status {
        var status = Status()
        status.version = AgentVersion.current
        status.health = "ok"
        status.uptime = 86_400
        status.motion.lastFix = "2026-11-20T09:59:58.500Z"
        status.motion.lastFixAge = 1.5
        status.source.state = "receiving"
        (status.source.bytes, status.source.sentences, status.source.fixes) = (600_000, 9000, 1000)
        status.source.baud = 9600
        (status.source.satellitesUsed, status.source.satellitesInView) = (9, 14)
        (status.source.satellitesStrong, status.source.bestCN0, status.source.medianCN0) = (10, 47, 38)
        status.source.antenna = "ok"
        return status
    }

    func examined() throws -> Examination {
        let folder = try MadeHost.folder(.init(files: files, links: links, modes: modes, listed: listed))
        let loaded = try MadeHost.configuration("[source]\n\(source)\n\(more)")
        var configuration = configurationFound ?? .valid(loaded)
        if keepsLastGood, case .invalid(let problems, _) = configuration {
            configuration = .invalid(problems, lastGood: loaded)
        }
        var evidence = Evidence(
            host: HostFolder(root: folder), configurationPath: configurationPath,
            configuration: configuration,
            daemon: daemon ?? .answers(status))
        evidence.bytesPerSecond = bytesPerSecond
        evidence.unit = unit
        evidence.answering = answering
        evidence.kernelLog = kernelLog
        evidence.uptime = 90_000
        evidence.wallClock = wallClock
        evidence.isClockSynchronised = isClockSynchronised
        evidence.reaches = reaches
        evidence.settingsReach = settingsReach
        evidence.untried = untried
        evidence.watchdogTimeouts = watchdogTimeouts
        evidence.clientCertificates = clientCertificates
        evidence.diskSpace = diskSpace
        evidence.queue = queue
        return Examination(evidence, version: "1.2.3")
    }
}

/// The files of hosts on disk, and their configurations. Most cases change only a value, so hosts with the same files share a
/// folder, and a text is read once.
private enum MadeHost {
    struct Files: Hashable {
        var files: [String: String]
        var links: [String: String]
        var modes: [String: mode_t]
        var listed: [String: UInt32]
    }

    private static let folders = Mutex<[Files: TemporaryDirectory]>([:])
    private static let areRemovedAtExit = atexit { MadeHost.folders.withLock { $0 = [:] } } == 0

    private static let configurations = Mutex<[String: LoadedConfiguration]>([:])

    static func configuration(_ text: String) throws -> LoadedConfiguration {
        if let read = configurations.withLock({ $0[text] }) { return read }
        let read = try loaded(text, testEnvironment(requiresCredentials: false))
        configurations.withLock { $0[text] = read }
        return read
    }

    static func folder(_ wanted: Files) throws -> String {
        try folders.withLock { folders in
            if let made = folders[wanted] { return made.path }
            guard areRemovedAtExit else { throw Failure("a handler at the exit") }
            let folder = try TemporaryDirectory()
            folders[wanted] = folder
            try make(wanted, in: folder.path)
            return folder.path
        }
    }

    private static func make(_ wanted: Files, in root: String) throws {
        for (path, text) in wanted.files { try write(text, to: root + path) }
        for (path, target) in wanted.links {
            try makeFolder((root + path).parentFolder)
            guard symlink(target, root + path) == 0 else { throw Failure(path) }
        }
        for (path, mode) in wanted.modes where chmod(root + path, mode) != 0 { throw Failure(path) }
        for (path, user) in wanted.listed {
            // user::rw-, user:USER:rw-, group::rw-, mask::rw-, other::---
            let entries: [(UInt16, UInt16, UInt32)] = [
                (0x01, 6, .max), (0x02, 6, user), (0x04, 6, .max), (0x10, 6, .max), (0x20, 0, .max),
            ]
            var list: [UInt8] = [2, 0, 0, 0]
            for (tag, granted, id) in entries {
                withUnsafeBytes(of: tag) { list += $0 }
                withUnsafeBytes(of: granted) { list += $0 }
                withUnsafeBytes(of: id) { list += $0 }
            }
            guard setxattr(root + path, "system.posix_acl_access", list, list.count, 0) == 0 else {
                throw Failure(path)
            }
        }
    }

    private struct Failure: Error, CustomStringConvertible {
        var description: String
        init(_ path: String) { description = "cannot make \(path)" }
    }

    private static func write(_ text: String, to path: String) throws {
        try makeFolder(path.parentFolder)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Failure(path) }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw Failure(path) }
    }

    private static func makeFolder(_ path: String) throws {
        if path.isEmpty || access(path, F_OK) == 0 { return }
        try makeFolder(path.parentFolder)
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw Failure(path) }
    }
}

extension String {
    fileprivate var parentFolder: String { lastIndex(of: "/").map { String(self[..<$0]) } ?? "" }
}

extension Examination {
    func finding(_ number: Int) -> Finding? { results.first { $0.check.number == number }?.finding }

    func state(_ number: Int) -> Finding.State? { finding(number)?.state }

    var states: [Int: Finding.State] {
        Dictionary(uniqueKeysWithValues: results.map { ($0.check.number, $0.finding.state) })
    }
}

/// Of glibc, but not in Swift's module of it.
@_silgen_name("setxattr")
private func setxattr(
    _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ value: UnsafeRawPointer, _ size: Int, _ flags: Int32
) -> Int32
