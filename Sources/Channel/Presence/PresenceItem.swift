import WaypostCore

/// One change of presence as the service reports it.
package struct PresenceItem: Hashable, Sendable {
    package var action: PresenceAction
    package var connectionID: String
    package var clientID: String
    /// `connectionID:msgSerial:index`, or anything else in an item that the service made itself.
    package var id: String
    /// Unix milliseconds, of the service.
    package var timestamp: Int64
    /// nil = nothing that we read.
    package var data: PresenceData?

    /// Longest id of a member or an item that is kept.
    private static let idBytesMax = 256

    package var memberKey: String { Self.memberKey(connectionID: connectionID, clientID: clientID) }

    package static func memberKey(connectionID: String, clientID: String) -> String { "\(connectionID):\(clientID)" }

    package init(
        action: PresenceAction, connectionID: String, clientID: String, id: String, timestamp: Int64,
        data: PresenceData?
    ) {
        self.action = action
        self.connectionID = connectionID
        self.clientID = clientID
        self.id = id
        self.timestamp = timestamp
        self.data = data
    }

    /// - Parameters:
    ///   - outer: the frame, whose members stand for those that the item lacks.
    ///   - index: of the item in the frame.
    /// - Returns: nil when it names no member, or one with a name that is too long.
    init?(_ value: JSONValue, outer: JSONValue, index: Int) {
        guard let action = (value["action"]?.integer).flatMap(PresenceAction.init),
            let clientID = value["clientId"]?.string,
            let connectionID = value["connectionId"]?.string ?? outer["connectionId"]?.string
        else { return nil }
        let id = value["id"]?.string ?? outer["id"]?.string.map { "\($0):\(index)" } ?? ""
        guard !clientID.isEmpty, [clientID, connectionID, id].allSatisfy({ $0.utf8.count <= Self.idBytesMax }) else {
            return nil
        }
        self.init(
            action: action, connectionID: connectionID, clientID: clientID, id: id,
            timestamp: value["timestamp"]?.integer ?? outer["timestamp"]?.integer ?? 0,
            data: PresenceData(value["data"], encoding: value["encoding"]?.string))
    }

    /// Whether it was said after another item of the same member.
    func isNewer(than other: PresenceItem) -> Bool {
        guard let mine = order, let others = other.order else {
            // The service said that the member is gone, for which there is no number.
            return timestamp >= other.timestamp
        }
        return mine > others
    }

    /// nil when the id is not of the member's own connection.
    private var order: (Int64, Int64)? {
        guard id.utf8.starts(with: connectionID.utf8) else { return nil }
        let parts = id.utf8.dropFirst(connectionID.utf8.count).split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty, let serial = Int64(String(Substring(parts[1]))),
            let index = Int64(String(Substring(parts[2])))
        else { return nil }
        return (serial, index)
    }
}
