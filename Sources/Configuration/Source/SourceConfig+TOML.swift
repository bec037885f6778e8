import Sensors
import WaypostCore
import WaypostNMEA

extension SourceConfig {
    fileprivate enum Kind: String, CaseIterable { case serial, gpsd, file, tcp, udp }

    /// nil when the table does not define the source.
    init?(reading table: TableReader) {
        if !table.isWritten {
            table.report("kind", "found nothing, expected [source], which says where the fixes come from")
        }
        let kind = table.require("kind", as: .sourceKind)
        let keys = Keys(table, kind)
        var decoder = NMEADecoder.Settings(live: kind != .file)
        decoder.read(table, buildDate: table.environment.buildDate, readsSentences: kind != .gpsd)
        guard let kind else { return nil }
        keys.check(table, kind)

        switch kind {
        case .serial:
            guard let device = keys.device else { return nil }
            self = .serial(
                SerialSettings(device: device, speed: keys.speed, staleness: keys.staleness, decoder: decoder))
        case .gpsd:
            self = .gpsd(
                GPSDSettings(
                    host: keys.daemonHost, port: keys.daemonPort, device: keys.gpsdDevice, staleness: keys.staleness,
                    decoder: decoder))
        case .file:
            guard let path = keys.path else { return nil }
            self = .file(
                FileSettings(
                    path: path, follow: keys.follow, playback: keys.playback, staleness: keys.staleness,
                    decoder: decoder))
        case .tcp:
            guard let host = keys.host, let port = keys.port else { return nil }
            self = .tcp(TCPSettings(host: host, port: port, staleness: keys.staleness, decoder: decoder))
        case .udp:
            guard let port = keys.port else { return nil }
            self = .udp(
                UDPSettings(
                    host: keys.host ?? "127.0.0.1", port: port, from: keys.from, staleness: keys.staleness,
                    decoder: decoder))
        }
    }

    /// The keys of all kinds.
    private struct Keys {
        var path: String?
        var usb: USBIdentity?
        var serialNumber: String?
        var speed = SerialSettings.Speed.auto
        var host: String?
        var port: UInt16?
        var daemonHost = "localhost"
        var daemonPort: UInt16 = 2947
        var gpsdDevice: String?
        var from: String?
        var playback = FileSettings.Playback.maximum
        var follow = false
        var staleness = Duration.seconds(5)

        private static let homes: [(key: String, kinds: [Kind])] = [
            ("path", [.serial, .file]), ("usb_id", [.serial]), ("serial_number", [.serial]), ("baud", [.serial]),
            ("host", [.gpsd, .tcp, .udp]), ("port", [.gpsd, .tcp, .udp]), ("device", [.gpsd]),
            ("from", [.udp]), ("playback", [.file]), ("follow", [.file]),
            ("talker", [.serial, .file, .tcp, .udp]), ("allow_missing_checksum", [.serial, .file, .tcp, .udp]),
        ]
        private static let needed: [(key: String, kinds: [Kind], what: String)] = [
            ("path", [.file], "the path of the file"), ("host", [.tcp], "a host name or address"),
            ("port", [.tcp, .udp], "a port from 1 to 65535"),
        ]

        init(_ table: TableReader, _ kind: Kind?) {
            // A key of another kind is known, but has no value that would be in force.
            func read<Value>(_ key: String, into value: inout Value, as form: ValueForm<Value>) {
                if Self.means(key, kind) { table.read(key, into: &value, as: form) } else { _ = table.take(key) }
            }
            func read<Value>(_ key: String, into value: inout Value?, as form: ValueForm<Value>) {
                if Self.means(key, kind) { table.read(key, into: &value, as: form) } else { _ = table.take(key) }
            }
            read("path", into: &path, as: .sourcePath)
            read("usb_id", into: &usb, as: .usbID)
            read("serial_number", into: &serialNumber, as: .text("the serial number of a USB device"))
            read("baud", into: &speed, as: .baud)
            if kind == .gpsd {
                table.read("host", into: &daemonHost, as: .host)
                table.read("port", into: &daemonPort, as: .port)
            } else {
                read("host", into: &host, as: .host)
                read("port", into: &port, as: .port)
            }
            read("device", into: &gpsdDevice, as: .text("a device as gpsd calls it, such as \"/dev/ttyACM0\""))
            read("from", into: &from, as: .text("an address in digits"))
            read("playback", into: &playback, as: .playback)
            read("follow", into: &follow, as: .flag)
            table.read("stale_after", into: &staleness, as: .duration(.between(1, 3600)))
        }

        /// The name of a serial line; nil when there is none.
        var device: SerialName? {
            if let path { return .path(path) }
            guard usb != nil || serialNumber != nil else { return nil }
            return .usb(USBIdentity(vendor: usb?.vendor, product: usb?.product, serial: serialNumber))
        }

        private static func means(_ key: String, _ kind: Kind?) -> Bool {
            guard let kind, let home = Self.homes.first(where: { $0.key == key }) else { return true }
            return home.kinds.contains(kind)
        }

        /// Reports keys that a kind lacks, and keys that it does not use.
        func check(_ table: TableReader, _ kind: Kind) {
            for (key, kinds) in Self.homes where table.has(key) && !kinds.contains(kind) {
                let right = kinds.map { "kind = \($0.rawValue.asTOML)" }.joined(separator: " or ")
                table.report(key, "found with kind = \(kind.rawValue.asTOML), expected only with \(right)")
            }
            if kind == .serial { checkLine(table) }
            for (key, kinds, what) in Self.needed where !table.has(key) && kinds.contains(kind) {
                table.report(key, "found nothing, expected \(what), which kind = \(kind.rawValue.asTOML) needs")
            }
        }

        /// The path alone names the line.
        private func checkLine(_ table: TableReader) {
            let others = ["usb_id", "serial_number"].filter(table.has)
            if !table.has("path"), others.isEmpty {
                table.report(
                    "path",
                    "found nothing, expected the path of the device, or usb_id or serial_number, of which "
                        + "kind = \(Kind.serial.rawValue.asTOML) needs one")
            }
            if table.has("path"), let other = others.first {
                table.report(other, "found together with path, expected one of the two: each names the receiver")
            }
        }
    }
}

extension NMEADecoder.Settings {
    private enum Repair: String, CaseIterable { case off, repair }

    /// - Parameter readsSentences: false = gpsd does, and the keys about sentences mean nothing.
    fileprivate mutating func read(_ table: TableReader, buildDate: CivilDate?, readsSentences: Bool) {
        // Old logs are legitimately old; an old date from a receiver that runs now is the rollover of its week number.
        var repair = live ? Repair.repair : .off
        table.read("rollover", into: &repair, as: .word(Repair.allCases.map { ($0.rawValue, $0) }))
        if repair == .repair, let buildDate { rollover = .repair(buildDate: buildDate) }
        if readsSentences {
            table.read("talker", into: &talker, as: .talker)
            table.read("allow_missing_checksum", into: &allowMissingChecksum, as: .flag)
        } else {
            for key in ["talker", "allow_missing_checksum"] { _ = table.take(key) }
        }

        let errors = table.table("range_error")
        let metres = ValueForm<Double>.distance(.between(0.001, 1000))
        errors.read("gps", into: &rangeErrors.gps, as: metres)
        errors.read("dgps", into: &rangeErrors.dgps, as: metres)
        errors.read("pps", into: &rangeErrors.pps, as: metres)
        errors.read("rtk", into: &rangeErrors.rtk, as: metres)
        errors.read("rtk_float", into: &rangeErrors.rtkFloat, as: metres)
        errors.read("dead_reckoning", into: &rangeErrors.deadReckoning, as: metres)
        errors.read("dead_reckoning_growth", into: &rangeErrors.deadReckoningGrowth, as: .distance(.between(0, 1000)))
    }
}

extension ValueForm where Value == SourceConfig.Kind {
    fileprivate static var sourceKind: ValueForm {
        word(SourceConfig.Kind.allCases.map { ($0.rawValue, $0) })
    }
}

extension ValueForm where Value == String {
    fileprivate static var sourcePath: ValueForm {
        text("an absolute path, or \"-\" for standard input") { $0.hasPrefix("/") || $0 == "-" ? nil : Mistake() }
    }

    fileprivate static var host: ValueForm {
        text("a host name or address") { $0.contains { $0 == "/" || $0.isWhitespace } ? Mistake() : nil }
    }

    fileprivate static var talker: ValueForm {
        text("a talker of two capital letters, such as \"GP\"") { text in
            text.utf8.count == 2 && text.utf8.allSatisfy { (65...90).contains($0) } ? nil : Mistake()
        }
    }
}

extension ValueForm where Value == USBIdentity {
    fileprivate static var usbID: ValueForm {
        let expected = "vendor and product as lsusb shows them, such as \"1546:01a8\""
        return ValueForm(
            expected: expected,
            read: { node, _ throws(Mistake) in
                guard case .string(let text) = node.value, let identity = USBIdentity(id: text) else { throw Mistake() }
                return identity
            },
            render: { ($0.id ?? "").asTOML })
    }
}

extension ValueForm where Value == UInt16 {
    fileprivate static var port: ValueForm {
        ValueForm<Int>.integer("a port", .between(1, 65_535)).map(to: { UInt16($0) }, from: { Int($0) })
    }
}

extension ValueForm where Value == SerialSettings.Speed {
    fileprivate static var baud: ValueForm {
        ValueForm(
            expected: "\"auto\" or one of \(LineSpeed.supported.map(String.init).joined(separator: ", "))",
            read: { node, _ throws(Mistake) in
                switch node.value {
                case .string("auto"): return .auto
                case .string(let text):
                    throw Mistake(suggestion: Int(text) != nil ? text : nearest(text, in: ["auto"])?.asTOML)
                case .integer(let baud):
                    if let speed = Int(exactly: baud).flatMap({ LineSpeed(baud: $0) }) { return .fixed(speed) }
                    throw Mistake(suggestion: nearest(String(baud), in: LineSpeed.supported.map { String($0) }))
                default: throw Mistake()
                }
            },
            render: { speed in
                switch speed {
                case .auto: "\"auto\""
                case .fixed(let speed): String(speed.baud)
                }
            })
    }
}

extension ValueForm where Value == FileSettings.Playback {
    fileprivate static var playback: ValueForm {
        let limits = Limits.between(0.001, 100_000.0)
        return ValueForm(
            expected: "\"recorded\", \"max\" or a factor above 0",
            read: { node, _ throws(Mistake) in
                switch node.value {
                case .string("recorded"): return .recorded(factor: 1)
                case .string("max"): return .maximum
                case .string(let text): throw Mistake(suggestion: nearest(text, in: ["recorded", "max"])?.asTOML)
                default:
                    guard let factor = node.finiteNumber, limits.contains(factor) else { throw Mistake() }
                    return .recorded(factor: factor)
                }
            },
            render: { playback in
                switch playback {
                case .maximum: "\"max\""
                case .recorded(let factor): factor == 1 ? "\"recorded\"" : factor.plain
                }
            })
    }
}
