extension PowerState {
    /// Percent of a battery, 0…100, from a reading and the reading of a full one; nil when the scale says nothing.
    ///
    /// Source: ably-asset-tracking-android 1.7.0, `BatteryDataProvider.kt`.
    public static func percent(level: Double, scale: Double) -> Double? {
        guard level.isFinite, scale.isFinite, scale > 0 else { return nil }
        return max(0, min(100, level * 100 / scale))
    }
}
