/// What a reference gives before casts.
enum ValueType: Hashable, Sendable {
    case int, float, string, bool
    /// A whole record, or all of them.
    case object

    /// For messages.
    var words: String {
        switch self {
        case .int, .float: "a number"
        case .string: "text"
        case .bool: "a truth value"
        case .object: "an object"
        }
    }
}

/// The names of values of one record.
enum RecordName: String, CaseIterable, Sendable {
    case id, trackable, seq
    case timeMs = "time_ms"
    case timeS = "time_s"
    case timeNs = "time_ns"
    case timeSFloat = "time_s_float"
    case timeISO = "time_iso"
    case timeISOSeconds = "time_iso_s"
    case receivedMs = "received_ms"
    /// `time_ms`; where there is none, `received_ms`, or 0.
    case dateMs = "date_ms"
    /// `received_ms` where there is no `time_ms`, else nil.
    case clockMs = "clock_ms"
    case bootID = "boot_id"
    case lat, lon
    case latE7 = "lat_e7"
    case lonE7 = "lon_e7"
    case altitude
    case altitudeHAE = "altitude_hae"
    case accuracy, hdop, satellites
    case fixMode = "fix_mode"
    case quality, simulated
    case speedMPS = "speed_mps"
    case speedKMH = "speed_kmh"
    case speedKnots = "speed_knots"
    case speedMPH = "speed_mph"
    case bearing, moving
    case motionWord = "motion_word"
    case activity
    /// Percent.
    case activityConfidence = "activity_confidence"
    /// `activity` as Overland says it; the word of `moving` while it is unknown.
    case activityWord = "activity_word"
    case event, reason, odometer
    case odometerKM = "odometer_km"
    case batteryPct = "battery_pct"
    case batteryFrac = "battery_frac"
    case charging
    case externalPower = "external_power"
    case batteryState = "battery_state"
    case batteryBS = "battery_bs"
    case geofenceID = "geofence_id"
    case geofenceName = "geofence_name"
    /// By which the server knows the fence that it came from.
    case geofenceServerID = "geofence_server_id"
    case geofenceAction = "geofence_action"
    case geofenceSource = "geofence_source"
    /// `BEACON` when a beacon saw the crossing, nil when fixes did.
    case geofenceBeacon = "geofence_beacon"
    /// `enter` or `leave`, as OwnTracks calls them; nil for a dwell.
    case geofenceTransition = "geofence_transition"
    /// What changed in the settings, as a JSON object.
    case settings
    case ssid, bssid, ip
    case beaconUUID = "beacon_uuid"
    case beaconMajor = "beacon_major"
    case beaconMinor = "beacon_minor"
    case published
    case rowTrackable = "row_trackable"
    case rowBootID = "row_boot_id"
    case tripStartMs = "trip_start_ms"
    case tripStartLat = "trip_start_lat"
    case tripStartLon = "trip_start_lon"
    case tripEndMs = "trip_end_ms"
    /// Metres.
    case tripDistance = "trip_distance"
    /// Seconds.
    case tripDuration = "trip_duration"
    /// Seconds.
    case tripIdle = "trip_idle"
    /// Metres per second.
    case tripMaxSpeed = "trip_max_speed"
    case location

    var type: ValueType {
        switch self {
        case .seq, .timeMs, .timeS, .timeNs, .receivedMs, .clockMs, .dateMs, .beaconMajor, .beaconMinor, .latE7, .lonE7,
            .satellites, .batteryPct, .batteryBS, .activityConfidence, .tripStartMs, .tripEndMs:
            .int
        case .timeSFloat, .lat, .lon, .altitude, .altitudeHAE, .accuracy, .hdop, .speedMPS, .speedKMH, .speedKnots,
            .speedMPH, .bearing, .odometer, .odometerKM, .batteryFrac, .tripStartLat, .tripStartLon, .tripDistance,
            .tripDuration, .tripIdle, .tripMaxSpeed:
            .float
        case .simulated, .moving, .charging, .externalPower, .published: .bool
        case .location, .settings: .object
        default: .string
        }
    }

    /// Decimals of a float, 0 for integers.
    var places: Int {
        switch self {
        case .lat, .lon, .tripStartLat, .tripStartLon: 7
        case .timeSFloat, .odometerKM: 3
        case .altitude, .altitudeHAE, .hdop, .speedMPS, .speedKMH, .speedKnots, .speedMPH, .batteryFrac, .tripMaxSpeed:
            2
        case .accuracy, .bearing, .odometer, .tripDistance, .tripDuration, .tripIdle: 1
        default: 0
        }
    }

    /// Whether a template must reckon with nil. Those of the place are nil only with `without_position`, `trackable`
    /// only in rows that `feed = "engine"` adds.
    var isNullable: Bool {
        switch self {
        case .id, .trackable, .seq, .timeMs, .timeS, .timeNs, .timeSFloat, .timeISO, .timeISOSeconds, .lat, .lon,
            .latE7, .lonE7, .dateMs, .batteryState, .batteryBS, .published, .location:
            false
        default: true
        }
    }
}

/// The names of values of a whole batch.
enum BatchName: String, CaseIterable, Sendable {
    case outbox
    case trackable = "batch_trackable"
    case bootID = "batch_boot_id"
    case records, record, newest
    case id = "batch_id"
    case count = "batch_count"
    case firstSeq = "first_seq"
    case lastSeq = "last_seq"
    case sentMs = "sent_ms"
    case sentS = "sent_s"
    case sentISO = "sent_iso"

    var type: ValueType {
        switch self {
        case .count, .firstSeq, .lastSeq, .sentMs, .sentS: .int
        case .records, .record, .newest: .object
        default: .string
        }
    }

    var isNullable: Bool {
        switch self {
        case .trackable, .bootID, .newest, .sentMs, .sentS, .sentISO: true
        default: false
        }
    }
}

/// The names of values of an endpoint.
enum EndpointReference: String, CaseIterable, Sendable {
    case baseURL = "base_url"
    case device, endpoint
    case agentVersion = "agent_version"
}
