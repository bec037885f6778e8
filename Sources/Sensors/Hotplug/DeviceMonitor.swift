import CUdev
import Glibc

/// An event of one device, from udev or the kernel.
package struct DeviceEvent: Hashable, Sendable {
    /// `add`, `remove`, `change`, `bind` and others. A driver need not send `add`: some send `change` alone.
    package var action: String
    /// `tty`, `power_supply`
    package var subsystem: String
    /// The kernel's name: `ttyACM0`, `BAT0`.
    package var name: String
    /// `/dev/ttyACM0`; nil without a node.
    package var node: String?
    /// What rules and kernel know of it (`ID_SERIAL_SHORT`, `DEVLINKS`, …). Values may be older than those in sysfs.
    package var properties: [String: String]
}

/// Watches for devices that are added, changed and removed, through libudev.
///
/// Events only shorten a wait: where no udevd runs there may be none, and some are lost when many come at once.
package final class DeviceMonitor {
    /// More events wait for the next call, so that many of them cannot block the loop.
    private static let eventsMax = 64
    /// udevd's socket: without it libudev receives nothing on the channel of udevd.
    private static let udevd = "/run/udev/control"

    /// What the daemon's loop watches for input.
    package let descriptor: Int32
    private let monitor: OpaquePointer

    /// nil where the sandbox or the kernel gives no such socket.
    ///
    /// Where udevd runs, events come after its rules; elsewhere straight from the kernel, without links and permissions.
    ///
    /// - Parameter subsystems: `tty`, `power_supply`; events of others do not wake the process.
    package init?(subsystems: [String]) {
        guard let context = udev_new() else { return nil }
        defer { udev_unref(context) }
        let channel = access(Self.udevd, F_OK) == 0 ? "udev" : "kernel"
        guard let monitor = udev_monitor_new_from_netlink(context, channel) else { return nil }
        let isReady =
            subsystems.allSatisfy { udev_monitor_filter_add_match_subsystem_devtype(monitor, $0, nil) >= 0 }
            && udev_monitor_enable_receiving(monitor) >= 0
        let descriptor = udev_monitor_get_fd(monitor)
        guard isReady, descriptor >= 0 else {
            udev_monitor_unref(monitor)
            return nil
        }
        self.monitor = monitor
        self.descriptor = descriptor
    }

    /// Closes the descriptor, which the loop must have forgotten.
    deinit { udev_monitor_unref(monitor) }

    /// Handles the waiting events, without blocking.
    ///
    /// - Returns: false when events were lost: the state of all devices must be read again.
    package func drain(_ handle: (DeviceEvent) -> Void) -> Bool {
        for _ in 0..<Self.eventsMax {
            errno = 0
            guard let device = udev_monitor_receive_device(monitor) else { return errno != ENOBUFS }
            defer { udev_device_unref(device) }
            if let event = DeviceEvent(device) { handle(event) }
        }
        return true
    }
}

extension DeviceEvent {
    fileprivate init?(_ device: OpaquePointer) {
        guard let action = Self.text(udev_device_get_action(device)),
            let subsystem = Self.text(udev_device_get_subsystem(device)),
            let name = Self.text(udev_device_get_sysname(device))
        else { return nil }
        self.action = action
        self.subsystem = subsystem
        self.name = name
        node = Self.text(udev_device_get_devnode(device))
        properties = [:]
        var entry = udev_device_get_properties_list_entry(device)
        while let current = entry {
            if let key = Self.text(udev_list_entry_get_name(current)) {
                properties[key] = Self.text(udev_list_entry_get_value(current)) ?? ""
            }
            entry = udev_list_entry_get_next(current)
        }
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }
}
