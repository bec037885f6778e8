import CBus
import Glibc

/// A connection to the D-Bus of the system, which never waits: its owner watches the descriptor and calls `process`.
///
/// sd-bus is loaded with the first connection. There is no reconnection: who finds it gone makes another.
final class SystemBus {
    typealias Handler = (BusMessage) -> Void

    /// What sd-bus is given to call a handler by. It lives as long as the connection: an answer may come until then.
    private final class Registration {
        let handler: Handler
        let isOnce: Bool
        unowned let bus: SystemBus

        init(_ handler: @escaping Handler, isOnce: Bool, bus: SystemBus) {
            self.handler = handler
            self.isOnce = isOnce
            self.bus = bus
        }

        func call(_ message: OpaquePointer) {
            // It may end the connection, and itself.
            withExtendedLifetime(self) {
                if isOnce { bus.registrations[ObjectIdentifier(self)] = nil }
                handler(BusMessage(message))
            }
        }
    }

    enum OpenError: Error {
        case noLibrary
        /// An errno.
        case refused(Int32)
    }

    private let bus: OpaquePointer
    private var registrations: [ObjectIdentifier: Registration] = [:]

    init() throws(OpenError) {
        guard waypost_bus_load() else { throw .noLibrary }
        var opened: OpaquePointer?
        let result = waypost_bus_open(&opened)
        guard result >= 0, let opened else { throw .refused(-result) }
        bus = opened
    }

    deinit { waypost_bus_close(bus) }

    var descriptor: Int32 { waypost_bus_descriptor(bus) }

    /// Something waits to be written.
    var wantsToWrite: Bool { waypost_bus_events(bus) & Int32(POLLOUT) != 0 }

    /// From now until it wants to be called; nil = not before the descriptor is ready.
    var timeout: Duration? {
        let microseconds = waypost_bus_timeout(bus)
        return microseconds == .max ? nil : .microseconds(Int64(clamping: microseconds))
    }

    /// Handles what has come, at most this many messages.
    /// - Returns: false when the connection is gone.
    func process(messagesMax: Int) -> Bool {
        for _ in 0..<messagesMax {
            let result = waypost_bus_process(bus)
            if result < 0 { return false }
            if result == 0 { return true }
        }
        return true
    }

    private static let callback: waypost_bus_handler = { message, context, _ in
        guard let message, let context else { return 0 }
        Unmanaged<Registration>.fromOpaque(context).takeUnretainedValue().call(message)
        return 0
    }

    private func register(_ handler: @escaping Handler, isOnce: Bool) -> UnsafeMutableRawPointer {
        let registration = Registration(handler, isOnce: isOnce, bus: self)
        registrations[ObjectIdentifier(registration)] = registration
        return Unmanaged.passUnretained(registration).toOpaque()
    }

    /// - Parameter rule: as of `dbus-monitor(1)`.
    func match(_ rule: String, _ handler: @escaping Handler) -> Bool {
        waypost_bus_match(bus, rule, Self.callback, register(handler, isOnce: false)) >= 0
    }

    struct Method {
        var name: String
        var path: String
        var interface: String
        var method: String
    }

    /// - Parameter answered: with an error after 20 s at the latest.
    func call(_ method: Method, _ first: String? = nil, _ second: String? = nil, answered: @escaping Handler) -> Bool {
        waypost_bus_call(
            bus, method.name, method.path, method.interface, method.method, first, second, Self.callback,
            register(answered, isOnce: true)) >= 0
    }

    /// Without an answer.
    func send(_ method: Method) {
        _ = waypost_bus_call(
            bus, method.name, method.path, method.interface, method.method, nil, nil, nil, nil)
    }

    /// The adapter reports each advertisement of Low Energy.
    func filterDiscovery(of adapter: String, answered: @escaping Handler) -> Bool {
        waypost_bus_filter_discovery(bus, adapter, Self.callback, register(answered, isOnce: true)) >= 0
    }
}
