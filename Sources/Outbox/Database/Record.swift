import Delivery
import JSON
import Positioning

/// How a location is written as a row and read back.
enum Record {
    /// In the order in which `bind` numbers them and `location` reads them, without `seq`.
    static let columns = """
        trackable, boot, time_ms, received_delta_ms, lat_e7, lon_e7, altitude_cm, altitude_hae_cm, accuracy_dm, \
        speed_cms, course_ddeg, hdop_c, satellites, battery, odometer_dm, reason, published, event, flags
        """
    static let columnCount = 19
    static let crossingColumns = "fence, name, action, source"
    static let tripColumns = "start_ms, start_lat_e7, start_lon_e7, end_ms, distance_dm, idle_ms, max_speed_cms"

    /// Events from this number on outlive plain fixes when the queue is full.
    static let firstLastingEvent: Int64 = 2
    private static let events: [LocationEvent] = [
        .none, .heartbeat, .motionchange, .geofence, .power, .gap, .trip, .panic, .requested, .settings, .beacon,
    ]
    static let actions: [GeofenceCrossing.Action] = [.enter, .exit, .dwell]
    private static let sources: [GeofenceCrossing.Source] = [.device, .beacon]
    /// In `flags` from 1 on; 0 is unknown.
    private static let activities: [Activity.Kind] = [.still, .onFoot, .running, .onBicycle, .inVehicle]
    /// Percent.
    private static let confidenceStep = 5

    static func number(of event: LocationEvent) -> Int64 {
        Int64(events.firstIndex(of: event) ?? 0)
    }

    /// The bits of the column `flags`; two-bit fields hold 0 for nil.
    private enum Flag {
        static let moving: Int64 = 1
        static let charging: Int64 = 1
        static let externalPower: Int64 = 3
        static let mode: Int64 = 5
        static let quality: Int64 = 7
        static let geofence: Int64 = 1 << 11
        static let trip: Int64 = 1 << 12
        static let settings: Int64 = 1 << 13
        /// Its time is that of receipt.
        static let isUnplaced: Int64 = 1 << 14
        /// Three bits, then five of its confidence: with both the column still fits three bytes.
        static let activity: Int64 = 15
        static let confidence: Int64 = 18
        static let network: Int64 = 1 << 23
        static let details = geofence | trip | settings | network
    }

    /// What a row has in tables of its own.
    struct Details {
        let hasGeofence, hasTrip, hasSettings, hasNetwork: Bool

        fileprivate init(flags: Int64) {
            hasGeofence = flags & Flag.geofence != 0
            hasTrip = flags & Flag.trip != 0
            hasSettings = flags & Flag.settings != 0
            hasNetwork = flags & Flag.network != 0
        }
    }
    static let unplacedFlag = Flag.isUnplaced
    static let detailTables = ["geofence", "trip", "settings", "network"]

    private static func flags(of location: Location) -> Int64 {
        func pair(_ value: Bool?) -> Int64 { value.map { $0 ? 2 : 1 } ?? 0 }
        var flags: Int64 = location.moving ? Flag.moving : 0
        flags |= pair(location.power.charging) << Flag.charging
        flags |= pair(location.power.externalPower) << Flag.externalPower
        flags |= Int64(location.mode?.rawValue ?? 0) << Flag.mode
        flags |= (location.quality.map { Int64($0.rawValue) + 1 } ?? 0) << Flag.quality
        if location.geofence != nil { flags |= Flag.geofence }
        if location.trip != nil { flags |= Flag.trip }
        if location.settings != nil { flags |= Flag.settings }
        if location.network != nil { flags |= Flag.network }
        if !location.isPlaced { flags |= Flag.isUnplaced }
        if let activity = location.activity, let number = activities.firstIndex(of: activity.kind) {
            flags |= Int64(number + 1) << Flag.activity
            flags |= Int64(activity.confidence / confidenceStep) << Flag.confidence
        }
        return flags
    }

    private static func activity(flags: Int64) -> Activity? {
        let number = Int(flags >> Flag.activity & 7) - 1
        guard activities.indices.contains(number) else { return nil }
        return Activity(
            kind: activities[number], confidence: Int(flags >> Flag.confidence & 31) * confidenceStep)
    }

    /// Whether a row has something in tables of its own.
    static func hasDetails(flags: Int64) -> Bool { flags & Flag.details != 0 }

    static func withoutDetails(flags: Int64) -> Int64 { flags & ~Flag.details }

    /// Binds `seq` as the first parameter and the columns after it.
    static func bind(_ row: NewRow, seq: Int64, trackable: Int64?, boot: Int64?, reason: Int64?, to insert: Statement) {
        let location = row.location
        let time = row.date
        insert.bind([
            seq, trackable, boot, time, row.receivedMs.map { $0 &- time }, Int64(location.coordinate.latitudeE7),
            Int64(location.coordinate.longitudeE7), Scaled.altitude(location.altitudeMSL),
            Scaled.altitude(location.altitudeHAE), Scaled.accuracy(location.horizontalAccuracy),
            Scaled.speed(location.speed), Scaled.course(location.course), Scaled.hdop(location.hdop),
            location.satellitesUsed.map(Int64.init), location.power.batteryPercent.map(Int64.init),
            Scaled.odometer(location.odometer) ?? 0, reason, location.published ? 1 : 0, number(of: location.event),
            flags(of: location),
        ])
    }

    /// A row whose columns begin with `seq`, then `columns`. The caller adds the details where there are any.
    static func location(_ row: Statement, names: Names) -> (QueuedLocation, Details) {
        let time = row.integer(3)
        let flags = row.integer(19)
        func real(_ column: Int32, per unit: Double) -> Double? {
            row.optionalInteger(column).map { Double($0) / unit }
        }
        func pair(_ shift: Int64) -> Bool? {
            let value = flags >> shift & 3
            return value == 0 ? nil : value == 2
        }
        let event = Int(clamping: row.integer(18))
        var location = Location(
            trackable: row.optionalInteger(1).flatMap { names.trackables[$0] },
            time: plausible(time), at: .zero,
            coordinate: Coordinate(
                latitudeE7: Int32(clamping: row.integer(5)), longitudeE7: Int32(clamping: row.integer(6))),
            altitudeMSL: real(7, per: 100), altitudeHAE: real(8, per: 100), horizontalAccuracy: real(9, per: 10),
            speed: real(10, per: 100), course: real(11, per: 10), hdop: real(12, per: 100),
            satellitesUsed: row.optionalInteger(13).map { Int(clamping: $0) },
            mode: FixMode(rawValue: Int(flags >> Flag.mode & 3)),
            quality: FixQuality(rawValue: Int(flags >> Flag.quality & 15) - 1),
            moving: flags & Flag.moving != 0,
            event: events.indices.contains(event) ? events[event] : .none,
            reason: row.optionalInteger(16).flatMap { names.reasons[$0] },
            odometer: real(15, per: 10) ?? 0,
            power: PowerState(
                batteryPercent: row.optionalInteger(14).map { Int(clamping: $0) }, charging: pair(Flag.charging),
                externalPower: pair(Flag.externalPower)),
            activity: activity(flags: flags), published: row.optionalInteger(17) != 0)
        if flags & Flag.isUnplaced != 0 { location.removePlace() }
        let queued = QueuedLocation(
            seq: row.integer(0), bootID: row.optionalInteger(2).flatMap { names.boots[$0] },
            receivedMs: row.optionalInteger(4).map { $0 &+ time }, location: location)
        return (queued, Details(flags: flags))
    }

    static func number(of action: GeofenceCrossing.Action) -> Int64 { Int64(actions.firstIndex(of: action) ?? 0) }

    /// The column `source`: a bit with the number of the source, one for an EXIT whose ENTER has no position, and above them
    /// how many bytes of the id come before the server's own; 0 = the fence came from no server.
    static func origin(of crossing: GeofenceCrossing) -> Int64 {
        Int64(sources.firstIndex(of: crossing.source) ?? 0) | (crossing.entryIsUnplaced ? 2 : 0)
            | Int64(crossing.id.count(before: crossing.serverID)) << 2
    }

    /// From the columns fence, name, action and source.
    static func crossing(_ row: Statement, from column: Int32) -> GeofenceCrossing {
        let action = Int(clamping: row.integer(column + 2))
        let (id, origin) = (row.text(column), row.integer(column + 3))
        var crossing = GeofenceCrossing(
            id: id, name: row.optionalText(column + 1),
            action: actions.indices.contains(action) ? actions[action] : .enter,
            source: sources[Int(origin & 1)], serverID: id.end(after: Int(clamping: origin >> 2)))
        crossing.entryIsUnplaced = origin & 2 != 0
        return crossing
    }

    /// From the columns `tripColumns`.
    static func trip(_ row: Statement, from column: Int32) -> TripSummary {
        TripSummary(
            start: plausible(row.integer(column)),
            startCoordinate: Coordinate(
                latitudeE7: Int32(clamping: row.integer(column + 1)),
                longitudeE7: Int32(clamping: row.integer(column + 2))),
            end: plausible(row.integer(column + 3)), distance: Double(row.integer(column + 4)) / 10,
            idle: Double(row.integer(column + 5)) / 1000,
            maxSpeed: row.optionalInteger(column + 6).map { Double($0) / 100 })
    }

    static let networkColumns = "ssid, bssid, ip"

    /// From the columns `networkColumns`.
    static func network(_ row: Statement, from column: Int32) -> NetworkContext {
        NetworkContext(
            ssid: row.optionalText(column), bssid: row.optionalText(column + 1), ip: row.optionalText(column + 2))
    }

    /// Within a hundred thousand years of 1970, whatever a damaged file says, so that nothing overflows later.
    static func plausible(_ milliseconds: Int64) -> UTCTime {
        UTCTime(milliseconds: max(-3_155_760_000_000_000, min(3_155_760_000_000_000, milliseconds)))
    }

    /// The small tables that rows refer to by number.
    struct Names {
        var trackables = NameTable("trackable")
        var boots = NameTable("boot")
        var reasons = NameTable("reason")
    }

    struct NameTable {
        /// Of the table in SQL.
        let name: String
        private var names: [Int64: String] = [:]
        private var numbers: [String: Int64] = [:]

        init(_ name: String) { self.name = name }

        subscript(number: Int64) -> String? {
            get { names[number] }
            set {
                guard let newValue else { return }
                names[number] = newValue
                numbers[newValue] = number
            }
        }

        subscript(name: String) -> Int64? { numbers[name] }

        var count: Int { names.count }
    }
}
