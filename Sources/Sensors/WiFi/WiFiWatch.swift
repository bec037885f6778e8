import WaypostCore

/// Which Wi-Fi network the host uses, from the program that knows. It is asked when that changes, and not for each record.
package protocol WiFiWatch: AnyObject {
    /// nil = none, or not known.
    var association: WiFiAssociation? { get }
    /// What its owner watches; nil while there is no connection.
    var descriptor: Int32? { get }
    var wantsToWrite: Bool { get }
    /// When to call `process(at:)` even if the descriptor is not ready.
    func nextDeadline(at now: EventTime) -> EventTime?
    /// Handles what has come and what is due.
    func process(at now: EventTime)
    /// The links of the host changed: the network may be another.
    func linksChanged(at now: EventTime)
    func stop()
}

package struct WiFiAssociation: Hashable, Sendable {
    package var ssid: String
    /// In lower case.
    package var bssid: String

    /// - Parameter ssid: at most 32 bytes, of any kind; what is no UTF-8 is replaced.
    init?(ssid: [UInt8], bssid: String) {
        guard !ssid.isEmpty, ssid.count <= 32 else { return nil }
        self.ssid = String(decoding: ssid, as: UTF8.self)
        self.bssid = bssid.lowercased()
    }
}
