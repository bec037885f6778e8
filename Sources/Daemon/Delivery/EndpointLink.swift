import Configuration
import Delivery
import Profiles
import WaypostCore
import WaypostHost

/// The route to an endpoint, and whether anything may be sent over it now.
struct EndpointLink {
    var gate: SendGate
    private(set) var egressRoute: EgressRoute?
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

    /// An upload to this server ended. Another address of the server says nothing about the links.
    mutating func reached(_ address: String?) {
        guard let address, address != peerAddress else { return }
        peerAddress = address
        look()
    }

    /// Finds the route to the endpoint again.
    /// - Returns: whether it has changed.
    @discardableResult
    mutating func look() -> Bool {
        let found = host.egressRoute(to: peerAddress) ?? host.egressRoute(to: nil)
        guard found != egressRoute else { return false }
        egressRoute = found
        gate.linkChanged(
            isMetered: found.map { way in patterns.contains { ShellPattern.matches(way.interface, $0) } } ?? false)
        return true
    }

    /// Why nothing is sent although nothing is wrong; nil when that is not so.
    var holdReason: String? {
        guard gate.isHeldByLink, let egressRoute else { return nil }
        return "held while the route to it is over \(egressRoute.interface), which is metered"
    }
}
