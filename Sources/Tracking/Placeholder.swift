import Positioning

public struct Geofence: Sendable {}
public struct SubscriberChange: Sendable {}
public struct Boost: Sendable {}
public struct CountReason: Sendable {}
public struct Tracker: Sendable { public struct Settings: Sendable {} }
