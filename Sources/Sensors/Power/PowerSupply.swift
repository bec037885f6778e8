import WaypostCore

/// One entry of /sys/class/power_supply as read from its files.
///
/// Source: linux/Documentation/ABI/testing/sysfs-class-power.
package struct PowerSupply: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case battery, ups, mains, usb, wireless
        /// Fuel gauges and converters that vendors add beside the real one.
        case other
    }

    package enum Status: Hashable, Sendable {
        case charging, discharging, notCharging, full
    }

    /// What is left and what there is when full, both in µWh or both in µAh.
    package struct Store: Hashable, Sendable {
        package var now: Double
        package var full: Double

        /// nil unless it makes a level: `full` is above 0, `now` not below.
        package init?(now: Int64?, full: Int64?) {
            guard let now, let full, now >= 0, full > 0 else { return nil }
            self.now = Double(now)
            self.full = Double(full)
        }
    }

    /// `BAT0`, `AC`
    package var name: String
    package var kind: Kind
    /// It is the battery of a mouse or keyboard, not of this host.
    package var isOfPeripheral: Bool
    /// The battery is in its bay.
    package var isPresent: Bool
    /// 0…100 as the gauge says; nil = unknown.
    package var capacity: Int?
    /// nil = unknown.
    package var status: Status?
    package var energy: Store?
    package var charge: Store?
    /// It feeds the host; nil = not reported.
    package var isOnline: Bool?
    /// Reading a file that exists failed or gave nonsense.
    package var isUnreadable: Bool

    /// What a file of the entry holds.
    package enum Attribute: Hashable, Sendable {
        case text([UInt8])
        /// The supply has no such file.
        case absent
        /// It has, and reading it fails (ENODEV while it is removed, EIO on a bad bus).
        case unreadable
    }

    /// Asks for as few files as possible: each may be a slow transfer on a bus. Of peripherals, which may sleep for
    /// seconds before they answer, it asks nothing beyond what they are, unless they are wanted.
    ///
    /// - Parameters:
    ///   - isWanted: named in the configuration: asked whatever it is.
    ///   - read: the file of a name.
    package init(name: String, isWanted: Bool = false, read: (String) -> Attribute) {
        self.name = name
        kind = Kind(Self.word(read("type")))
        isOfPeripheral = Self.word(read("scope")) == "Device"
        isPresent = true
        isUnreadable = false
        guard isWanted || !isOfPeripheral && kind != .other else { return }
        isPresent = Self.word(read("present")) != "0"
        if isWanted || kind == .battery || kind == .ups, isWanted || isPresent { readBattery(read) }
        if isWanted || kind != .battery { readOnline(read) }
    }

    private mutating func readBattery(_ read: (String) -> Attribute) {
        status = Status(Self.word(read("status")))
        energy = Store(now: Self.integer(read("energy_now")), full: Self.integer(read("energy_full")))
        charge = Store(now: Self.integer(read("charge_now")), full: Self.integer(read("charge_full")))
        let text = read("capacity")
        // Some gauges say above 100 when full; one that says below 0 does not know.
        if let value = Self.integer(text), value >= 0 {
            capacity = Int(min(100, value))
        } else if text != .absent {
            isUnreadable = true
        }
    }

    private mutating func readOnline(_ read: (String) -> Attribute) {
        let text = read("online")
        if let value = Self.integer(text), value >= 0 {
            isOnline = value >= 1
        } else if text != .absent {
            isUnreadable = true
        }
    }

    private static func word(_ attribute: Attribute) -> String? {
        guard case .text(let bytes) = attribute else { return nil }
        return String(decoding: bytes.trimming { $0 <= 0x20 }, as: UTF8.self)
    }

    /// The whole text as a number; nil for anything else.
    private static func integer(_ attribute: Attribute) -> Int64? { word(attribute).flatMap { Int64($0) } }
}

extension PowerSupply.Kind {
    fileprivate init(_ word: String?) {
        self =
            switch word {
            case "Battery"?: .battery
            case "UPS"?: .ups
            case "Mains"?: .mains
            case "Wireless"?: .wireless
            // Older kernels report the kind of port: USB_DCP, USB_PD and others.
            case let word? where word.hasPrefix("USB"): .usb
            default: .other
            }
    }
}

extension PowerSupply.Status {
    fileprivate init?(_ word: String?) {
        switch word {
        case "Charging"?: self = .charging
        case "Discharging"?: self = .discharging
        case "Not charging"?: self = .notCharging
        case "Full"?: self = .full
        default: return nil
        }
    }
}
