public struct LookRequest: ControlRequest {
    public typealias Reply = Look

    public static let verb = Verb.look
    public static let meaning =
        "Reports the last position, how near the next decision about motion is, and the last decisions: what status leaves out."

    @Field("after", "Only decisions with a higher number, for a client that polls") public var after: Int?

    public init(after: Int?) { self.after = after }

    public init() {}
}

/// What `status` must not hold, since it is pasted into reports: where the asset is, and the evidence of decisions.
public struct Look: ControlMessage {
    @Field("fix", "The last fix that was believed") public var fix: FixLook?
    @Field("refused", "Fixes in a row that were not believed since") public var refused = 0
    @Field("refused_reason", "Why the last of them was not") public var refusedReason: String?
    @Field("motion", "Motion, and what would change it") public var motion = MotionLook()
    @Field("engine_because", "Why the receiver is asked for the resolution in force") public var engineBecause = ""
    @Field("published", "What is published of each trackable, at most 8") public var published: [PublishedLook] = []
    @Field("decisions", "The last decisions, the newest first, at most 20") public var decisions: [DecisionLook] = []

    public init() {}
}

public struct FixLook: ControlMessage {
    @Field("time", "UTC of the measurement") public var time = ""
    @Field("age_s", unit: "s", places: 1, "Since it arrived") public var age = 0.0
    @Field("latitude", unit: "degrees", places: 7, "As the receiver gave it") public var latitude = 0.0
    @Field("longitude", unit: "degrees", places: 7, "As the receiver gave it") public var longitude = 0.0
    @Field("held", "true = records carry the place of the standstill instead") public var held: Bool?
    @Field("altitude", unit: "m", places: 1, "Above mean sea level") public var altitude: Double?
    @Field("accuracy", unit: "m", places: 2, "Horizontal, 63 to 68 % of positions") public var accuracy: Double?
    @Field("speed", unit: "m/s", places: 2, "Over ground") public var speed: Double?
    @Field("course", unit: "degrees", places: 1, "True, over ground") public var course: Double?
    @Field("hdop", places: 2, "Horizontal dilution of precision") public var hdop: Double?
    @Field("satellites", "Satellites used") public var satellites: Int?
    @Field("quality", "gps, dgps, pps, rtk, float, dr, manual or simulated") public var quality: String?

    public init() {}
}

/// Members without a meaning in the present state are absent.
public struct MotionLook: ControlMessage {
    @Field("state", "As in status") public var state = ""
    @Field("evidence", unit: "m", places: 1, "Metres of movement that the last fixes agree on") public var evidence =
        0.0
    @Field("evidence_needed", unit: "m", places: 1, "As many begin a trip, or end a halt")
    public var evidenceNeeded: Double?
    @Field("distance", unit: "m", places: 1, "From the place where it stands") public var distance: Double?
    @Field("radius", unit: "m", places: 1, "Beyond this distance it is elsewhere") public var radius: Double?
    @Field("speed", unit: "m/s", places: 2, "Of the vector over 5 s") public var speed: Double?
    @Field("still_speed", unit: "m/s", places: 2, "Below this vector speed a halt begins") public var stillSpeed:
        Double?
    @Field("stands_s", unit: "s", places: 1, "Since the halt began") public var stands: Double?
    @Field("parks_in_s", unit: "s", places: 1, "Until it counts as parked, unless something moves") public var parksIn:
        Double?
    @Field("parks_because", "stop-timeout, power or no-fix") public var parksBecause: String?

    public init() {}
}

public struct PublishedLook: ControlMessage {
    @Field("trackable", "Its id") public var trackable = ""
    @Field("", "") public var resolution = ResolutionValue()
    @Field("because", "What decided it") public var because = ""

    public init() {}
}

public struct DecisionLook: ControlMessage {
    @Field("number", "Counted from 1 at the start of the daemon") public var number = 0
    @Field("time", "UTC of the decision; absent before the first dated fix") public var time: String?
    @Field("age_s", unit: "s", places: 1, "Since the decision") public var age = 0.0
    @Field("kind", "motion, geofence, power, gap, panic, receiver or clock") public var kind = ""
    @Field("what", "What was decided") public var what = ""
    @Field("reason", "Why, as in records") public var reason: String?
    @Field("since", "motion: UTC that it is dated back to") public var since: String?
    @Field("evidence", unit: "m", places: 1, "motion: metres of agreed movement") public var evidence: Double?
    @Field("distance", unit: "m", places: 1, "motion: metres from the place") public var distance: Double?
    @Field("speed", unit: "m/s", places: 2, "motion: of the vector over 5 s") public var speed: Double?
    @Field("accuracy", unit: "m", places: 2, "motion: of the last fix") public var accuracy: Double?

    public init() {}
}
