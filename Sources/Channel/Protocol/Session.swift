import WaypostCore

/// What the service has said of the connection, and when it last said anything.
struct Session: Sendable {
    private static let idleGrace = Duration.seconds(10)
    /// A connection that ends sooner was no success.
    private static let stableAfter = Duration.seconds(10)

    /// With it the connection is resumed; nil = it cannot be.
    private(set) var key: ChannelSecret?
    private(set) var messageBytesMax = 65_536
    /// How long the service keeps our place.
    private(set) var stateLifetime = Duration.seconds(120)
    private var idleLimit: Duration?
    private var opened = EventTime.zero
    private var lastHeard = EventTime.zero

    /// When a silence is too long; nil = never.
    var idleDeadline: EventTime? { idleLimit.map { lastHeard + $0 + Self.idleGrace } }

    func isStable(at now: EventTime) -> Bool { now >= opened + Self.stableAfter }

    /// It has lasted for a minute: whatever ends it then is no habit of the service.
    func isLasting(at now: EventTime) -> Bool { now >= opened + .seconds(60) }

    mutating func opened(at now: EventTime) { opened = now }

    mutating func heard(at now: EventTime) { lastHeard = max(lastHeard, now) }

    mutating func adopt(_ details: ConnectionDetails?) {
        guard let details else { return }
        key = details.connectionKey ?? key
        idleLimit = details.idleLimit
        stateLifetime = details.stateLifetime ?? stateLifetime
        messageBytesMax = details.messageBytesMax ?? messageBytesMax
    }

    /// The next connection is a new one.
    mutating func forgetKey() { key = nil }
}
