import Positioning

/// Whether another client has our client id. A server may say so (0x8E), but mosquitto, and any server of 3.1.1, just
/// closes the connection of the one when the other connects: then both come back, and each ends the connection of the
/// other.
package struct TakeoverWatch: Sendable {
    /// So many losses in a row, each so soon after CONNACK, are no accident.
    private static let lossesMin = 3
    private static let soon = Duration.seconds(10)

    private var connectedAt: EventTime?
    private var losses = 0

    package init() {}

    package mutating func connected(at now: EventTime) { connectedAt = now }

    /// - Returns: whether the client id is taken.
    package mutating func ended(_ ending: MQTTClient.Ending, at now: EventTime) -> Bool {
        defer { connectedAt = nil }
        if ending.meaning == .taken { return true }
        // An attempt that did not get as far says nothing.
        guard let connectedAt else { return losses >= Self.lossesMin }
        losses = ending == .lost && now < connectedAt + Self.soon ? losses + 1 : 0
        return losses >= Self.lossesMin
    }
}
