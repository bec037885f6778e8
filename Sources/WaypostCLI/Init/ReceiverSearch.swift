import Doctor
import WaypostCore

/// A serial line on which a receiver may be, and who uses it.
struct FoundLine: Equatable {
    /// A name that stays the same when it is plugged in again, where there is one.
    var path: String
    var node: String
    var isUSB: Bool
    /// Who uses it, for people; nil = nobody.
    var user: String?
    /// The rule of udev that gives the daemon access to it after each plug and boot; nil = it has that already.
    var rule: String?

    /// `ttyUSB0`
    var name: String { String(node.split(separator: "/").last ?? "") }
}

/// Finds lines on which a receiver may be, in the files of a host. It opens none of them.
struct ReceiverSearch {
    let host: HostFolder

    private static let claimedVendor = "1546"

    var lines: [FoundLine] {
        var lines: [FoundLine] = []
        func add(_ path: String, isUSB: Bool) {
            guard let node = host.resolved(path), !lines.contains(where: { $0.node == node }) else { return }
            lines.append(
                FoundLine(path: path, node: node, isUSB: isUSB, user: user(of: node), rule: rule(for: node)))
        }
        // The names that udev's own rules give, first by the receiver's own.
        for name in host.names("/dev/serial/by-id") ?? [] { add("/dev/serial/by-id/\(name)", isUSB: true) }
        let nodes = host.names("/dev") ?? []
        for name in nodes where name.hasPrefix("ttyACM") || name.hasPrefix("ttyUSB") {
            add("/dev/\(name)", isUSB: true)
        }
        if nodes.contains("serial0") { add("/dev/serial0", isUSB: false) }
        for name in nodes where name.hasPrefix("ttyAMA") || name.hasPrefix("ttyS") {
            // Most of them are numbers without a chip.
            guard host.exists("/sys/class/tty/\(name)/device"), host.word("/sys/class/tty/\(name)/type") != "0" else {
                continue
            }
            add("/dev/\(name)", isUSB: false)
        }
        return lines
    }

    /// One of another name, which somebody names.
    func line(named path: String) -> FoundLine {
        let node = host.resolved(path) ?? path
        return FoundLine(path: path, node: node, isUSB: false, user: user(of: node), rule: nil)
    }

    /// What has to be done on a Raspberry Pi before a receiver on its pins can be read; empty = nothing.
    var remarks: [String] {
        guard host.isRaspberryPi else { return [] }
        let boot = host.exists("/boot/firmware") ? "/boot/firmware" : "/boot"
        var remarks: [String] = []
        let command = host.word("\(boot)/cmdline.txt") ?? ""
        let isConsole = command.split(separator: " ").contains { word in
            ["console=serial0", "console=ttyAMA0", "console=ttyS0"].contains { word.hasPrefix($0) }
        }
        if isConsole {
            remarks.append(
                "the serial console uses the pins (\(boot)/cmdline.txt): sudo raspi-config nonint do_serial_cons 1, then reboot"
            )
        }
        let settings = (host.lines("\(boot)/config.txt") ?? []).map { $0.filter { $0 != " " } }
        if !settings.contains("enable_uart=1"), !host.exists("/dev/serial0") {
            remarks.append(
                "the pins have no serial line yet (\(boot)/config.txt): sudo raspi-config nonint do_serial_hw 0, then reboot"
            )
        }
        return remarks
    }

    /// gpsd takes each receiver that is plugged in.
    var isTakenByGPSD: Bool {
        (host.lines("/etc/default/gpsd") ?? []).contains { line in
            let bare = line.filter { $0 != "\"" && $0 != " " }
            return bare == "USBAUTO=true"
        }
    }

    private func user(of node: String) -> String? {
        let name = node.split(separator: "/").last.map(String.init) ?? node
        for process in host.processes {
            guard let program = host.program(of: process) else { continue }
            let holds = (host.names("/proc/\(process)/fd") ?? []).contains {
                host.link("/proc/\(process)/fd/\($0)") == node
            }
            let isLogin =
                program == "agetty"
                && (host.text("/proc/\(process)/cmdline") ?? "").split(separator: "\0").contains {
                    $0 == name || $0 == node
                }
            if isLogin { return "a login prompt (process \(process))" }
            if holds { return program == "waypost" ? "the waypost daemon" : "\(program) (process \(process))" }
        }
        let consoles = (host.word("/proc/cmdline") ?? "").split(separator: " ").filter { $0.hasPrefix("console=") }
            .map { $0.dropFirst("console=".utf8.count).prefix { $0 != "," } }
        let isConsole = consoles.contains { $0 == name || host.resolved("/dev/\($0)") == node }
        return isConsole ? "the console of the kernel" : nil
    }

    /// - Parameter node: without links.
    private func rule(for node: String) -> String? {
        let name = node.split(separator: "/").last.map(String.init) ?? node
        var folder = host.resolved("/sys/class/tty/\(name)/device") ?? ""
        while folder.utf8.count > 1 {
            if let vendor = host.word("\(folder)/idVendor"), let product = host.word("\(folder)/idProduct") {
                guard vendor != Self.claimedVendor else { return nil }
                let serial = host.word("\(folder)/serial").flatMap { text in
                    text.utf8.allSatisfy { $0.isWordByte } ? ", ATTRS{serial}==\"\(text)\"" : nil
                }
                guard (vendor + product).utf8.allSatisfy({ $0.isWordByte }) else { return nil }
                return "SUBSYSTEM==\"tty\", SUBSYSTEMS==\"usb\", ATTRS{idVendor}==\"\(vendor)\", "
                    + "ATTRS{idProduct}==\"\(product)\"\(serial ?? ""), ENV{WAYPOST_GPS}=\"1\""
            }
            folder = folder.parentDirectory
        }
        return Self.rule(forUART: name)
    }

    static func rule(forUART name: String) -> String? {
        guard !name.isEmpty, name.utf8.allSatisfy({ $0.isWordByte }) else { return nil }
        return "SUBSYSTEM==\"tty\", KERNEL==\"\(name)\", ENV{WAYPOST_GPS}=\"1\""
    }
}

extension UInt8 {
    /// A letter, a digit, or one of `-._`: nothing that means anything in a rule of udev.
    fileprivate var isWordByte: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
