/// What a client may ask for. A new one gets a case here, a request and a reply beside it, and a handler in `Agent.answer`:
/// see "Where a change goes" in docs/architecture.md.
public enum Verb: String, CaseIterable, Sendable {
    case help, status, look, endpoint, quarantine, flush, pace, engine, subscriber, boost, refresh, movement, power,
        odometer, reload, remote
    case fenceRefresh = "fence-refresh"

    /// What a client sends with it, and what the daemon answers.
    package var request: any ControlRequest.Type {
        switch self {
        case .help: HelpRequest.self
        case .status: StatusRequest.self
        case .look: LookRequest.self
        case .endpoint: EndpointRequest.self
        case .quarantine: QuarantineRequest.self
        case .flush: FlushRequest.self
        case .pace: PaceRequest.self
        case .engine: EngineRequest.self
        case .subscriber: SubscriberRequest.self
        case .boost: BoostRequest.self
        case .refresh: RefreshRequest.self
        case .movement: MovementRequest.self
        case .power: PowerRequest.self
        case .odometer: OdometerRequest.self
        case .reload: ReloadRequest.self
        case .fenceRefresh: FenceRefreshRequest.self
        case .remote: RemoteRequest.self
        }
    }
}

/// The members of a request beside `id` and `do`.
public protocol ControlRequest: ControlMessage {
    associatedtype Reply: ControlMessage

    static var verb: Verb { get }
    /// One sentence for `help`.
    static var meaning: String { get }
}

/// A reply that says only that the request was carried out.
public struct Acknowledgement: ControlMessage {
    public init() {}
}

public struct HelpRequest: ControlRequest {
    public typealias Reply = Help

    public static let verb = Verb.help
    public static let meaning = "Lists the verbs with their fields; with verb, that one with the fields of its reply."

    @Field("verb", "The only verb to explain") public var verb: String?

    public init() {}
}

public struct Help: ControlMessage {
    public struct Entry: ControlMessage {
        @Field("do", "The verb") public var verb = ""
        @Field("meaning", "What it does") public var meaning = ""
        @Field("fields", "What a request may hold beside id and do") public var fields: [FieldHelp] = []
        @Field("reply", "What a reply may hold beside id and ok") public var reply: [FieldHelp]?

        public init() {}

        init<Request: ControlRequest>(_ request: Request.Type, withReply: Bool) {
            verb = request.verb.rawValue
            meaning = request.meaning
            fields = request.fieldHelp
            if withReply { reply = Request.Reply.fieldHelp }
        }
    }

    @Field("verbs", "Each verb") public var verbs: [Entry] = []

    public init() {}

    package init(_ request: HelpRequest) throws(ControlError) {
        if let verb = request.verb {
            guard let known = Verb(rawValue: verb) else { throw .unknownVerb(verb) }
            verbs = [Entry(known.request, withReply: true)]
        } else {
            verbs = Verb.allCases.map { Entry($0.request, withReply: false) }
        }
    }
}
