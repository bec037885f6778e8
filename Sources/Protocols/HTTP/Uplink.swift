import WaypostCore

/// One request, complete: of HTTP, or messages to a broker.
package struct UplinkRequest: Sendable {
    package var method: String
    package var url: String
    /// In the order in which they are sent. `Content-Length`, `Host` and `User-Agent` are the uplink's.
    package var headers: [Header]
    /// Before compression.
    package var body: [UInt8]
    /// Send the body gzipped with `Content-Encoding: gzip`.
    package var gzip: Bool
    /// The whole request, from connect to the last byte of the reply.
    package var timeout: Duration
    /// nil = the system's authorities and no certificate of our own.
    package var tls: TLSSettings?
    /// Its connection is closed after carrying nothing for this long; nil = the uplink's own limit.
    package var idleLimit: Duration?
    /// Most bytes of the reply's body; the rest is not read. The default is 64 KiB.
    package var replyLimit: Int
    /// What goes to a broker instead, whose address is `url`; nil = HTTP.
    package var broker: BrokerRequest?
    /// There only has to be a connection, with TLS where the URL asks for it: nothing is sent over it.
    package var connectsAlone = false

    /// The least that a reply's body may have, in bytes.
    package static let replyLimitLeast = 64 * 1024

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(
        method: String = "POST", url: String, headers: [Header] = [], body: [UInt8], gzip: Bool = false,
        timeout: Duration = .seconds(60), tls: TLSSettings? = nil, idleLimit: Duration? = nil,
        replyLimit: Int = replyLimitLeast
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.gzip = gzip
        self.timeout = timeout
        self.tls = tls
        self.idleLimit = idleLimit
        self.replyLimit = replyLimit
    }
}

/// Messages to a broker, and the connection over which they go.
package struct BrokerRequest: Sendable {
    package var session: BrokerSession
    /// In the order in which they are published. None = there only has to be a connection.
    package var messages: BrokerMessages
    /// Maximum messages of this sender in a second; nil = as many as the broker takes.
    package var rate: Int?
    /// The name of the endpoint: several may share a connection.
    package var sender = ""
    package var subscriber = Subscriber.optional

    /// What PUBACK 0x10 means, by which a broker says that it has passed a message to nobody.
    package enum Subscriber: Hashable, Sendable {
        /// The message is settled.
        case optional
        /// It is not, and the messages after those in flight are not published.
        case required
        /// The same, and the first message is published alone, without the retain flag, until it is accepted.
        case awaited
    }

    package init(session: BrokerSession, messages: BrokerMessages = .none, rate: Int? = nil) {
        self.session = session
        self.messages = messages
        self.rate = rate
    }
}

/// The messages of a request. Each is made when it is asked for: only those that the broker has not answered are in memory
/// as they are sent, however large the batch is.
package struct BrokerMessages: RandomAccessCollection, Sendable {
    package static let none = BrokerMessages(count: 0) { _ in preconditionFailure("there is no message") }

    package let endIndex: Int
    private let make: @Sendable (Int) -> MQTTMessage

    /// - Parameter make: the message at a place; always the same one.
    package init(count: Int, _ make: @escaping @Sendable (Int) -> MQTTMessage) {
        endIndex = count
        self.make = make
    }

    package var startIndex: Int { 0 }

    package subscript(place: Int) -> MQTTMessage { make(place) }
}

/// A connection to a broker that stays open.
package struct BrokerSession: Hashable, Sendable {
    /// A broker ends the connection of another client that has the same.
    package var clientID: String
    package var user: String?
    package var password: String?
    /// The broker is asked after so long without a packet.
    package var keepAlive = Duration.seconds(300)
    /// Losses may show that it has to be shorter.
    package var learnsKeepAlive = true
    /// What the broker publishes when the connection ends without a farewell.
    package var will: MQTTMessage?
    /// What is published whenever the connection is made.
    package var births: [MQTTMessage] = []
    /// Topics at which an earlier version of this program left messages with the broker: each is cleared once.
    package var formerTopics: [String] = []
    /// What is asked for whenever the connection is made, once the rows that wait have gone out: a broker that ends the
    /// connection because of it has the rows.
    package var subscriptions: [MQTTSubscription] = []

    package init(clientID: String) { self.clientID = clientID }

    /// It is kept without rows too: somebody sees from it whether this device is there, or messages come over it.
    package var staysOpen: Bool { will != nil || !births.isEmpty || !subscriptions.isEmpty }
}

/// Which servers to trust, and our own certificate. Verification cannot be turned off.
package struct TLSSettings: Hashable, Sendable {
    /// PEM file of the authorities to trust instead of the system's.
    package var authorities: String?
    /// PEM file with our certificate and its chain.
    package var certificate: String?
    /// PEM file with the key of that certificate.
    package var key: String?
    /// SHA-256 of the public key (SPKI) of the peer, base64: one of them has to match. Empty = not pinned.
    package var pins: [String]

    package init(authorities: String? = nil, certificate: String? = nil, key: String? = nil, pins: [String] = []) {
        self.authorities = authorities
        self.certificate = certificate
        self.key = key
        self.pins = pins
    }
}

/// An answer of the server. Its head is complete where the status is a 2xx.
package struct UplinkReply: Hashable, Sendable {
    /// Never an interim one (1xx) from an uplink.
    package var status: Int
    /// Names in lower case, in order of arrival.
    package var headers: [UplinkRequest.Header]
    /// At most `replyLimit` of the request.
    package var body: [UInt8]
    /// The reply was longer than the limit or broke off after the status.
    package var bodyIncomplete: Bool

    package init(status: Int, headers: [UplinkRequest.Header] = [], body: [UInt8] = [], bodyIncomplete: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.bodyIncomplete = bodyIncomplete
    }

    /// The first value of a header, whose name is given in lower case.
    package func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }
}

/// What a broker answered to the messages of one request.
package struct BrokerReply: Hashable, Sendable {
    /// One for each message; nil = not answered.
    package var reasons: [MQTTReason?]
    /// Why the broker does not take this client, or takes it no longer; nil where it did not say.
    package var ending: MQTTReason?
    /// What broke the connection off before all were answered; nil = nothing.
    package var failure: TransportFailure?
    /// What was under way when it broke off.
    package var unanswered = Unanswered.nothing
    /// Words of the broker.
    package var detail: String?

    /// What the broker had not answered when a connection ended.
    package enum Unanswered: Hashable, Sendable {
        /// No message of this request.
        case nothing
        /// One message of this request, and nothing else on the connection: it alone may be the cause.
        case oneAlone
        case several
    }

    package init(
        _ reasons: [MQTTReason?], ending: MQTTReason? = nil, failure: TransportFailure? = nil,
        unanswered: Unanswered = .nothing, detail: String? = nil
    ) {
        self.reasons = reasons
        self.ending = ending
        self.failure = failure
        self.unanswered = unanswered
        self.detail = detail
    }
}

/// Why there is no answer.
package enum TransportFailure: Hashable, Sendable {
    case resolve(String)
    /// The host refuses the connection.
    case connect(String)
    /// Nothing came back from the host: there is no route, or no answer to the attempt to connect.
    case unreachable(String)
    /// The address or the route that the connection was bound to is gone. The request is worth a repetition at once.
    case moved(String)
    /// Handshake, or a certificate that is refused by name, chain or clock.
    case tls(String)
    /// A certificate is refused for its dates, by a device whose clock is not known to be right.
    case clock(String)
    case timeout(String)
    /// The request was written in full, then the connection was closed without a byte.
    case closedWithoutReply(String)
    case broken(String)
    /// There is no token to send it with.
    case credential(String)

    /// The words for people; no URL, no secret.
    package var message: String {
        switch self {
        case .resolve(let m), .connect(let m), .unreachable(let m), .moved(let m), .tls(let m), .clock(let m),
            .timeout(let m), .closedWithoutReply(let m), .broken(let m), .credential(let m):
            m
        }
    }

    /// The same with more words.
    package func adding(_ words: String) -> TransportFailure {
        let text = "\(message), \(words)"
        return switch self {
        case .resolve: .resolve(text)
        case .connect: .connect(text)
        case .unreachable: .unreachable(text)
        case .moved: .moved(text)
        case .tls: .tls(text)
        case .clock: .clock(text)
        case .timeout: .timeout(text)
        case .closedWithoutReply: .closedWithoutReply(text)
        case .broken: .broken(text)
        case .credential: .credential(text)
        }
    }

    /// Nothing of the attempt has reached the server, as far as is known: that costs the server nothing.
    package var isUnreached: Bool {
        switch self {
        case .resolve, .unreachable: true
        case .connect, .moved, .tls, .clock, .timeout, .closedWithoutReply, .broken, .credential: false
        }
    }

    /// One word for counters and journal fields.
    package var word: String {
        switch self {
        case .resolve: "dns"
        case .connect, .unreachable: "connect"
        case .moved: "link"
        case .tls: "tls"
        case .clock: "clock"
        case .timeout: "timeout"
        case .closedWithoutReply: "closed"
        case .broken: "reset"
        case .credential: "credential"
        }
    }
}

/// How one attempt ended.
package struct UplinkOutcome: Hashable, Sendable {
    package enum Result: Hashable, Sendable {
        case reply(UplinkReply)
        case published(BrokerReply)
        /// There was a connection, and nothing else was asked for (`connectsAlone`).
        case connected
        case failed(TransportFailure)
    }
    /// How much of the request was handed to the connection.
    package enum Extent: Hashable, Sendable {
        case nothing, part, whole
    }
    package var result: Result
    /// Of the last time that it was written.
    package var written: Extent
    /// Bytes on the wire in each direction as far as the transport reports them: heads and bodies, without TLS and TCP.
    package var bytesSent: Int
    package var bytesReceived: Int
    /// A new connection was opened for it.
    package var newConnection: Bool
    /// Numeric address of the server; nil when none was reached.
    package var peerAddress: String?
    /// nil unless the uplink was made to measure.
    package var stages: UplinkStages?
    /// Before it was sent, its server had sent an answer that no request had asked for.
    package var followsUnasked = false
    /// Of a broker: before it no connection is made again; nil = nothing of that kind is waited for.
    package var reconnectsAt: EventTime?

    package init(
        _ result: Result, written: Extent = .whole, bytesSent: Int = 0, bytesReceived: Int = 0,
        newConnection: Bool = false, peerAddress: String? = nil, stages: UplinkStages? = nil
    ) {
        self.result = result
        self.written = written
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
        self.newConnection = newConnection
        self.peerAddress = peerAddress
        self.stages = stages
    }
}

/// How long each layer took, one after the other; nil = the request did not come through it, or needs none.
package struct UplinkStages: Hashable, Sendable {
    package var lookup: Duration?
    package var connect: Duration?
    package var handshake: Duration?
    /// From the connection to the first byte of the answer.
    package var firstByte: Duration?
    /// Of the server; nil also where it was refused.
    package var certificate: CertificateDates?

    package init(
        lookup: Duration? = nil, connect: Duration? = nil, handshake: Duration? = nil, firstByte: Duration? = nil,
        certificate: CertificateDates? = nil
    ) {
        self.lookup = lookup
        self.connect = connect
        self.handshake = handshake
        self.firstByte = firstByte
        self.certificate = certificate
    }
}

/// When a certificate is valid, in Unix seconds.
package struct CertificateDates: Hashable, Sendable {
    package var from: Int64
    package var until: Int64

    package init(from: Int64, until: Int64) {
        self.from = from
        self.until = until
    }
}

/// A request that was handed to an uplink.
package struct UplinkTransfer: Hashable, Sendable {
    /// Given once by each uplink.
    package let number: Int

    package init(_ number: Int) { self.number = number }
}

/// What a broker says without being asked.
package enum BrokerNews: Hashable, Sendable {
    case message(MQTTMessage)
    /// The broker has accepted a connection.
    ///
    /// - Parameter owners: names of the endpoints whose connection it is.
    case connected(owners: [String])
    /// The broker has answered the subscriptions: topics that it does not deliver from.
    case subscribed(refused: [String])
    /// Silent connections are ended by something between: the broker is asked after this long from now on.
    ///
    /// - Parameter owners: names of the endpoints whose connection it is.
    case keepAliveShortened(Duration, owners: [String])
    /// The broker has answered what is published with each connection: topics on which it does not allow that.
    ///
    /// - Parameter owners: as above.
    case birthsAnswered(refused: [String], owners: [String])
}

/// Why connections that were lost may be made again before their time.
package enum ReconnectCause: Hashable, Sendable {
    /// A link of this host came back, or its address changed: ends a wait unless it follows an answer of the server.
    case linkChanged
    /// Something happened that should be known soon: the same, but no more than once in 10 s.
    case event
    /// A person waits: ends any wait, no more than once in 10 s.
    case operatorFlush
}

/// Sends requests. Calls back on the loop's thread, never from inside `send`.
package protocol Uplink: AnyObject {
    /// - Returns: the argument of `cancel`.
    @discardableResult
    func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer
    /// Gives a request up: its completion is not called any more. Nothing happens to one that has ended.
    func cancel(_ transfer: UplinkTransfer)
    /// What brokers say from now on goes there too, on the loop's thread.
    func listen(_ hear: @escaping (BrokerNews) -> Void)
    /// The host may be about to sleep: closes the connections that carry nothing, and for some seconds keeps none whose
    /// request ends. The server may have forgotten connections that are kept over a sleep.
    func closeIdleConnections(at now: EventTime)
    /// Links, addresses or routes of this host may have changed: closes at once what is bound to one that is gone. Requests over
    /// it end with `TransportFailure.moved`.
    func linksChanged(at now: EventTime)
    /// Connections that are kept open and were lost are made again before their time.
    func reconnect(_ cause: ReconnectCause, at now: EventTime)
    /// Ends all requests in flight without calling back, and closes the connections.
    func close()
}
