/// The networks around, when something was recorded. Hints for a server, and no position: nil = not known, or not configured.
///
/// Many records share one: it changes rarely.
public final class NetworkContext: Hashable, Sendable {
    /// Name of the Wi-Fi network that the host uses.
    public let ssid: String?
    /// Of its access point: `11:22:33:44:55:66`.
    public let bssid: String?
    /// Address of the host on the route out.
    public let ip: String?

    public init(ssid: String?, bssid: String?, ip: String?) {
        self.ssid = ssid
        self.bssid = bssid
        self.ip = ip
    }

    public static func == (one: NetworkContext, other: NetworkContext) -> Bool {
        one === other || (one.ssid == other.ssid && one.bssid == other.bssid && one.ip == other.ip)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(ssid)
        hasher.combine(bssid)
        hasher.combine(ip)
    }
}
