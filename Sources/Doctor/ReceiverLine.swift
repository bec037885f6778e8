import Configuration
import Sensors
import WaypostCore

/// Where the receiver of the configuration is on this host.
enum ReceiverPlace {
    /// A serial line that is there.
    case line(ReceiverLine)
    /// It should be here and is not.
    case missing(SerialName)
    /// Behind gpsd, on the network or in a file: no serial line that waypost opens. In words.
    case elsewhere(String)
    /// The configuration is not known.
    case unknown
}

/// A serial line as the kernel and udev describe it.
struct ReceiverLine {
    /// As configured, or the node found for a USB identity.
    var path: String
    /// Without links: `/dev/ttyUSB0`.
    var node: String
    /// `/dev/serial/by-id/…`, for advice; nil where there is none.
    var stablePath: String?
    /// `188:0`; nil where neither the kernel nor the node shows it.
    var number: String?
    /// The folder of its USB device; nil when it is not on USB.
    var usbFolder: String?
    var usb: USBIdentity?

    /// `ttyUSB0`
    var name: String { String(node.split(separator: "/").last ?? "") }

    var major: Int? { number?.split(separator: ":").first.flatMap { Int($0) } }

    init(path: String, node: String, on host: HostFolder) {
        self.path = path
        self.node = node
        stablePath = host.stablePath(of: node)
        let folder = "/sys/class/tty/\(node.split(separator: "/").last ?? "")"
        // A pseudo-terminal has a node alone.
        number = host.word("\(folder)/dev") ?? host.deviceNumber(node)
        usbFolder = host.usbFolder(of: "\(folder)/device")
        usb = usbFolder.map(host.usbIdentity)
    }

    /// What udev noted: properties by name; nil where udevd does not run or noted nothing.
    func properties(on host: HostFolder) -> [String: String]? {
        number.flatMap { host.udevProperties("c\($0)") }
    }
}

extension HostFolder {
    private static let linksMax = 64

    /// A name of a node that stays when it is plugged in again, or the next boot counts otherwise.
    func stablePath(of node: String) -> String? {
        for folder in ["/dev/serial/by-id", "/dev/serial/by-path"] {
            for name in (names(folder) ?? []).prefix(Self.linksMax) where resolved("\(folder)/\(name)") == node {
                return "\(folder)/\(name)"
            }
        }
        return ["/dev/serial0", "/dev/serial1"].first { resolved($0) == node }
    }

    /// The USB device that a folder of sysfs belongs to.
    func usbFolder(of path: String) -> String? {
        guard var folder = resolved(path) else { return nil }
        while folder.utf8.count > "/sys/devices".utf8.count {
            if exists("\(folder)/idVendor") { return folder }
            folder = folder.parentDirectory
        }
        return nil
    }

    func usbIdentity(_ folder: String) -> USBIdentity {
        func number(_ name: String) -> UInt16? { word("\(folder)/\(name)").flatMap { UInt16($0, radix: 16) } }
        return USBIdentity(vendor: number("idVendor"), product: number("idProduct"), serial: word("\(folder)/serial"))
    }

    /// Of a device in the database of udev.
    func udevProperties(_ device: String) -> [String: String]? {
        guard let lines = lines("/run/udev/data/\(device)") else { return nil }
        var properties: [String: String] = [:]
        for line in lines where line.hasPrefix("E:") {
            let parts = line.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { properties[String(parts[0])] = String(parts[1]) }
        }
        return properties
    }

    /// Serial lines with a device behind them that could be a receiver: on USB, or a UART of the board.
    var serialLines: [String] {
        // First those that udev names by their own identity, whatever the kernel calls them.
        var nodes: [String] = []
        for name in (names("/dev/serial/by-id") ?? []).prefix(Self.linksMax) {
            if let node = resolved("/dev/serial/by-id/\(name)"), exists(node), !nodes.contains(node) {
                nodes.append(node)
            }
        }
        for name in names("/sys/class/tty") ?? []
        where ["ttyUSB", "ttyACM", "ttyAMA", "ttyTHS", "ttymxc"].contains(where: { name.hasPrefix($0) }) {
            if exists("/dev/\(name)"), !nodes.contains("/dev/\(name)") { nodes.append("/dev/\(name)") }
        }
        return nodes
    }
}

extension Evidence {
    var receiver: ReceiverPlace {
        guard let source = config?.source else { return .unknown }
        switch source {
        case .gpsd(let settings): return .elsewhere("gpsd at \(settings.host):\(settings.port)")
        case .file: return .elsewhere("a file")
        case .tcp(let settings): return .elsewhere("TCP \(settings.host):\(settings.port)")
        case .udp(let settings): return .elsewhere("UDP port \(settings.port)")
        case .serial(let settings):
            switch settings.device {
            case .path(let path):
                guard let node = host.resolved(path) else { return .missing(settings.device) }
                return .line(ReceiverLine(path: path, node: node, on: host))
            case .usb(let wanted):
                for node in host.serialLines {
                    let line = ReceiverLine(path: node, node: node, on: host)
                    if let usb = line.usb, wanted.matches(usb) { return .line(line) }
                }
                return .missing(settings.device)
            }
        }
    }

    /// Passes on what does not depend on a line: one that is not here, or is not known.
    func onLine(_ examine: (ReceiverLine) -> Finding) -> Finding {
        switch receiver {
        case .line(let line): examine(line)
        case .missing(let name): .unknown("\(name) is not there")
        case .elsewhere(let words): .ok("does not apply: the source is \(words)")
        case .unknown: noConfiguration
        }
    }
}
