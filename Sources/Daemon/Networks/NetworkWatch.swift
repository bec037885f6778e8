import Configuration
import Sensors
import WaypostCore
import WaypostHost

/// What records say of the networks around: kept at hand, and read again only when it changes. Never in the log.
final class NetworkWatch {
    private var config: ContextConfig
    private var wifi: (any WiFiWatch)?
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var watched: Int32?
    private var address: String?

    init(_ config: ContextConfig, log: AgentLog, loop: EventLoop) {
        self.config = config
        self.log = log
        self.loop = loop
        alarm = loop.alarm { [unowned self] now in process(at: now) }
    }

    /// nil = nothing is known, or asked for.
    private(set) var context: NetworkContext?

    func start(at now: EventTime) {
        switch config.wifi {
        case nil: wifi = nil
        case .networkManager: wifi = NetworkManagerWatch()
        case .supplicant(let folder): wifi = SupplicantWatch(folder: folder)
        }
        readAddress()
        process(at: now)
    }

    func reload(_ config: ContextConfig, at now: EventTime) {
        guard config != self.config else { return }
        stop()
        self.config = config
        start(at: now)
    }

    /// Links, addresses or routes of the host changed.
    func linksChanged(at now: EventTime) {
        readAddress()
        wifi?.linksChanged(at: now)
        follow(at: now)
    }

    func stop() {
        forget()
        wifi?.stop()
        wifi = nil
        alarm?.deadline = nil
        (address, context) = (nil, nil)
    }

    private func readAddress() { address = config.hasAddress ? loop.host.egressRoute(to: nil)?.address : nil }

    private func process(at now: EventTime) {
        wifi?.process(at: now)
        follow(at: now)
    }

    private func follow(at now: EventTime) {
        let (association, address) = (wifi?.association, address)
        if association == nil, address == nil {
            context = nil
        } else {
            let found = NetworkContext(ssid: association?.ssid, bssid: association?.bssid, ip: address)
            if found != context { context = found }
        }
        watch(at: now)
    }

    private func watch(at now: EventTime) {
        alarm?.deadline = wifi?.nextDeadline(at: now)
        guard let wifi, let descriptor = wifi.descriptor else { return forget() }
        if let watched, watched != descriptor { forget() }
        do throws(SystemError) {
            try loop.watch(descriptor, writable: wifi.wantsToWrite) { [unowned self] _, now in process(at: now) }
            watched = descriptor
        } catch {
            log.warning("what knows the Wi-Fi network cannot be watched: \(error)")
        }
    }

    private func forget() {
        if let watched { loop.forget(watched) }
        watched = nil
    }
}
