import WaypostCore

public struct StatusRequest: ControlRequest {
    public typealias Reply = Status

    public static let verb = Verb.status
    public static let meaning =
        "Reports state, health and counters; docs/operations.md says what to do about each counter."

    public init() {}
}

/// The daemon's health and counters at one instant. Counters count from its start.
public struct Status: ControlMessage {
    @Field("version", "Of waypost") public var version = ""
    @Field("health", "ok, or degraded = something needs attention; nothing is lost") public var health = ""
    @Field("units", "In what people read speeds: km/h, mph or knots; absent = km/h") public var units: String?
    @Field("line", "All in one line") public var line = ""
    @Field("problems", "What needs attention, at most 20") public var problems: [String] = []
    @Field(
        "configuration",
        "current, refused = what the file says now was refused by a reload, or last-good = it was refused at the start")
    public var configuration: String?
    @Field("uptime_s", unit: "s", places: 1, "Since the start") public var uptime: Double?
    @Field("wakeups", "Times that the event loop woke") public var wakeups = 0
    @Field("repeated_on_fresh_connection", "Requests repeated because a kept connection was dead")
    public var repeatedOnFreshConnection = 0
    @Field("unasked_answers", "Answers that no request had asked for; each was discarded with its connection")
    public var unaskedAnswers = 0
    @Field("motion", "Tracking") public var motion = MotionStatus()
    @Field("source", "The receiver") public var source = SourceStatus()
    @Field("power", "The power supply, as records carry it") public var power = PowerStatus()
    @Field("beacons", "Beacons, where they are looked for") public var beacons: BeaconStatus?
    @Field("queue", "The queue") public var queue = QueueStatus()
    @Field("channels", "Each live channel, at most 8") public var channels: [ChannelStatus]?
    @Field("remote", "Settings from afar, where the configuration allows them") public var remote: RemoteStatus?
    @Field("endpoints", frameBytesMax: ControlFrame.bytesFilled, more: "endpoints_more", "Each endpoint")
    public var endpoints: [EndpointStatus] = []
    @Field("endpoints_more", "Endpoints that did not fit; see endpoint list") public var endpointsMore: Int?

    public init() {}

    /// What people read where there is neither an endpoint nor a channel.
    public static let noServer =
        "none is configured yet: drives are stored on this device, `sudo waypost init` asks for a server"
}

public struct MotionStatus: ControlMessage {
    /// Names of many trackables would fill the frame: they get what is left below this many bytes.
    private static let trackablesFrameBytesMax = 28_000

    @Field("state", "waiting (no fix yet), settling (finding the first place), stationary, moving or stopping (a halt)")
    public var state = ""
    @Field("since", "UTC of the last motion change") public var since: String?
    @Field("activity", "How the asset travels: still, on_foot, running, on_bicycle or in_vehicle")
    public var activity: String?
    @Field("activity_confidence", unit: "%", "How certain that is") public var activityConfidence: Int?
    @Field("last_fix", "UTC of the last fix that was believed") public var lastFix: String?
    @Field("last_fix_age_s", unit: "s", places: 1, "Since it arrived in this run") public var lastFixAge: Double?
    @Field("odometer", unit: "m", places: 1, "Distance driven") public var odometer = 0.0
    @Field(
        "gap_metres", unit: "m", places: 1,
        "How much of the odometer was not seen: straight lines across gaps within trips")
    public var gapMetres: Double?
    @Field("trips", "Trips begun") public var trips = 0
    @Field("stops", "Trips ended by a stop") public var stops = 0
    @Field("gaps", "Gaps in the fixes") public var gaps = 0
    @Field("admitted", "Fixes that were believed") public var admitted = 0
    @Field("rejected", "Fixes that were not, by reason") public var rejected = Named<Int>([])
    @Field("kept", "Locations kept") public var kept = 0
    @Field("subscribers_refused", "Subscribers beyond the limit") public var subscribersRefused = 0
    @Field("engine", "What the receiver is asked for") public var engine = EngineStatus()
    @Field("rule", "By which locations are kept while moving") public var rule: String?
    @Field("rule_because", "Why that rule is in force") public var ruleBecause: String?
    @Field("geofences", "Geofences") public var geofences: GeofencesStatus?
    @Field("trackables", "Trackables") public var trackables = 0
    @Field("resolutions", frameBytesMax: trackablesFrameBytesMax, "What is published, by trackable")
    public var resolutions = Named<TrackableStatus>([])
    @Field("boost", "The boost in force") public var boost: BoostStatus?
    @Field("schedule", "The hours of [schedule]") public var schedule: ScheduleStatus?

    public init() {}
}

public struct EngineStatus: ControlMessage {
    @Field("mode", "constant, or dynamic = the finest of what is published") public var mode = ""
    @Field("", "") public var resolution = ResolutionValue()

    public init() {}
}

/// What is published of a trackable, and why.
public struct TrackableStatus: ControlMessage {
    @Field("", "") public var resolution = ResolutionValue()
    @Field("subscribers", "Subscribers") public var subscribers = 0
    @Field("near", "Whether the destination is near") public var near = false
    @Field("battery_low", "Whether a low battery makes it coarser") public var batteryLow = false

    public init() {}
}

public struct BoostStatus: ControlMessage {
    @Field("interval_ms", unit: "ms", "Time between two locations") public var intervalMs: Int64 = 0
    @Field("displacement", unit: "m", "Distance between two locations") public var displacement = 0.0
    @Field("until", "UTC of its end") public var until: String?

    public init() {}
}

public struct ScheduleStatus: ControlMessage {
    @Field("open", "Whether the hours of tracking are open") public var open = false
    @Field("until", "UTC of the next change") public var until: String?

    public init() {}
}

public struct GeofencesStatus: ControlMessage {
    @Field("fences", "Geofences in force") public var fences = 0
    @Field("inside", "How many the asset is inside of") public var inside = 0
    @Field("ids", "Which, at most 32") public var ids: [String] = []
    @Field("crossings", "Crossings recorded") public var crossings = 0
    @Field("refused", "Geofences that cannot be used") public var refused = 0
    @Field("stays_untold", "Stays whose start was not recorded") public var staysUntold = 0
    @Field("sources", "Each server that lists geofences, at most 8") public var sources: [ListSourceStatus]?

    public init() {}
}

/// A server that lists geofences, or regions of beacons.
public struct ListSourceStatus: ControlMessage {
    @Field("name", "Of the source") public var name = ""
    @Field("fences", "Geofences of its list; absent = there is none") public var fences: Int?
    @Field("regions", "Beacon regions of its list; absent = there is none") public var regions: Int?
    @Field("age_s", unit: "s", places: 1, "Since the server gave or confirmed the list, where that is known")
    public var age: Double?
    @Field("next_fetch_s", unit: "s", places: 1, "Until it is asked again; absent while it is being asked")
    public var nextFetch: Double?
    @Field("failures", "Failures in a row") public var failures = 0
    @Field("problem", "The last failure, until one attempt succeeds") public var problem: String?

    public init() {}
}

public struct SourceStatus: ControlMessage {
    @Field("name", "Kind and place of the source") public var name = ""
    @Field("state", "opening, receiving, silent, unreadable, lost, asleep or ended") public var state = ""
    @Field("reason", "Why it is lost, or until when it is asleep") public var reason: String?
    @Field("rate", "Where the receiver is asked for an interval") public var rate: RateStatus?
    @Field("last_epoch_age_s", unit: "s", places: 1, "Since the last epoch") public var lastEpochAge: Double?
    @Field("bytes", unit: "bytes", "Received") public var bytes = 0
    @Field("sentences", "Sentences with a good checksum, or lines of gpsd") public var sentences = 0
    @Field("fixes", "Fixes") public var fixes = 0
    @Field("void_epochs", "Epochs without a fix") public var voidEpochs = 0
    @Field("checksum_errors", "Sentences with a bad checksum") public var checksumErrors = 0
    @Field("too_long", "Sentences that were too long") public var tooLong = 0
    @Field("bad_bytes", "Sentences cut off by other bytes") public var badBytes = 0
    @Field("stray_bytes", unit: "bytes", "In no sentence and in no line of gpsd") public var strayBytes = 0
    @Field("bad_fields", "Fields that could not be read") public var badFields = 0
    @Field("late", "Sentences of an epoch that was closed") public var late = 0
    @Field("dateless", "Fixes before the first date") public var dateless = 0
    @Field("repeats", "Epochs that came again with the time of the one before") public var repeats: Int?
    @Field("disagreeing", "What contradicted the fix beside it, which counted") public var disagreeing: Int?
    @Field("dates_refused", "Dates that were not believed") public var datesRefused: Int?
    @Field("fault", "What is wrong with its fixes") public var fault: String?
    @Field("date_fault", "Why its date is not believed") public var dateFault: String?
    @Field("baud", unit: "baud", "Speed of a serial line on which sentences arrive") public var baud: Int?
    @Field("unbelieved", "Why no fix was believed for a minute") public var unbelieved: String?
    @Field("stray", "Why many of the last minute's bytes are in no sentence") public var stray: String?
    @Field("satellites_used", "Satellites in the last epoch, with or without a fix") public var satellitesUsed: Int?
    @Field("satellites_in_view", "Satellites that the receiver lists") public var satellitesInView: Int?
    @Field("satellites_strong", "Of these, received with 30 dB-Hz or more") public var satellitesStrong: Int?
    @Field("cn0_best", unit: "dB-Hz", "Carrier to noise of the satellite received best") public var bestCN0: Int?
    @Field("cn0_median", unit: "dB-Hz", "Median over the satellites received") public var medianCN0: Int?
    @Field("antenna", "ok, open or short, where the receiver reports it") public var antenna: String?
    @Field("gpsd", "gpsd, while connected") public var gpsd: GPSDStatus?

    public init() {}
}

public struct RateStatus: ControlMessage {
    @Field("wanted_ms", unit: "ms", "Between fixes, as the receiver was asked") public var wanted: Int64?
    @Field("measured_ms", unit: "ms", "Between fixes, as it keeps it") public var measured: Int64?
    @Field("honoured", "Whether the two agree within a fifth") public var honoured: Bool?

    public init() {}
}

public struct GPSDStatus: ControlMessage {
    public struct Device: ControlMessage {
        @Field("path", "As gpsd was given it") public var path = ""
        @Field("driver", "What gpsd found the receiver to speak") public var driver: String?
        @Field("active", "Whether gpsd has it open") public var active: Bool?

        public init() {}
    }

    @Field("release", "Version of gpsd") public var release = ""
    @Field("protocol", "Version of its protocol") public var protocolVersion: String?
    @Field("device", "The receiver in use") public var device: String?
    @Field("devices", "What gpsd reads, at most 8") public var devices: [Device] = []

    public init() {}
}

public struct PowerStatus: ControlMessage {
    @Field("battery", unit: "%", "Level") public var battery: Int?
    @Field("charging", "Whether it is being charged") public var charging: Bool?
    @Field("external", "Whether external power is connected") public var external: Bool?
    @Field("low", "Whether the level is low") public var low = false
    @Field("supplies", "State by supply, where the host's supplies are read") public var supplies: Named<String>?

    public init() {}
}

public struct BeaconStatus: ControlMessage {
    @Field("state", "scanning, ready (between two windows), waiting or impossible") public var state = ""
    @Field("reason", "Why it does not scan") public var reason: String?
    @Field("regions", "Regions that are looked for") public var regions = 0
    @Field("inside", "Those that the asset is in, by name or id, at most 32") public var inside: [String] = []
    @Field("nearest", "The beacon that is received best: UUID/major/minor") public var nearest: String?
    @Field("sightings", "Reports of beacons") public var sightings = 0
    @Field("unrecorded", "New beacons that were too many in their region to be recorded") public var unrecorded = 0
    @Field("sources", "Each server that lists regions, at most 8") public var sources: [ListSourceStatus]?

    public init() {}
}

public struct QueueStatus: ControlMessage {
    @Field("queue_depth", "Rows in the queue, on disk and in memory") public var depth = 0
    @Field("ram_ring_depth", "Rows in memory alone") public var held: Int?
    @Field("ram_ring_dropped", "Rows given up there") public var heldDropped: Int?
    @Field("sent_from_ram", "Rows sent that never were on disk") public var sentFromMemory: Int?
    @Field("queue_bytes", unit: "bytes", "The database and its log") public var bytes: Int64?
    @Field("commits", "Commits") public var commits: Int?
    @Field("commit_latency_s", unit: "s", places: 3, "The slowest commit") public var commitLatency: Double?
    @Field("commit_failed", "Commits that the disk refused") public var commitsFailed: Int?
    @Field("dropped_oldest", "Oldest rows that a full queue gave up") public var droppedOldest: Int?
    @Field("dropped_newest", "Newest rows that a full queue gave up") public var droppedNewest: Int?
    @Field("thinned", "Rows left out of a full queue between others") public var thinned: Int?
    @Field("expired", "Rows that grew older than max_age") public var expired: Int?
    @Field("events_dropped", "Events among the rows given up") public var eventsDropped: Int?
    @Field("corrupt_recovered", "Damaged queues set aside") public var corruptRecovered: Int?
    @Field("salvaged", "Rows brought back from them") public var salvaged: Int?
    @Field("salvage_inversions", "Of those, rows out of order") public var salvageInversions: Int?
    @Field("lost_rows", "Rows of damaged queues that were given up") public var lostRows: Int?
    @Field("files_replaced", "Times that another program removed, replaced or overwrote its files")
    public var filesReplaced: Int?
    @Field("last_seq", "The newest sequence number") public var lastSeq: Int64?
    @Field("clock_untrusted", "1 while the host clock is not synchronised") public var clockUntrusted: Int?
    @Field("disk_error", "What the disk answered last") public var diskError: String?

    public init() {}
}

/// State and counters of an endpoint. Without a daemon only the state and what waits is known.
/// A live channel, on which viewers watch.
public struct ChannelStatus: ControlMessage {
    @Field("name", "Of the channel") public var name = ""
    @Field(
        "state",
        "Of the connection: connected, connecting, disconnected, suspended, failed and so on; by-requests = there is none, "
            + "and messages go by single requests of HTTP")
    public var state = ""
    @Field("problem", "What is wrong") public var problem: String?
    @Field("published", "Messages that the service has") public var published = 0
    @Field("passed", "Locations that were too many to be seen live; endpoints have them all the same")
    public var passed = 0
    @Field("unfit", "Locations that viewers could not read: without an accuracy") public var unfit = 0
    @Field("frames_unread", "Frames of the service that were too large or could not be read") public var unreadFrames =
        0
    @Field("members_ignored", "Reports of viewers beyond the 250 of a trackable that are counted")
    public var ignoredMembers = 0
    @Field("trackables", "Each trackable, at most 20") public var trackables = Named<WatchedStatus>([])

    public init() {}
}

/// What viewers can expect of a trackable, and who they are.
public struct WatchedStatus: ControlMessage {
    @Field(
        "state",
        "offline, publishing (viewers cannot see that it is there, or what they ask for is not known), online or failed"
    ) public var state = ""
    @Field("problem", "What is wrong") public var problem: String?
    @Field("viewers", "Who watches") public var viewers = 0
    @Field("requests", "What they ask for, by member, of at most 8; viewers who ask for nothing are left out")
    public var requests = Named<ResolutionValue>([])

    public init() {}
}

public struct EndpointStatus: ControlMessage {
    @Field("name", "Its name") public var name = ""
    @Field("state", "active, paused, stopped, taken or rebind") public var state = ""
    @Field("reason", "Why it is paused or stopped") public var reason: String?
    @Field("held", "Why nothing is sent although it is active") public var held: String?
    @Field("sent_by", "The backup that sends for it now") public var sentBy: String?
    @Field("stands_in_for", "The endpoint that it is a backup for") public var standsInFor: String?
    @Field("contact", "never, reached or accepted = how far it has come with the server since the start")
    public var contact: String?
    @Field(
        "contact_age_s", unit: "s", places: 1, "Since it was last reached or, once it has accepted anything, since that"
    )
    public var contactAge: Double?
    @Field("interface", "Network interface towards it") public var interface: String?
    @Field("waiting", "Rows not accepted yet") public var waiting = 0
    @Field("queue_oldest_age_s", unit: "s", places: 1, "How much older the oldest of them is than the last fix")
    public var oldestAge: Double?
    @Field("problem", "The last failure, until one attempt succeeds") public var problem: String?
    @Field("problem_layer", "Where that was (dns, connect, tls, timeout, broken …), unless the server has answered")
    public var problemLayer: String?
    @Field("advice", "What to do about it") public var advice: String?
    @Field(
        "bind_needs_force", "In state rebind: whether rows of another device or asset wait, so that bind needs force")
    public var bindNeedsForce: Bool?
    @Field("consecutive_failures", "Failures in a row") public var consecutiveFailures: Int?
    @Field("last_success_age_s", unit: "s", places: 1, "Since the last acceptance") public var lastSuccessAge: Double?
    @Field("next_attempt_s", unit: "s", places: 1, "Until the next attempt") public var nextAttempt: Double?
    @Field("token_expires_s", unit: "s", places: 1, "Until its token expires, where that is known; negative afterwards")
    public var tokenExpires: Double?
    @Field("token_validity_s", unit: "s", places: 1, "From the issue of that token until it expires")
    public var tokenValidity: Double?
    @Field("token_problem", "Why a new token could not be fetched") public var tokenProblem: String?
    @Field("paused", "1 under the reason while paused") public var paused: Named<Int>?
    @Field("stopped", "1 under the reason while stopped") public var stopped: Named<Int>?
    @Field("acked", "Rows accepted") public var accepted: Int?
    @Field("batches", "Batches accepted") public var batches: Int?
    @Field("requests", "Requests") public var requests: Int?
    @Field("retries", "Requests that were not the first of their batch") public var retries: Int?
    @Field("stored", "Rows that the server says it stored") public var stored: Int?
    @Field("batches_repeated", "Batches sent again that may have been stored") public var batchesRepeated: Int?
    @Field("stray_answers", "Answers to requests that had been given up") public var strayAnswers: Int?
    @Field("retry_after_honoured", "Waits that the server asked for") public var retryAfterHonoured: Int?
    @Field("bisects", "Batches split to find a bad row") public var bisects: Int?
    @Field("suspects", "Rows that fail alone while others are accepted: tried last") public var suspects: Int?
    @Field("quarantined", "Rows put into quarantine") public var quarantined: Int?
    @Field("preview_sent", "Newest rows sent ahead, and newest positions from memory") public var previewSent: Int?
    @Field("connections", "Connections opened") public var connections: Int?
    @Field("bytes_sent", unit: "bytes", "Heads and bodies") public var bytesSent: Int?
    @Field("bytes_received", unit: "bytes", "Heads and bodies") public var bytesReceived: Int?
    @Field("wire_bytes_per_fix", unit: "bytes", places: 1, "Sent for each accepted row") public var bytesPerFix: Double?
    @Field("failed", "Failures by reason") public var failed: Named<Int>?
    @Field("quarantine_depth", "Rows in quarantine") public var quarantineDepth: Int?
    @Field("quarantine_overflow", "Rows that a full quarantine gave up") public var quarantineOverflow: Int?
    @Field("expired", "Rows that grew older than max_age") public var expired: Int?
    @Field("coalesced", "Rows superseded by newer ones") public var coalesced: Int?
    @Field("dropped", "Rows given up by order") public var dropped: Int?
    @Field("evicted", "Rows that the limits of the queue removed") public var evicted: Int?
    @Field("profile_rejected", "Rows that a rule of the profile kept back, by rule") public var profileRejected:
        Named<Int>?

    public init() {}
}

extension Status {
    package var displayUnits: DisplayUnits { units.flatMap(DisplayUnits.init(rawValue:)) ?? .metric }
}
