import Configuration
import Delivery
import EventLoop
import Positioning

/// By which way an endpoint is reached, and whether anything may be sent to it over that way now.
struct EndpointLink {
    var gate: SendGate
    private(set) var wayOut: WayOut?
    private let patterns: [String]
    private let host: any Host
    /// Numeric address by which the server was last reached; before that its name or address as configured.
    private var peerAddress: String?

    init(_ settings: EndpointSettings, host: any Host) {
        self.host = host
        gate = SendGate(metered: settings.metered)
        patterns = settings.meteredInterfaces
        peerAddress = try? BaseURL.parse(settings.baseURL).get().host
    }

    /// An upload ended, with this server. That it has another address is no news about the links.
    mutating func reached(_ address: String?) {
        guard let address, address != peerAddress else { return }
        peerAddress = address
        look()
    }

    /// Looks by which way the endpoint is reached now.
    /// - Returns: whether it is another one than before.
    @discardableResult
    mutating func look() -> Bool {
        let found = host.wayOut(to: peerAddress) ?? host.wayOut(to: nil)
        guard found != wayOut else { return false }
        wayOut = found
        gate.linkChanged(
            isMetered: found.map { way in patterns.contains { ShellPattern.matches(way.interface, $0) } } ?? false)
        return true
    }

    /// Why nothing is sent although nothing is wrong; nil when that is not so.
    var holdReason: String? {
        guard gate.isHeldByLink, let wayOut else { return nil }
        return "held while the way out leads over \(wayOut.interface), which is metered"
    }
}
