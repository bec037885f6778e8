import WaypostCore

/// Whether another client may have our client id. A server may say so (0x8E), but mosquitto 2.0.11, and any server of 3.1.1,
/// just closes the connection of the one when the other connects: then both come back, and each ends the connection of
/// the other. A server in trouble looks the same, so that losses are only a suspicion: a reason to connect less often and to
/// say so, and for nothing else.
package struct TakeoverWatch: Sendable {
    /// So many losses in a row, each so soon after CONNACK, are suspicious.
    private static let lossesMin = 3
    private static let soon = Duration.seconds(10)
    /// A broker that has owed an answer for longer, or cannot be reached, is in trouble itself.
    package static let answerLimit = Duration.seconds(2)

    private var connectedAt: EventTime?
    /// In a row.
    package private(set) var losses = 0

    package init() {}

    package var isSuspected: Bool { losses >= Self.lossesMin }

    package mutating func connected(at now: EventTime) { connectedAt = now }

    /// No connection could be made.
    package mutating func failed() { losses = 0 }

    /// - Parameter unansweredSince: as the client had it when the connection was lost.
    package mutating func ended(_ ending: MQTTClient.Ending, unansweredSince: EventTime?, at now: EventTime) {
        defer { connectedAt = nil }
        guard ending == .lost, let connectedAt, now < connectedAt + Self.soon,
            now < (unansweredSince ?? now) + Self.answerLimit
        else {
            losses = 0
            return
        }
        losses += 1
    }
}
