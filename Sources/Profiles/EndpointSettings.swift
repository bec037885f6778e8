import WaypostCore

/// Where and how to upload, as configured.
package struct EndpointSettings: Hashable, Sendable {
    /// Which rows an endpoint gets.
    package enum Feed: String, Hashable, Sendable, CaseIterable {
        /// Rows that the network resolution selected.
        case network
        /// Every admitted row.
        case engine
    }

    package enum Delivery: String, Hashable, Sendable, CaseIterable {
        /// Every row.
        case all
        /// Events, and then only the newest location.
        case latest
    }

    /// What to do with unsent rows when another device has taken the asset.
    package enum OnCollision: String, Hashable, Sendable, CaseIterable {
        case keep, quarantine, clear
    }

    /// What to do with a location that a broker takes while no one subscribes to its topic.
    package enum NoSubscriber: String, Hashable, Sendable, CaseIterable {
        /// Hold it, and what follows, until somebody does.
        case hold
        /// Count it as stored.
        case accept
    }

    /// What to do while requests go out over a metered interface.
    package enum Metered: String, Hashable, Sendable, CaseIterable {
        case hold
        case eventsOnly = "events-only"
        case send
    }

    /// `[a-z0-9-]{1,32}`, unique; part of every batch id and of the state on disk. The default is `main`.
    package var name: String
    /// `http` or `https`, or of a broker `mqtt`, `mqtts`, `ws` or `wss`; without query, fragment, user info and trailing
    /// slash.
    package var baseURL: String
    /// The name by which the server knows this device.
    package var device: String
    /// Maximum rows of one request, 1 or more. The default is 100.
    package var batchSize: Int
    /// How long the oldest unsent row waits for others, and up to a tenth longer, at most 30 s, by the device's place in its
    /// fleet (`FleetShare`). The default is 60 s.
    package var batchWindow: Duration
    /// The window alone does not send fewer rows than this. The default is 1.
    package var minBatch: Int
    /// The whole request, from connect to the last byte of the reply. The default is 60 s.
    package var timeout: Duration
    /// The default is `network`.
    package var feed: Feed
    /// true: rows are kept until this endpoint has accepted them. false: it gets what is left. The default is true.
    package var required: Bool
    /// Compress bodies over 1 KiB. The default is true.
    package var gzip: Bool
    /// A new endpoint starts at the oldest kept row (true) or at the next one (false, the default).
    package var backfill: Bool
    package var backoff: Backoff
    package var profile: Profile
    /// The default is `all`.
    package var delivery: Delivery
    /// Plain fixes older than this are settled as expired; nil = never, the default.
    package var maxAge: Duration?
    /// While more than one batch waits, each window first sends the newest row. The default is false.
    package var freshHead: Bool
    /// Name of the endpoint that this one is a backup for; nil = it has a cursor of its own.
    package var backupFor: String?
    /// The asset as the server names it (`vars.asset_id`); nil where the server knows none.
    package var assetID: String?
    /// The default is `keep`.
    package var onCollision: OnCollision
    /// Shell patterns with `*` of the interfaces that count as metered. The default is `wwan*`.
    package var meteredInterfaces: [String]
    /// The default is `send`.
    package var metered: Metered
    /// Maximum messages to a broker in a second; nil = as many as it takes. The default is 10.
    package var publishRate: Int? = 10
    /// Time without a packet after which a broker is asked whether it is there. The default is 300 s, over WebSocket 50 s.
    package var keepAlive = Duration.seconds(300)
    /// It is the usual one: losses may show that it has to be shorter. The default is true.
    package var learnsKeepAlive = true
    /// Of a broker; nil = what the profile says, or `waypost-` and the device.
    package var clientID: String?
    /// Name of another endpoint at this broker that has the same client id and another session; nil = there is none.
    package var clientIDSharedWith: String?
    /// The default is `hold`.
    package var noSubscriber = NoSubscriber.hold
    /// Topics of a broker whose messages are for this device.
    package var subscriptions: [String] = []

    package init(
        name: String = "main", baseURL: String, device: String, batchSize: Int = 100,
        batchWindow: Duration = .seconds(60), minBatch: Int = 1, timeout: Duration = .seconds(60),
        feed: Feed = .network, required: Bool = true, gzip: Bool = true, backfill: Bool = false,
        backoff: Backoff = Backoff(), profile: Profile = Profile(), delivery: Delivery = .all,
        maxAge: Duration? = nil, freshHead: Bool = false, backupFor: String? = nil, assetID: String? = nil,
        onCollision: OnCollision = .keep, meteredInterfaces: [String] = ["wwan*"], metered: Metered = .send
    ) {
        self.name = name
        self.baseURL = baseURL
        self.device = device
        self.batchSize = batchSize
        self.batchWindow = batchWindow
        self.minBatch = minBatch
        self.timeout = timeout
        self.feed = feed
        self.required = required
        self.gzip = gzip
        self.backfill = backfill
        self.backoff = backoff
        self.profile = profile
        self.delivery = delivery
        self.maxAge = maxAge
        self.freshHead = freshHead
        self.backupFor = backupFor
        self.assetID = assetID
        self.onCollision = onCollision
        self.meteredInterfaces = meteredInterfaces
        self.metered = metered
    }

    /// What decides whose rows these are and where they go. If it changes while rows wait, the endpoint is held, unless only the
    /// address has changed, and nothing was accepted at the one before.
    package var fingerprint: String { "\(baseURL)\n\(device)" + (assetID.map { "\n\($0)" } ?? "") }

    /// Rows with that fingerprint are those of the same device and asset, whatever the address.
    package func hasIdentity(of fingerprint: String) -> Bool {
        func identity(_ fingerprint: String) -> Substring { fingerprint.drop { $0 != "\n" } }
        return identity(fingerprint) == identity(self.fingerprint)
    }

    /// Somebody on the way may answer in place of the server.
    package var canBeIntercepted: Bool { baseURL.prefix(7).lowercased() == "http://" }

    /// What is wrong with `clientIDSharedWith`, and what to do, for people.
    package static func words(clientIDSharedWith other: String) -> String {
        "its client id is that of endpoint \"\(other)\" at the same broker, whose session is another, so that each ends the "
            + "connection of the other: set another client_id"
    }

    /// Copies what decides only when and how much is sent: it may change while batches are in flight, since neither a batch
    /// on disk nor its id nor which rows are kept depends on it.
    package mutating func copyPace(from other: EndpointSettings) {
        batchSize = other.batchSize
        batchWindow = other.batchWindow
        minBatch = other.minBatch
        timeout = other.timeout
        backoff = other.backoff
        freshHead = other.freshHead
        onCollision = other.onCollision
        publishRate = other.publishRate
        noSubscriber = other.noSubscriber
    }

    /// A broker that has passed a location to nobody has not stored it. Of the newest location alone it is enough that the
    /// broker has taken it.
    var needsSubscriber: Bool { delivery == .all && noSubscriber == .hold }
}
