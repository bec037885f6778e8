import Positioning

/// Whether another client has our client id. A server may say so (0x8E), but mosquitto, and any server of 3.1.1, just
/// closes the connection of the one when the other connects: then both come back, and each ends the connection of the
/// other.
package struct TakeoverWatch: Sendable {
    /// So many losses in a row, each so soon after CONNACK, are no accident.
    private static let lossesMin = 3
    private static let soon = Duration.seconds(10)
    /// A broker that has owed an answer for longer, or cannot be reached, is in trouble itself.
    private static let answerLimit = Duration.seconds(2)

    private var connectedAt: EventTime?
    private var losses = 0

    package init() {}

    package mutating func connected(at now: EventTime) { connectedAt = now }

    /// No connection could be made.
    package mutating func failed() { losses = 0 }

    /// - Parameter unansweredSince: as the client had it when the connection was lost.
    /// - Returns: whether the client id is taken.
    package mutating func ended(
        _ ending: MQTTClient.Ending, unansweredSince: EventTime?, at now: EventTime
    ) -> Bool {
        defer { connectedAt = nil }
        if ending.meaning == .taken { return true }
        guard ending == .lost, let connectedAt, now < connectedAt + Self.soon,
            now < (unansweredSince ?? now) + Self.answerLimit
        else {
            losses = 0
            return false
        }
        losses += 1
        return losses >= Self.lossesMin
    }
}
