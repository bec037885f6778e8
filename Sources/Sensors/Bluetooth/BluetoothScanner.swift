import Glibc
import Places
import WaypostCore

/// Finds beacons through BlueZ, on the bus of the system.
///
/// It scans while that is wanted and possible. bluetoothd may end and come back, the adapter may be switched off, blocked
/// (rfkill) or unplugged at any time: that is a state with a reason, and is tried again.
package final class BluetoothScanner {
    package enum State: Hashable, Sendable {
        /// Not before it is asked again: with the reason.
        case impossible(String)
        /// Tried again by itself: with the reason.
        case waiting(String)
        /// Scanning is possible, and not wanted.
        case ready
        case scanning
    }

    package enum Event {
        case stateChanged(State)
        /// - rssi: dBm; nil = unknown.
        case sighted(BeaconAdvertisement, rssi: Int?)
    }

    /// Other devices than these are not remembered: a beacon that sends its data again is known again.
    private static let devicesMax = 512
    /// So that many messages cannot hold up the loop.
    private static let messagesMax = 256
    private static let bluez = "org.bluez"

    private var bus: SystemBus?
    private var adapter: (path: String, isPowered: Bool)?
    private var isDiscovering = false
    private var isWanted = false
    /// An answer about scanning is awaited.
    private var isAsked = false
    private var devices: [String: BeaconAdvertisement] = [:]
    private var retry = ScanRetry()
    private var lastFailure = ""
    private var now = EventTime.zero
    private var pending: [Event] = []
    package private(set) var state = State.waiting("not started")

    package init() {}

    /// What its owner watches; nil while there is no connection.
    package var descriptor: Int32? { bus?.descriptor }
    package var wantsToWrite: Bool { bus?.wantsToWrite ?? false }

    /// When to call `process(at:)` even if the descriptor is not ready.
    package func nextDeadline(at now: EventTime) -> EventTime? {
        [retry.dueAt, bus?.timeout.map { now + $0 }].compactMap(\.self).min()
    }

    /// Handles what has come and what is due.
    package func process(at now: EventTime) -> [Event] {
        self.now = now
        if let bus, !bus.process(messagesMax: Self.messagesMax) { lost("the connection to D-Bus is gone") }
        if retry.takeDue(at: now) {
            if bus == nil { open() } else if adapter == nil { list() } else { follow() }
        }
        return taken()
    }

    package func setScanning(_ isWanted: Bool, at now: EventTime) -> [Event] {
        self.now = now
        self.isWanted = isWanted
        if bus == nil, retry.dueAt == nil, isWanted { open() } else { follow() }
        return taken()
    }

    package func stop() {
        if let adapter, isDiscovering { bus?.send(Self.method(adapter.path, "StopDiscovery")) }
        _ = bus?.process(messagesMax: 1)
        bus = nil
        retry = ScanRetry()
    }

    private func taken() -> [Event] {
        defer { pending = [] }
        return pending
    }

    private func enter(_ state: State) {
        guard state != self.state else { return }
        self.state = state
        pending.append(.stateChanged(state))
    }

    // MARK: Connection

    private func open() {
        do throws(SystemBus.OpenError) {
            let bus = try SystemBus(service: Self.bluez) { [unowned self] in ownerChanged(isThere: $0) }
            self.bus = bus
            if !signals.allSatisfy({ bus.match($0.rule, $0.handler) }) { lost("D-Bus refuses") }
        } catch {
            switch error {
            case .noLibrary: enter(.impossible("there is no libsystemd"))
            case .refused(let code): lost("D-Bus cannot be reached: \(String(cString: strerror(code)))")
            }
        }
    }

    /// Only what matters is asked for: every other signal would wake the process too.
    private var signals: [(rule: String, handler: SystemBus.Handler)] {
        let changes = "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'"
        return [
            ("member='InterfacesAdded'", { [unowned self] in added($0) }),
            ("member='InterfacesRemoved'", { [unowned self] in removed($0) }),
            ("\(changes),arg0='org.bluez.Device1'", { [unowned self] in readDevice($0) }),
            ("\(changes),arg0='org.bluez.Adapter1'", { [unowned self] in adapterChanged($0) }),
        ]
    }

    private func lost(_ reason: String) {
        bus = nil
        forgetAdapter()
        failed(reason)
    }

    private func failed(_ reason: String) {
        lastFailure = reason
        enter(.waiting(reason))
        retry.failed(at: now)
    }

    private func forgetAdapter() {
        adapter = nil
        devices = [:]
        isDiscovering = false
        isAsked = false
    }

    /// Asks which adapters there are, and which devices they know.
    private func list() {
        forgetAdapter()
        guard let bus, bus.isServed else { return }
        let method = SystemBus.Method(
            path: "/", interface: "org.freedesktop.DBus.ObjectManager", method: "GetManagedObjects")
        let isSent = bus.call(method) { [unowned self] answer in
            if let error = answer.error { return failed("bluetoothd does not say what it has (\(error))") }
            answer.dictionary("oa{sa{sv}}") {
                guard let path = answer.string("o") else { return }
                interfaces(answer, of: path)
            }
            if adapter == nil { failed("no Bluetooth adapter") }
            follow()
        }
        if !isSent { lost("the connection to D-Bus is gone") }
    }

    private func ownerChanged(isThere: Bool) {
        forgetAdapter()
        if isThere {
            if retry.serviceCame(at: now) { list() }
        } else {
            retry.serviceEnded()
            enter(.waiting("bluetoothd is not running"))
        }
    }

    // MARK: Scanning

    /// Does the next step towards what is wanted. It is called whenever anything happens, so that a pause after a failure holds here.
    private func follow() {
        guard bus != nil, let adapter else { return }
        guard adapter.isPowered else { return failed("the Bluetooth adapter is off") }
        if isWanted == isDiscovering {
            enter(isWanted ? .scanning : .ready)
        } else if !isAsked {
            if !isWanted {
                stopDiscovery(adapter.path)
            } else if retry.dueAt == nil {
                startDiscovery(adapter.path)
            } else {
                enter(.waiting(lastFailure))
            }
        }
    }

    private func startDiscovery(_ path: String) {
        isAsked = true
        // The filter first: without it the adapter also looks for devices of classic Bluetooth.
        let isSent = bus?.filterDiscovery(of: path) { [unowned self] _ in
            let isSent = bus?.call(Self.method(path, "StartDiscovery")) { [unowned self] answer in
                isAsked = false
                guard adapter?.path == path else { return }
                if let error = answer.error, !error.hasSuffix(".InProgress") {
                    return failed("the Bluetooth adapter does not scan (\(error))")
                }
                retry.scanningStarted(at: now)
                isDiscovering = true
                follow()
            }
            if isSent != true { lost("the connection to D-Bus is gone") }
        }
        if isSent != true { lost("the connection to D-Bus is gone") }
    }

    private func stopDiscovery(_ path: String) {
        isAsked = true
        let isSent = bus?.call(Self.method(path, "StopDiscovery")) { [unowned self] _ in
            isAsked = false
            isDiscovering = false
            retry.scanningStopped()
            follow()
        }
        if isSent != true { lost("the connection to D-Bus is gone") }
    }

    private static func method(_ adapter: String, _ method: String) -> SystemBus.Method {
        SystemBus.Method(path: adapter, interface: "org.bluez.Adapter1", method: method)
    }

    // MARK: Objects

    private func added(_ signal: BusMessage) {
        guard let path = signal.string("o") else { return }
        let isNews = adapter == nil
        interfaces(signal, of: path)
        if isNews, adapter != nil { _ = retry.newsCame(at: now) }
        follow()
    }

    /// Reads `a{sa{sv}}`.
    private func interfaces(_ message: BusMessage, of path: String) {
        message.dictionary("sa{sv}") {
            let name = message.text()
            if name?.equals("org.bluez.Adapter1") == true {
                readAdapter(message, path)
            } else if name?.equals("org.bluez.Device1") == true {
                readDevice(message, path)
            } else {
                message.skip("a{sv}")
            }
        }
    }

    private func removed(_ signal: BusMessage) {
        guard let path = signal.string("o") else { return }
        devices[path] = nil
        guard adapter?.path == path else { return }
        forgetAdapter()
        failed("no Bluetooth adapter")
    }

    private func readDevice(_ signal: BusMessage) {
        signal.skip("s")
        readDevice(signal, signal.path)
    }

    private func adapterChanged(_ signal: BusMessage) {
        guard signal.path == adapter?.path else { return }
        signal.skip("s")
        readAdapter(signal, signal.path)
        follow()
    }

    /// The first adapter that is there; another one once that is gone.
    private func readAdapter(_ message: BusMessage, _ path: String) {
        var isPowered: Bool?
        message.dictionary("sv") {
            let name = message.text()
            if name?.equals("Powered") == true {
                isPowered = message.variant("b") { message.flag() }
            } else {
                message.skip("v")
            }
        }
        if adapter == nil { adapter = (path, isPowered ?? false) }
        guard adapter?.path == path else { return }
        if let isPowered {
            if isPowered, adapter?.isPowered == false { _ = retry.newsCame(at: now) }
            adapter?.isPowered = isPowered
        }
        // `Discovering` says nothing: BlueZ pauses by itself every 10 s, and other programs scan as well.
        if isPowered == false { isDiscovering = false }
    }

    private func readDevice(_ message: BusMessage, _ path: String) {
        var rssi: Int?
        var data: [UInt8]?
        message.dictionary("sv") {
            let name = message.text()
            if name?.equals("RSSI") == true {
                rssi = message.variant("n") { message.int16() }.map(Int.init)
            } else if name?.equals("ManufacturerData") == true {
                data = manufacturerData(message)
            } else {
                message.skip("v")
            }
        }
        if let data {
            guard let advertisement = BeaconAdvertisement(manufacturerData: data) else { return devices[path] = nil }
            if devices[path] == nil, devices.count >= Self.devicesMax { devices.removeAll() }
            devices[path] = advertisement
        }
        guard data != nil || rssi != nil, isDiscovering, let advertisement = devices[path] else { return }
        pending.append(.sighted(advertisement, rssi: rssi))
    }

    private func manufacturerData(_ message: BusMessage) -> [UInt8]? {
        message.variant("a{qv}") {
            var found: [UInt8]?
            message.dictionary("qv") {
                let company = message.uint16()
                let data = message.variant("ay") { message.bytes() }
                if company == BeaconAdvertisement.company { found = data }
            }
            return found
        }
    }
}
