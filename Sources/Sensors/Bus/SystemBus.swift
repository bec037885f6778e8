import CBus
import Glibc

/// A connection to one service on the D-Bus of the system, which never waits: its owner watches the descriptor and calls `process`.
///
/// Any client of the bus can address a signal to this process alone. The bus delivers it whatever was asked for, and sd-bus
/// hands it to each handler whose rule names a service. So a signal counts only if it comes from the connection that owns the
/// name of the service, and a change of that owner only if it comes from the bus. As long as the owner is not known, signals are
/// dropped; `ownerChanged` is when to read the state by calls. Calls are addressed to the connection of the owner.
///
/// sd-bus is loaded with the first connection. There is no reconnection: who finds it gone makes another.
final class SystemBus {
    typealias Handler = (BusMessage) -> Void

    private static let busName = "org.freedesktop.DBus"
    private static let nameOfBus = busName.utf8CString
    private static let getNameOwner = Method(path: "/org/freedesktop/DBus", interface: busName, method: "GetNameOwner")

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
    private let service: String
    private let ownerChanged: (Bool) -> Void
    /// The connection that owns the name of the service; nil = not known, or there is none.
    private var owner: ContiguousArray<CChar>?
    /// Of the service: an answer that belongs to an earlier one is dropped.
    private var life = 0
    private var isOwnerKnown = false
    private var isBroken = false

    /// - Parameters:
    ///   - service: its name on the bus, such as `org.bluez`.
    ///   - ownerChanged: called by `process` once it is known whether the service runs, and whenever another connection owns its
    ///     name: true = it runs, and nothing is known of its state.
    init(service: String, ownerChanged: @escaping (Bool) -> Void) throws(OpenError) {
        guard waypost_bus_load() else { throw .noLibrary }
        var opened: OpaquePointer?
        let result = waypost_bus_open(&opened)
        guard result >= 0, let opened else { throw .refused(-result) }
        bus = opened
        self.service = service
        self.ownerChanged = ownerChanged
        // The rule before the question: a change between the two would be missed.
        let isFollowed =
            add("type='signal',sender='\(Self.busName)',member='NameOwnerChanged',arg0='\(service)'") {
                [unowned self] signal in
                guard signal.isFrom(Self.nameOfBus) else { return }
                signal.skip("ss")
                setOwner(signal.string())
            }
            && call(Self.nameOfBus, Self.getNameOwner, service) { [unowned self] answer in
                guard let error = answer.error else { return setOwner(answer.string()) }
                if error.hasSuffix(".NameHasNoOwner") { setOwner(nil) } else { isBroken = true }
            }
        guard isFollowed else { throw .refused(ENOTCONN) }
    }

    deinit { waypost_bus_close(bus) }

    var descriptor: Int32 { waypost_bus_descriptor(bus) }

    /// The service runs, and can be called.
    var isServed: Bool { owner != nil }

    /// Something waits to be written.
    var wantsToWrite: Bool { waypost_bus_events(bus) & Int32(POLLOUT) != 0 }

    /// From now until it wants to be called; nil = not before the descriptor is ready.
    var timeout: Duration? {
        let microseconds = waypost_bus_timeout(bus)
        return microseconds == .max ? nil : .microseconds(Int64(clamping: microseconds))
    }

    /// Handles what has come, at most this many messages.
    /// - Returns: false when the connection is gone, or the bus does not say who owns the name.
    func process(messagesMax: Int) -> Bool {
        for _ in 0..<messagesMax {
            let result = waypost_bus_process(bus)
            if result < 0 || isBroken { return false }
            if result == 0 { return true }
        }
        return true
    }

    /// - Parameter name: nil or empty = nobody owns the name.
    private func setOwner(_ name: String?) {
        let new = name.flatMap { $0.isEmpty ? nil : $0.utf8CString }
        guard !isOwnerKnown || new != owner else { return }
        isOwnerKnown = true
        owner = new
        life += 1
        ownerChanged(new != nil)
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

    private func add(_ rule: String, _ handler: @escaping Handler) -> Bool {
        waypost_bus_match(bus, rule, Self.callback, register(handler, isOnce: false)) >= 0
    }

    /// Asks for signals of the service.
    /// - Parameter rule: what else they have, as in `dbus-monitor(1)`: `member='InterfacesAdded'`.
    func match(_ rule: String, _ handler: @escaping Handler) -> Bool {
        add("type='signal',sender='\(service)',\(rule)") { [unowned self] signal in
            if let owner, signal.isFrom(owner) { handler(signal) }
        }
    }

    struct Method {
        var path: String
        var interface: String
        var method: String
    }

    private func call(
        _ name: ContiguousArray<CChar>, _ method: Method, _ first: String? = nil, answered: Handler?
    ) -> Bool {
        name.withUnsafeBufferPointer { name in
            waypost_bus_call(
                bus, name.baseAddress, method.path, method.interface, method.method, first, nil,
                answered == nil ? nil : Self.callback, answered.map { register($0, isOnce: true) }) >= 0
        }
    }

    /// An answer counts only while the service lives that was asked.
    private func ofThisLife(_ answered: @escaping Handler) -> Handler {
        { [unowned self, life] in if life == self.life { answered($0) } }
    }

    /// Calls the service, which has to run.
    /// - Parameter answered: with an error after 20 s at the latest; not at all once another connection owns the name.
    func call(_ method: Method, answered: @escaping Handler) -> Bool {
        guard let owner else { return false }
        return call(owner, method, answered: ofThisLife(answered))
    }

    /// Without an answer.
    func send(_ method: Method) {
        if let owner { _ = call(owner, method, answered: nil) }
    }

    /// The adapter reports each advertisement of Low Energy.
    func filterDiscovery(of adapter: String, answered: @escaping Handler) -> Bool {
        guard let owner else { return false }
        return owner.withUnsafeBufferPointer {
            waypost_bus_filter_discovery(
                bus, $0.baseAddress, adapter, Self.callback, register(ofThisLife(answered), isOnce: true)) >= 0
        }
    }
}
