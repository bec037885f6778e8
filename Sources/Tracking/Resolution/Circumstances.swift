import WaypostCore

/// What is known of the asset as a whole when a resolution is decided.
public struct Circumstances: Hashable, Sendable {
    public var motion: TrackerSnapshot.Motion
    /// How the asset travels, or that it is still; nil = unknown.
    public var activity: Activity.Kind?
    /// Metres per second, smoothed over half a minute; 0 while parked; nil = unknown.
    public var speed: Double?
    /// 0…100; nil = unknown: no reading, none for ten minutes, or not of interest because external power is connected.
    public var batteryPercent: Double?
    /// nil = unknown.
    public var externalPower: Bool?
    /// Ids of the geofences that the asset is in.
    public var insideFences: Set<String>
    /// The hours that have begun and not ended, in the words of the configuration (`TimeWindow.hours`).
    public var openHours: Set<String>

    public init(
        motion: TrackerSnapshot.Motion = .waiting, activity: Activity.Kind? = nil, speed: Double? = nil,
        batteryPercent: Double? = nil, externalPower: Bool? = nil, insideFences: Set<String> = [],
        openHours: Set<String> = []
    ) {
        self.motion = motion
        self.activity = activity
        self.speed = speed
        self.batteryPercent = batteryPercent
        self.externalPower = externalPower
        self.insideFences = insideFences
        self.openHours = openHours
    }
}
