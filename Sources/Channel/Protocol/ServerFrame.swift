import WaypostCore

/// A frame of the service, as far as we read it.
struct ServerFrame: Hashable, Sendable {
    static let hasPresence: Int64 = 1 << 0
    static let isResumed: Int64 = 1 << 2
    /// The service tells which modes it grants, and among them that of hearing who is present.
    static let modes: Int64 = 1 << 16 | 1 << 17 | 1 << 18 | 1 << 19
    static let presenceSubscribe: Int64 = 1 << 19

    /// Longest text that is kept of one.
    private static let textBytesMax = 1024
    /// Items of presence in one frame that are read.
    private static let itemsMax = 1000

    var action: FrameAction
    var channel: String?
    var channelSerial: String?
    var connectionID: String?
    var details: ConnectionDetails?
    var error: ChannelError?
    var flags: Int64
    /// The first frame of ours that is answered; nil = none is told.
    var serial: Int64?
    /// How many are answered.
    var count: Int64
    var presence: [PresenceItem]
    /// Items of presence that could not be read.
    var unreadItems: Int

    /// - Returns: nil when it is no frame, or one of an action that we do not know.
    init?(_ text: String, bytesMax: Int) {
        guard let value = JSONReader.read(Array(text.utf8), bytesMax: bytesMax),
            let action = (value["action"]?.integer).flatMap(FrameAction.init)
        else { return nil }
        self.action = action
        channel = Self.text(value["channel"])
        channelSerial = Self.text(value["channelSerial"])
        connectionID = Self.text(value["connectionId"])
        details = value["connectionDetails"].map(ConnectionDetails.init)
        error = ChannelError(value["error"])
        flags = value["flags"]?.integer ?? 0
        serial = value["msgSerial"]?.integer
        count = max(0, value["count"]?.integer ?? 1)
        presence = []
        unreadItems = 0
        guard action == .presence || action == .synchronization else { return }
        let items = value["presence"]?.items ?? []
        for (index, item) in items.prefix(Self.itemsMax).enumerated() {
            if let read = PresenceItem(item, outer: value, index: index) { presence.append(read) }
        }
        unreadItems = items.count - presence.count
    }

    static func text(_ value: JSONValue?) -> String? {
        guard let text = value?.string, text.utf8.count <= textBytesMax else { return nil }
        return text
    }

    /// The page of a synchronization is the last one: the serial is `sequence:cursor`, with no cursor at the end.
    var endsSynchronization: Bool {
        guard let channelSerial, let colon = channelSerial.utf8.lastIndex(of: UInt8(ascii: ":")) else { return true }
        return channelSerial.utf8.index(after: colon) == channelSerial.utf8.endIndex
    }

    func has(_ flag: Int64) -> Bool { flags & flag != 0 }
}

/// What the service says of a connection.
struct ConnectionDetails: Hashable, Sendable {
    /// Who we are for the service; nil = it does not tell.
    var clientID: String?
    /// With it the connection is resumed; nil = it cannot be.
    var connectionKey: ChannelSecret?
    /// Bytes of a message; nil = it does not tell.
    var messageBytesMax: Int?
    /// The service says something in this time; nil = it need not.
    var idleLimit: Duration?
    /// How long it keeps our place; nil = it does not tell.
    var stateLifetime: Duration?

    init(_ value: JSONValue) {
        func number(_ name: String) -> Int64? { value[name]?.integer.flatMap { $0 > 0 ? $0 : nil } }
        clientID = ServerFrame.text(value["clientId"])
        connectionKey = ServerFrame.text(value["connectionKey"]).map(ChannelSecret.init)
        messageBytesMax = number("maxMessageSize").map { Int(clamping: $0) }
        idleLimit = number("maxIdleInterval").map { .milliseconds(min($0, 86_400_000)) }
        stateLifetime = number("connectionStateTtl").map { .milliseconds(min(max($0, 1000), 3_600_000)) }
    }
}
