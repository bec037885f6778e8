import WaypostCore

/// Asks NetworkManager over D-Bus.
package final class NetworkManagerWatch: WiFiWatch {
    private static let name = "org.freedesktop.NetworkManager"
    private static let device = "\(name).Device.Wireless"
    private static let messagesMax = 64

    package private(set) var association: WiFiAssociation?
    private var bus: SystemBus?
    private var delay = RetryDelay(from: .seconds(5), to: .seconds(300))
    private var retryAt: EventTime? = .zero
    private var now = EventTime.zero
    /// Changes may come without end, and each answer lists all that NetworkManager knows.
    private var questions = TokenBucket(burst: 10, refill: .seconds(10))
    private var isAsked = false
    /// Something changed while an answer was awaited.
    private var asksAgain = false

    package init() {}

    package var descriptor: Int32? { bus?.descriptor }
    package var wantsToWrite: Bool { bus?.wantsToWrite ?? false }

    package func nextDeadline(at now: EventTime) -> EventTime? {
        [retryAt, bus?.timeout.map { now + $0 }].compactMap(\.self).min()
    }

    package func process(at now: EventTime) {
        self.now = now
        if let bus, !bus.process(messagesMax: Self.messagesMax) { lost() }
        if let due = retryAt, due <= now {
            retryAt = nil
            if bus == nil { open() } else { ask() }
        }
    }

    package func linksChanged(at now: EventTime) {
        self.now = now
        if bus != nil { ask() }
    }

    package func stop() {
        bus = nil
        retryAt = nil
    }

    private func open() {
        let opened = try? SystemBus(service: Self.name) { [unowned self] in ownerChanged(isThere: $0) }
        guard let bus = opened else { return lost() }
        self.bus = bus
        let isHeard = bus.match(
            "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(Self.device)'"
        ) { [unowned self] in changed($0) }
        if !isHeard { lost() }
    }

    private func lost() {
        bus = nil
        association = nil
        isAsked = false
        retryAt = now + delay.next()
    }

    private func ownerChanged(isThere: Bool) {
        (association, retryAt) = (nil, nil)
        (isAsked, asksAgain) = (false, false)
        if isThere { ask() }
    }

    /// Strength and scans change all the time.
    private func changed(_ signal: BusMessage) {
        signal.skip("s")
        var isAnother = false
        signal.dictionary("sv") {
            if signal.text()?.equals("ActiveAccessPoint") == true { isAnother = true }
            signal.skip("v")
        }
        if isAnother { ask() }
    }

    /// One call has devices and access points.
    private func ask() {
        guard let bus, bus.isServed else { return }
        guard !isAsked else { return asksAgain = true }
        if let wait = questions.take(at: now) {
            retryAt = min(retryAt ?? now + wait, now + wait)
            return
        }
        isAsked = true
        let method = SystemBus.Method(
            path: "/org/freedesktop", interface: "org.freedesktop.DBus.ObjectManager", method: "GetManagedObjects")
        let isSent = bus.call(method) { [unowned self] answer in
            isAsked = false
            read(answer)
            // Busy or starting, it is asked again.
            if answer.error != nil { retryAt = now + delay.next() }
            if asksAgain {
                asksAgain = false
                ask()
            }
        }
        if !isSent { lost() }
    }

    private func read(_ answer: BusMessage) {
        association = nil
        guard answer.error == nil else { return }
        var active: String?
        var points: [String: WiFiAssociation] = [:]
        answer.dictionary("oa{sa{sv}}") {
            let path = answer.string("o") ?? ""
            answer.dictionary("sa{sv}") {
                let interface = answer.text()
                if interface?.equals("org.freedesktop.NetworkManager.Device.Wireless") == true {
                    active = activePoint(answer) ?? active
                } else if interface?.equals("org.freedesktop.NetworkManager.AccessPoint") == true {
                    points[path] = accessPoint(answer)
                } else {
                    answer.skip("a{sv}")
                }
            }
        }
        association = active.flatMap { points[$0] }
        delay.reset()
    }

    /// nil = no network is used through this device.
    private func activePoint(_ message: BusMessage) -> String? {
        var path: String?
        message.dictionary("sv") {
            guard message.text()?.equals("ActiveAccessPoint") == true else { return message.skip("v") }
            path = message.variant("o") { message.string("o") }
        }
        return path == "/" ? nil : path
    }

    private func accessPoint(_ message: BusMessage) -> WiFiAssociation? {
        var (ssid, bssid): ([UInt8]?, String?)
        message.dictionary("sv") {
            let name = message.text()
            if name?.equals("Ssid") == true {
                ssid = message.variant("ay") { message.bytes() }
            } else if name?.equals("HwAddress") == true {
                bssid = message.variant("s") { message.string() }
            } else {
                message.skip("v")
            }
        }
        guard let ssid, let bssid else { return nil }
        return WiFiAssociation(ssid: ssid, bssid: bssid)
    }
}
