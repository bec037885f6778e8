// One request for each verb, and the replies that are no more than an answer to it. The status has a file of its own.

/// A resolution in a request or a reply.
public struct ResolutionValue: ControlMessage {
    @Field("priority", "minimum, low, balanced, high or maximum") public var priority = ""
    @Field("interval_ms", unit: "ms", "Time between two locations, 0 to a day; 0 = every fix") public var intervalMs:
        Int64 = 0
    @Field("displacement", unit: "m", "Distance between two locations, 0 to 1e6") public var displacement = 0.0

    public init() {}

    public init(priority: String, intervalMs: Int64, displacement: Double) {
        self.priority = priority
        self.intervalMs = intervalMs
        self.displacement = displacement
    }
}

public struct EndpointRequest: ControlRequest {
    public typealias Reply = OrderReply

    public static let verb = Verb.endpoint
    public static let meaning =
        "Lists or tests endpoints, ends a pause or a stop, or decides about rows of an old binding."

    @Field("action", "list, test, bind, resume, drop or forget") public var action: String?
    @Field("endpoint", "Its name; may be absent where there is one") public var endpoint: String?
    @Field("after", "list: only those behind this one in the order of the configuration") public var after: String?
    @Field("force", "bind: also where rows of another device or asset wait") public var force: Bool?
    @Field("store", "test: the server is to store a test location") public var store: Bool?
    @Field("lat", unit: "deg", "test: where it is; absent = at the last fix") public var latitude: Double?
    @Field("lon", unit: "deg", "test: the same") public var longitude: Double?

    public init() {}

    public init(_ action: String, _ endpoint: String? = nil, after: String? = nil, force: Bool? = nil) {
        self.action = action
        self.endpoint = endpoint
        self.after = after
        self.force = force
    }
}

public struct QuarantineRequest: ControlRequest {
    public typealias Reply = OrderReply

    public static let verb = Verb.quarantine
    public static let meaning = "Sends rows of the quarantine again, or deletes them."

    @Field("action", "retry or drop") public var action: String?
    @Field("endpoint", "Only rows of this endpoint") public var endpoint: String?
    @Field("ids", "Rows, by their id in `waypost quarantine list`") public var ids: [Int64]?
    @Field("all", "true = every row") public var all: Bool?

    public init() {}

    public init(_ action: String, endpoint: String?, ids: [Int64]?, all: Bool?) {
        self.action = action
        self.endpoint = endpoint
        self.ids = ids
        self.all = all
    }
}

/// What was done with endpoints or rows.
public struct OrderReply: ControlMessage {
    @Field("endpoints", frameBytesMax: ControlFrame.bytesFilled, more: "endpoints_more", "list: state and counters")
    public var endpoints: [EndpointStatus]?
    @Field("endpoints_more", "list: endpoints behind the last one here; ask again with after") public var endpointsMore:
        Int?
    @Field("rows", "Rows concerned") public var rows: Int?
    @Field("first_seq", "Lowest sequence number of them") public var firstSeq: Int64?
    @Field("last_seq", "Highest sequence number of them") public var lastSeq: Int64?
    @Field("next_attempt_s", unit: "s", places: 1, "resume: until the next attempt, where it is not at once")
    public var nextAttempt: Double?
    @Field("because", "resume: what delays it") public var because: String?
    @Field("test", "test: what came of it") public var test: EndpointTestReply?

    public init() {}
}

/// What a request to a server has shown for which a person waited.
public struct EndpointTestReply: ControlMessage {
    @Field("endpoint", "Its name") public var endpoint = ""
    @Field("address", "Its base_url as far as it is no secret") public var address: String?
    @Field("digest", "Changes with the address, the device and the credentials of the endpoint that was tested")
    public var digest: String?
    @Field("sent", "connection = nothing but that, request = one that stores nothing, location = a test location")
    public var sent: String?
    @Field("well", "Whether all is well as far as that shows") public var isWell = false
    @Field("words", "What the server answered or what went wrong, and what helps") public var words = ""
    @Field("ms", unit: "ms", places: 1, "Until the answer") public var milliseconds: Double?
    @Field("bytes_sent", unit: "bytes", "Heads and bodies") public var bytesSent: Int?
    @Field("bytes_received", unit: "bytes", "Heads and bodies") public var bytesReceived: Int?
    @Field("profile", "Where it has no request that stores nothing: the profile") public var profile: String?
    @Field("would_store", "The same: the request that store sends, without secrets") public var wouldStore: String?

    public init() {}
}

public struct FlushRequest: ControlRequest {
    public static let verb = Verb.flush
    public static let meaning =
        "Writes to disk and sends now. Answers after each endpoint has sent or failed, or after 30 s."

    @Field("commit", "true = answer when the rows are on disk") public var commit: Bool?
    @Field("panic", "true = record a panic event first") public var panic: Bool?

    public init() {}

    public init(commit: Bool, panic: Bool) {
        self.commit = commit
        self.panic = panic
    }

    public struct Reply: ControlMessage {
        public struct Endpoint: ControlMessage {
            @Field("name", "Its name") public var name = ""
            @Field("accepted", "Rows accepted since the request") public var accepted = 0
            @Field("waiting", "Rows that still wait") public var waiting = 0
            @Field("contact", "As in status") public var contact: String?
            @Field("contact_age_s", unit: "s", places: 1, "As in status") public var contactAge: Double?
            @Field("problem", "Why") public var problem: String?

            public init() {}
        }

        @Field("merged", "true = the panic event is that of a request less than a minute ago") public var merged: Bool?
        @Field("waiting", "commit: rows in the queue") public var waiting: Int?
        @Field("endpoints", frameBytesMax: ControlFrame.bytesFilled, "Without commit: each endpoint")
        public var endpoints: [Endpoint]?

        public init() {}
    }
}

public struct PaceRequest: ControlRequest {
    public typealias Reply = MotionReply

    public static let verb = Verb.pace
    public static let meaning = "Forces the motion state."

    @Field("moving", "true = moving, false = stationary; absent = as the receiver's evidence decides")
    public var moving: Bool?

    public init() {}

    public init(moving: Bool?) { self.moving = moving }
}

public struct MotionReply: ControlMessage {
    @Field("motion", "Motion state from now on, as in status") public var motion = ""

    public init() {}

    package init(_ motion: String) { self.motion = motion }
}

public struct MovementRequest: ControlRequest {
    public typealias Reply = MotionReply

    public static let verb = Verb.movement
    public static let meaning = "Reports what an ignition line or an accelerometer senses."

    @Field("moving", "Whether it senses movement; required") public var moving: Bool?
    @Field("source", "Which sensor, for people") public var source: String?

    public init() {}
}

public struct PowerRequest: ControlRequest {
    public typealias Reply = MotionReply

    public static let verb = Verb.power
    public static let meaning = "Reports a power supply that another program reads; external or percent is required."

    @Field("external", "Whether external power is connected") public var external: Bool?
    @Field("percent", unit: "%", "Battery level, 0 to 100, forgotten after ten minutes") public var percent: Int?
    @Field("charging", "Whether the battery is being charged; absent = unknown") public var charging: Bool?

    public init() {}
}

public struct OdometerRequest: ControlRequest {
    public static let verb = Verb.odometer
    public static let meaning = "Sets the odometer."

    @Field("metres", unit: "m", "Reading from now on, 0 to 1e11; required") public var metres: Double?

    public init() {}

    public init(metres: Double) { self.metres = metres }

    public struct Reply: ControlMessage {
        @Field("odometer", unit: "m", places: 1, "Reading from now on") public var odometer = 0.0

        public init() {}
    }
}

public struct EngineRequest: ControlRequest {
    public typealias Reply = EngineReply

    public static let verb = Verb.engine
    public static let meaning = "Sets or clears the constant location engine; with neither, reports what is in force."

    @Field("set", "The resolution to ask the receiver for") public var set: ResolutionValue?
    @Field("clear", "true = no constant location engine any more") public var clear: Bool?

    public init() {}

    /// - Parameter set: nil = no constant location engine any more.
    public init(set: ResolutionValue?) {
        self.set = set
        clear = set == nil ? true : nil
    }
}

public struct BoostRequest: ControlRequest {
    public typealias Reply = EngineReply

    public static let verb = Verb.boost
    public static let meaning = "Publishes another resolution of every trackable for a time, or ends that."

    @Field("resolution", "What is published, and asked of the receiver") public var resolution: ResolutionValue?
    @Field("seconds", unit: "s", "How long from now, 1 to 3600") public var seconds: Double?
    @Field("clear", "true = none any more") public var clear: Bool?

    public init() {}
}

public struct EngineReply: ControlMessage {
    @Field("engine", "What the receiver is asked for") public var engine = EngineStatus()

    public init() {}

    package init(_ engine: EngineStatus) { self.engine = engine }
}

public struct SubscriberRequest: ControlRequest {
    public static let verb = Verb.subscriber
    public static let meaning = "Adds or removes a subscriber of a trackable; add or remove is required."

    @Field("add", "Who comes, or asks for another resolution; 1 to 128 bytes") public var add: String?
    @Field("remove", "Who leaves") public var remove: String?
    @Field("trackable", "Of which trackable; may be absent where there is one") public var trackable: String?
    @Field("resolution", "What the subscriber asks for; absent = nothing") public var resolution: ResolutionValue?

    public init() {}

    public struct Reply: ControlMessage {
        @Field("trackable", "Its id") public var trackable = ""
        @Field("", "") public var state = TrackableStatus()

        public init() {}
    }
}

public struct RefreshRequest: ControlRequest {
    public typealias Reply = Acknowledgement

    public static let verb = Verb.refresh
    public static let meaning = "Decides every resolution again."

    public init() {}
}

public struct ReloadRequest: ControlRequest {
    public static let verb = Verb.reload
    public static let meaning =
        "Reads the configuration again. Answers when it is in force; one with a mistake changes nothing."

    public init() {}

    public struct Reply: ControlMessage {
        @Field("live", frameBytesMax: ControlFrame.bytesFilled, "Keys that are in force") public var live: [String] = []
        @Field("restart", frameBytesMax: ControlFrame.bytesFilled, "Keys that take effect at the next start")
        public var restart: [String] = []

        public init() {}
    }
}

public struct FenceRefreshRequest: ControlRequest {
    public static let verb = Verb.fenceRefresh
    public static let meaning =
        "Asks the servers of geofences and of beacon regions for their lists now. Answers after each has answered or failed, "
        + "or after 30 s."

    @Field("source", "Only those of this name") public var source: String?

    public init() {}

    public init(source: String?) { self.source = source }

    public struct Reply: ControlMessage {
        public struct Source: ControlMessage {
            @Field("name", "Its name") public var name = ""
            @Field("kind", "What it lists: geofences or beacons") public var kind = ""
            @Field(
                "outcome",
                "unchanged, received = another list is in force, failed, or waiting = it has not answered yet")
            public var outcome = ""
            @Field("fences", "Geofences of its list; absent = there is none") public var fences: Int?
            @Field("regions", "Beacon regions of its list; absent = there is none") public var regions: Int?
            @Field("problem", "Why it failed") public var problem: String?
            @Field("delay_s", unit: "s", places: 1, "How long the server asks to wait first") public var delay: Double?

            public init() {}
        }

        @Field("sources", frameBytesMax: ControlFrame.bytesFilled, "Each that was asked")
        public var sources: [Source] = []

        public init() {}
    }
}
