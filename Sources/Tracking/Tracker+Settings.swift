extension Tracker.Settings {
    /// Whether a reload with `other` would change nothing. The policy is left out: it outlives a reload.
    public func isSame(as other: Self) -> Bool {
        admission == other.admission && motion == other.motion && receiver == other.receiver
            && sampling == other.sampling && resolution == other.resolution && moving == other.moving
            && stationary == other.stationary && geofences == other.geofences && trackables == other.trackables
            && keepEngineFixes == other.keepEngineFixes && tripSummary == other.tripSummary
            && batteryAlarm == other.batteryAlarm
    }
}
