/// Why a location was recorded besides the plain track.
public enum LocationEvent: String, Sendable, Codable, CaseIterable {
    case none
    case motionchange
    case geofence
    case heartbeat
    case power
    case gap
    case trip
    case panic
    /// A person or a server asked where the asset is.
    case requested
    /// A beacon was seen: for servers that count them.
    case beacon
    /// Settings changed from afar. Never with a position.
    case settings

    /// A plain fix or a heartbeat: it gives way to all others, and a newer one can replace it.
    package var isPlain: Bool { self == .none || self == .heartbeat }
}

/// A geofence crossing as of the time it was recorded.
public struct GeofenceCrossing: Hashable, Sendable, Codable {
    public enum Action: String, Sendable, Codable, CaseIterable {
        case enter, exit, dwell
    }
    public enum Source: String, Sendable, Codable, CaseIterable {
        case device, beacon
    }
    public var id: String
    public var name: String?
    public var action: Action
    public var source: Source
    /// The end of `id` by which the server knows the fence that it came from; nil = it came from none.
    public var serverID: String?
    /// Of an EXIT: the record of its ENTER has no position. A server that did not get the ENTER for that reason does not get
    /// the EXIT either.
    public var entryIsUnplaced = false

    public init(
        id: String, name: String?, action: Action, source: Source = .device, serverID: String? = nil
    ) {
        self.id = id
        self.name = name
        self.action = action
        self.source = source
        self.serverID = serverID
    }
}

/// The trip fields of a record with the event `trip`.
public struct TripSummary: Hashable, Sendable, Codable {
    /// Departure.
    public var start: UTCTime
    public var startCoordinate: Coordinate
    /// Standstill.
    public var end: UTCTime
    /// Metres gained on the odometer, gaps left out.
    public var distance: Double
    /// Seconds standing inside the trip.
    public var idle: Double
    /// Metres per second; nil without speeds.
    public var maxSpeed: Double?

    public init(
        start: UTCTime, startCoordinate: Coordinate, end: UTCTime, distance: Double, idle: Double, maxSpeed: Double?
    ) {
        self.start = start
        self.startCoordinate = startCoordinate
        self.end = end
        self.distance = distance
        self.idle = idle
        self.maxSpeed = maxSpeed
    }
}

/// State of battery and supply. nil means unknown, never empty.
public struct PowerState: Hashable, Sendable, Codable {
    /// Percent, 0…100.
    public var batteryPercent: Int?
    public var charging: Bool?
    /// In a vehicle box this is the ignition.
    public var externalPower: Bool?

    public init(batteryPercent: Int? = nil, charging: Bool? = nil, externalPower: Bool? = nil) {
        self.batteryPercent = batteryPercent
        self.charging = charging
        self.externalPower = externalPower
    }
}

/// A record that is kept and uploaded (LocationData), everything as of the time it was recorded. nil = unknown.
public struct Location: Hashable, Sendable {
    /// Whose location this is; nil in rows that only a `feed = "engine"` endpoint gets.
    public var trackable: String?
    /// Time of the fix, or for decisions without a fix the last dated fix plus the event time elapsed since.
    public var time: UTCTime
    /// Event time of the decision to record it.
    public var at: EventTime
    public var coordinate: Coordinate
    /// Whether `time` and `coordinate` mean anything. Not in what happened where no fix was ever believed (a beacon without
    /// sky) or has nothing to do with a place (changed settings); a server that needs a position does not get these.
    public private(set) var isPlaced = true
    /// Metres above mean sea level.
    public var altitudeMSL: Double?
    /// Metres above the WGS 84 ellipsoid.
    public var altitudeHAE: Double?
    /// Metres, DRMS; never 0.
    public var horizontalAccuracy: Double?
    /// Metres per second.
    public var speed: Double?
    /// Degrees true, 0…360.
    public var course: Double?
    public var hdop: Double?
    public var satellitesUsed: Int?
    /// nil in records without a fix of their own.
    public var mode: FixMode?
    public var quality: FixQuality?
    public var moving: Bool
    public var event: LocationEvent
    /// The trigger that kept the record (`interval`, `displacement`, `stop-timeout`, …).
    public var reason: String?
    /// Metres.
    public var odometer: Double
    public var power: PowerState
    /// nil until enough was seen of how it moves.
    public var activity: Activity?
    /// Selected by the network resolution of its trackable.
    public var published: Bool
    @usableFromInline var extras: Extras?

    public init(
        trackable: String?, time: UTCTime, at: EventTime, coordinate: Coordinate, altitudeMSL: Double? = nil,
        altitudeHAE: Double? = nil, horizontalAccuracy: Double? = nil, speed: Double? = nil, course: Double? = nil,
        hdop: Double? = nil, satellitesUsed: Int? = nil, mode: FixMode? = nil, quality: FixQuality? = nil,
        moving: Bool, event: LocationEvent = .none, reason: String? = nil, odometer: Double = 0,
        power: PowerState = PowerState(), geofence: GeofenceCrossing? = nil, trip: TripSummary? = nil,
        activity: Activity? = nil, network: NetworkContext? = nil,
        settings: String? = nil, published: Bool = true
    ) {
        self.trackable = trackable
        self.time = time
        self.at = at
        self.coordinate = coordinate
        self.altitudeMSL = altitudeMSL
        self.altitudeHAE = altitudeHAE
        self.horizontalAccuracy = horizontalAccuracy
        self.speed = speed
        self.course = course
        self.hdop = hdop
        self.satellitesUsed = satellitesUsed
        self.mode = mode
        self.quality = quality
        self.moving = moving
        self.event = event
        self.reason = reason
        self.odometer = odometer
        self.power = power
        self.activity = activity
        self.published = published
        extras = .make(geofence: geofence, trip: trip, network: network, settings: settings)
    }

    public var geofence: GeofenceCrossing? {
        @inlinable get { extras?.geofence }
        set { extras = .make(geofence: newValue, trip: trip, network: network, settings: settings) }
    }

    public var trip: TripSummary? {
        @inlinable get { extras?.trip }
        set { extras = .make(geofence: geofence, trip: newValue, network: network, settings: settings) }
    }

    public var network: NetworkContext? {
        @inlinable get { extras?.network }
        set { extras = .make(geofence: geofence, trip: trip, network: newValue, settings: settings) }
    }

    /// What changed, of a record with the event `settings`: a JSON object.
    public var settings: String? {
        @inlinable get { extras?.settings }
        set { extras = .make(geofence: geofence, trip: trip, network: network, settings: newValue) }
    }

    /// What only few locations have. It is one reference, since a location is copied many times on its way; read inline, since
    /// it would be copied for each call as well.
    @usableFromInline final class Extras: Hashable, Sendable {
        @usableFromInline let geofence: GeofenceCrossing?
        @usableFromInline let trip: TripSummary?
        @usableFromInline let network: NetworkContext?
        @usableFromInline let settings: String?

        /// nil where there is nothing.
        static func make(
            geofence: GeofenceCrossing?, trip: TripSummary?, network: NetworkContext?, settings: String?
        ) -> Extras? {
            if geofence == nil, trip == nil, network == nil, settings == nil { return nil }
            return Extras(geofence, trip, network, settings)
        }

        private init(
            _ geofence: GeofenceCrossing?, _ trip: TripSummary?, _ network: NetworkContext?, _ settings: String?
        ) {
            self.geofence = geofence
            self.trip = trip
            self.network = network
            self.settings = settings
        }

        @usableFromInline static func == (one: Extras, other: Extras) -> Bool {
            one.geofence == other.geofence && one.trip == other.trip && one.network == other.network
                && one.settings == other.settings
        }

        @usableFromInline func hash(into hasher: inout Hasher) {
            hasher.combine(geofence)
            hasher.combine(trip)
            hasher.combine(network)
            hasher.combine(settings)
        }
    }

    /// A record without position and time of a fix.
    package init(
        unplaced event: LocationEvent, reason: String?, at: EventTime, moving: Bool, odometer: Double,
        power: PowerState
    ) {
        self.init(
            trackable: nil, time: UTCTime(milliseconds: 0), at: at,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: moving, event: event, reason: reason,
            odometer: odometer, power: power)
        isPlaced = false
    }

    /// - Parameter accuracy: metres; nil = unknown.
    package mutating func place(at coordinate: Coordinate, time: UTCTime, accuracy: Double?) {
        (self.coordinate, self.time, horizontalAccuracy) = (coordinate, time, accuracy)
        isPlaced = true
    }

    /// It says nothing about position and time of a fix any more.
    package mutating func removePlace() {
        time = UTCTime(milliseconds: 0)
        coordinate = Coordinate(latitudeE7: 0, longitudeE7: 0)
        isPlaced = false
    }

    /// The receiver said that the fix is simulated.
    public var simulated: Bool { quality == .simulated }
}
