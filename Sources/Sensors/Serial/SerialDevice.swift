import CUdev

/// A serial line of USB that is plugged in.
package struct SerialDevice: Hashable, Sendable {
    /// `/dev/ttyACM0`; may change when plugged in again.
    package var node: String
    package var usb: USBIdentity

    package init(node: String, usb: USBIdentity) {
        self.node = node
        self.usb = usb
    }

    /// Those that the kernel has now, lowest number first. Reads sysfs, and what udevd noted where it runs.
    package static func all() -> [SerialDevice] {
        guard let context = udev_new() else { return [] }
        defer { udev_unref(context) }
        guard let search = udev_enumerate_new(context) else { return [] }
        defer { udev_enumerate_unref(search) }
        guard udev_enumerate_add_match_subsystem(search, "tty") >= 0, udev_enumerate_scan_devices(search) >= 0 else {
            return []
        }
        var found: [SerialDevice] = []
        var entry = udev_enumerate_get_list_entry(search)
        while let current = entry {
            entry = udev_list_entry_get_next(current)
            guard let path = udev_list_entry_get_name(current) else { continue }
            // The consoles, which are most of them.
            if String(cString: path).hasPrefix("/sys/devices/virtual/") { continue }
            guard let device = udev_device_new_from_syspath(context, path) else { continue }
            defer { udev_device_unref(device) }
            if let line = SerialDevice(device) { found.append(line) }
        }
        return found.sorted { ($0.node.utf8.count, $0.node) < ($1.node.utf8.count, $1.node) }
    }

    /// nil without a node, or when it is not on USB.
    private init?(_ device: OpaquePointer) {
        guard let node = udev_device_get_devnode(device) else { return nil }
        let parent = udev_device_get_parent_with_subsystem_devtype(device, "usb", "usb_device")
        // The parent's own attributes are there without udevd.
        func text(_ attribute: String, _ property: String) -> String? {
            let value =
                parent.flatMap { udev_device_get_sysattr_value($0, attribute) }
                ?? udev_device_get_property_value(device, property)
            return value.map { String(cString: $0) }
        }
        guard let vendor = text("idVendor", "ID_VENDOR_ID").flatMap({ UInt16($0, radix: 16) }),
            let product = text("idProduct", "ID_MODEL_ID").flatMap({ UInt16($0, radix: 16) })
        else { return nil }
        self.init(
            node: String(cString: node),
            usb: USBIdentity(vendor: vendor, product: product, serial: text("serial", "ID_SERIAL_SHORT")))
    }
}

/// What is known of a USB device whatever port it is plugged into; in a search, nil matches anything.
package struct USBIdentity: Hashable, Sendable, CustomStringConvertible {
    package var vendor: UInt16?
    package var product: UInt16?
    /// As the device reports it. Not every device has one, and cheap adapters share theirs.
    package var serial: String?

    package init(vendor: UInt16? = nil, product: UInt16? = nil, serial: String? = nil) {
        self.vendor = vendor
        self.product = product
        self.serial = serial
    }

    /// - Parameter id: `1546:01a8`, four hexadecimal digits each.
    package init?(id: String, serial: String? = nil) {
        let parts = id.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.utf8.count == 4 && $0.utf8.allSatisfy { UInt8(ascii: "+") != $0 } }),
            let vendor = UInt16(parts[0], radix: 16), let product = UInt16(parts[1], radix: 16)
        else { return nil }
        self.init(vendor: vendor, product: product, serial: serial)
    }

    /// `1546:01a8`; nil unless both are known.
    package var id: String? {
        guard let vendor, let product else { return nil }
        return [vendor, product].map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }.joined(separator: ":")
    }

    package var description: String { [id, serial].compactMap { $0 }.joined(separator: " ") }

    package func matches(_ device: USBIdentity) -> Bool {
        (vendor == nil || vendor == device.vendor) && (product == nil || product == device.product)
            && (serial == nil || serial == device.serial)
    }
}

extension SerialSettings {
    /// Whether the gpsd of this host has the line on its list.
    package var isHeldByGPSD: Bool {
        guard let node = try? device.node(among: SerialDevice.all) else { return false }
        return GPSDInquiry.hasLine([node], host: gpsd)
    }
}

/// Which line a receiver is on, by a name that stays the same when it is plugged in again.
package enum SerialName: Hashable, Sendable, CustomStringConvertible {
    /// A node or a link to one: `/dev/serial/by-id/…`, `/dev/waypost/gps`.
    case path(String)
    case usb(USBIdentity)

    package var description: String {
        switch self {
        case .path(let path): path
        case .usb(let identity): "usb \(identity)"
        }
    }

    /// Why no line has this name now, for people; nil = one has, or that shows only when it is opened.
    package var absence: String? {
        do throws(SourceProblem) {
            _ = try node(among: SerialDevice.all)
            return nil
        } catch { return error.description }
    }

    /// The node to open now.
    ///
    /// - Parameter devices: asks what is plugged in.
    func node(among devices: () -> [SerialDevice]) throws(SourceProblem) -> String {
        switch self {
        case .path(let path): return path
        case .usb(let wanted):
            let present = devices()
            if let found = present.first(where: { wanted.matches($0.usb) }) { return found.node }
            let others = present.prefix(4).map { "\($0.node) (\($0.usb))" }.joined(separator: ", ")
            throw SourceProblem(
                "no serial line of \(self) is plugged in; there "
                    + (others.isEmpty ? "is no USB serial device at all" : "are \(others)"))
        }
    }
}
