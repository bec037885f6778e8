public struct RemoteRequest: ControlRequest {
    public typealias Reply = RemoteStatus

    public static let verb = Verb.remote
    public static let meaning =
        "Shows settings and commands from afar, or drops the settings: the file alone is in force then."

    @Field("action", "show, clear, or forget = clear, and forget what was refused; absent = show") public
        var action: String?
    @Field("accept_older", "With forget: signed documents are taken again whatever their version")
    public var acceptsOlder: Bool?

    public init() {}

    public init(action: String, acceptsOlder: Bool = false) {
        self.action = action
        if acceptsOlder { self.acceptsOlder = true }
    }
}

/// Settings from afar.
public struct RemoteStatus: ControlMessage {
    @Field("version", "The newest version that was judged; 0 = none") public var version: Int64 = 0
    @Field("state", "What became of it: trial, applied, reverted or rejected; none = there was none")
    public var state = ""
    @Field("in_force", "The version over the file; absent = the file alone") public var inForce: Int64?
    @Field("former", "What a trial returns to; absent = the file alone") public var former: Int64?
    @Field("rest_s", unit: "s", places: 1, "What is left of the trial") public var rest: Double?
    @Field("clamped", frameBytesMax: ControlFrame.bytesFilled, "Values beyond their range, and what they became")
    public var clamped: Named<String>?
    @Field("rejected", frameBytesMax: ControlFrame.bytesFilled, "Why the newest version is not in force, by key")
    public var rejected: Named<String>?
    @Field("refused", "Why the last document was not even judged") public var refused: String?
    @Field("problem", "What keeps documents from arriving or being stored") public var problem: String?
    @Field("commands_run", "Commands of the server that were carried out since the start") public var commandsRun: Int?
    @Field("commands_refused", "Commands that were not") public var commandsRefused: Int?
    @Field("last_command", "The last one and what became of it") public var lastCommand: String?
    @Field("last_command_age_s", unit: "s", places: 1, "Since then") public var lastCommandAge: Double?
    @Field("last_refusal", "Why the last command was refused") public var lastRefusal: String?
    @Field("last_contact_age_s", unit: "s", places: 1, "Since the server answered last")
    public var lastContactAge: Double?
    @Field("effective", frameBytesMax: ControlFrame.bytesFilled, "Keys that a server may set; in the reply to remote")
    public var effective: Named<String>?

    public init() {}
}
