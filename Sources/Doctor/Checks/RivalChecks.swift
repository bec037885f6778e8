import Sensors
import WaypostCore

/// What else on a host takes a serial line, or makes it unfit: checks 8 to 12.
enum RivalChecks {
    private static let rules = "/etc/udev/rules.d/69-waypost-local.rules"
    private static let modems: Set<UInt16> = [0x2C7C, 0x1E0E]

    static func modemManager(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard evidence.host.isRunning("ModemManager") else { return .ok("ModemManager does not run") }
            guard let noted = line.properties(on: evidence.host) else {
                return .unknown(
                    "ModemManager runs, and udev says nothing about \(line.node)", "udevadm info \(line.node.shellWord)"
                )
            }
            let isIgnored = ["ID_MM_DEVICE_IGNORE", "ID_MM_PORT_IGNORE"].contains { noted[$0] == "1" }
            guard noted["ID_MM_CANDIDATE"] == "1", !isIgnored else {
                return .ok("ModemManager leaves \(line.node) alone")
            }
            return .degraded(
                "ModemManager probes \(line.node) for half a minute after each plug-in",
                // Claims the receiver for waypost, which keeps ModemManager away: see `udev/70-waypost.rules`.
                adding(rule(line.usb, "ENV{WAYPOST_GPS}=\"1\"")))
        }
    }

    /// - Parameter kernelName: of a line that is no USB device; nil = every line.
    static func rule(_ usb: USBIdentity?, at kernelName: String? = nil, _ assignment: String) -> String {
        let match = usb?.match ?? kernelName.map { "KERNEL==\"\($0)\", " } ?? ""
        return "SUBSYSTEM==\"tty\", \(match)\(assignment)"
    }

    static func adding(_ rule: String) -> String { "echo '\(rule)' | sudo tee -a \(rules)" }

    static func brltty(_ evidence: Evidence) -> Finding {
        let folders = ["/usr/lib/udev/rules.d", "/lib/udev/rules.d", "/etc/udev/rules.d"]
        // 85-brltty.rules, 90-brltty-device.rules: the name depends on the distribution.
        let files = folders.flatMap { folder in
            (evidence.host.names(folder) ?? []).filter { $0.holds("brltty") && $0.hasSuffix(".rules") }
                .map { "\(folder)/\($0)" }
        }
        guard !files.isEmpty else {
            return evidence.host.names("/usr/lib/udev/rules.d") == nil && evidence.kernelLog == nil
                ? .unknown("neither the rules of udev nor the kernel log can be read", evidence.doctorAsRoot)
                : .ok("brltty is not installed")
        }
        if let line = evidence.kernelLog?.last(where: { $0.text.holds("brltty") && $0.text.holds("claimed") }) {
            return .broken("brltty took a serial adapter: \(line.text)", "sudo apt remove brltty")
        }
        if case .line(let line) = evidence.receiver, let usb = line.usb,
            files.contains(where: { evidence.host.takes(usb, byRulesOf: $0) })
        {
            return .degraded(
                "brltty is installed and takes adapters like that of \(line.node)", "sudo apt remove brltty")
        }
        return .ok("brltty is installed, and has no interest in this receiver")
    }

    static func serialConsole(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            let host = evidence.host
            let isPi = host.isRaspberryPi
            let advice =
                isPi
                ? "sudo raspi-config nonint do_serial_cons 1"
                : evidence.hasSystemd
                    ? "sudo systemctl mask --now \("serial-getty@\(line.name).service".shellWord)"
                    : "sudoedit /etc/inittab  # remove the line with \(line.name), then sudo kill -HUP 1"
            for process in host.processes where host.program(of: process) == "agetty" {
                let arguments = (host.text("/proc/\(process)/cmdline") ?? "").split(separator: "\0")
                if arguments.contains(where: { $0 == line.name || $0 == line.node }) {
                    return .broken("a login prompt runs on \(line.node)", advice)
                }
            }
            guard let command = host.word("/proc/cmdline") else {
                return .unknown("the command line of the kernel cannot be read", evidence.doctorAsRoot)
            }
            let consoles = command.split(separator: " ").filter { $0.hasPrefix("console=") }
                .map { $0.dropFirst("console=".utf8.count).prefix { $0 != "," } }
            guard consoles.contains(where: { host.resolved("/dev/\($0)") == line.node || $0 == line.name }) else {
                return .ok("\(line.node) is no console")
            }
            return .broken(
                "the kernel writes to \(line.node) (console= in its command line)",
                isPi ? advice : "sudoedit /etc/default/grub  # remove its console=, then sudo update-grub")
        }
    }

    static func piUART(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            let host = evidence.host
            guard host.isRaspberryPi else { return .ok("does not apply: no Raspberry Pi") }
            guard line.usbFolder == nil else { return .ok("does not apply: the receiver is on USB") }
            guard line.name == "ttyS0" else { return .ok("\(line.node) is a full UART") }
            let files = ["/boot/firmware/config.txt", "/boot/config.txt"]
            guard let file = files.first(where: host.exists), let lines = host.lines(file) else {
                return .unknown("config.txt cannot be read", "grep -E 'uart|core_freq|bt' /boot/firmware/config.txt")
            }
            let settings = lines.map { $0.filter { $0 != " " } }.filter { !$0.hasPrefix("#") }
            if settings.contains(where: { $0 == "enable_uart=1" || $0.hasPrefix("core_freq=") }) {
                return .ok("\(line.node) is the mini UART, with a fixed clock")
            }
            return .degraded(
                "\(line.node) is the mini UART, whose speed changes under load",
                "echo dtoverlay=disable-bt | sudo tee -a \(file)  # then use /dev/serial0, and reboot")
        }
    }

    static func modemReceiver(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard let vendor = line.usb?.vendor, modems.contains(vendor) else {
                return .ok("does not apply: the receiver is in no known modem")
            }
            guard let source = evidence.status?.source else { return evidence.noStatus }
            if source.sentences > 0 { return .ok("the modem sends sentences") }
            return .degraded(
                "the modem sends nothing: its receiver has to be switched on",
                "sudo mmcli -m any --location-enable-gps-unmanaged")
        }
    }
}

extension USBIdentity {
    /// The part of a udev rule that names the device. What it says of itself goes into a command only if it can mean
    /// nothing else there.
    fileprivate var match: String {
        func digits(_ number: UInt16) -> String {
            let text = String(number, radix: 16)
            return String(repeating: "0", count: 4 - text.utf8.count) + text
        }
        var match = "SUBSYSTEMS==\"usb\", "
        if let vendor { match += "ATTRS{idVendor}==\"\(digits(vendor))\", " }
        if let serial, serial.utf8.allSatisfy(\.isPlain) { match += "ATTRS{serial}==\"\(serial)\", " }
        return match
    }
}

extension HostFolder {
    /// Whether a file of brltty takes every adapter of that kind: a line that no `#` and no further condition keeps from it.
    fileprivate func takes(_ usb: USBIdentity, byRulesOf file: String) -> Bool {
        guard let vendor = usb.vendor, let product = usb.product else { return false }
        let match = "ENV{PRODUCT}==\"\(String(vendor, radix: 16))/\(String(product, radix: 16))/"
        return (lines(file) ?? []).contains { $0.hasPrefix(match) && !$0.holds("ATTRS{") }
    }

    package var isRaspberryPi: Bool { word("/proc/device-tree/model")?.hasPrefix("Raspberry Pi") ?? false }
}

extension String {
    func holds(_ text: String) -> Bool { firstOccurrence(of: text) != nil }

    /// As a word of a command that is pasted into a shell: a name from outside must not become a command of its own.
    var shellWord: String {
        if !isEmpty,
            utf8.allSatisfy({ $0.isPlain || [UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: ":")].contains($0) })
        {
            return self
        }
        return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}

extension UInt8 {
    /// A letter, a digit, or one of `-._`
    var isPlain: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self)
            || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self)
            || [UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_")].contains(self)
    }
}
