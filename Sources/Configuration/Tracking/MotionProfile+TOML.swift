import Positioning
import Tracking

extension Tracker.Settings {
    /// `[tracking.moving]` and `[tracking.stationary]`: override single keys of other tables. What `stationary` leaves
    /// out is as in `moving`.
    mutating func readProfiles(_ table: TableReader) {
        let movingTable = table.table("moving")
        let stationaryTable = table.table("stationary")
        var moving = profile
        moving.read(
            movingTable,
            layers: (sampling: "as [sampling]", resolution: "as [resolution.default]", tracking: "as [tracking]"))
        movingTable.read("receiver", into: &receiver.sleepMoving, as: .receiverSleeps)
        movingTable.warnOfNoEffect(["heartbeat"], "it is of a parked asset: see [tracking.stationary]")
        var stationary = moving
        stationary.heartbeat = motion.heartbeat
        let samplingKeys = stationary.read(
            stationaryTable,
            layers: (
                sampling: "as [tracking.moving]", resolution: "as [tracking.moving]", tracking: "as [tracking.moving]"
            ), heartbeatLayer: "as [tracking]")
        stationaryTable.read("receiver", into: &receiver.sleep, as: .receiverSleeps, note: "as [receiver] sleep")
        stationaryTable.warnOfNoEffect(
            samplingKeys, "while parked heartbeats and events are kept, whatever the rule")
        self.moving = movingTable.isWritten ? moving : nil
        self.stationary = stationaryTable.isWritten ? stationary : nil
    }
}

extension MotionProfile {
    /// - Parameter layers: where a value that is not written comes from.
    /// - Returns: the keys of sampling that the table changes.
    @discardableResult
    fileprivate mutating func read(
        _ table: TableReader, layers: (sampling: String, resolution: String, tracking: String),
        heartbeatLayer: String? = nil
    ) -> [String] {
        sampling.readKeys(table, note: layers.sampling)
        let samplingKeys = table.changedKeys
        table.read("priority", into: &resolution.priority, as: .priority, note: layers.resolution)
        table.read("interval", into: &resolution.intervalMs, as: .intervalMs, note: layers.resolution)
        table.read("displacement", into: &resolution.displacement, as: .displacement, note: layers.resolution)
        table.read("accuracy_limit", into: &accuracyMax, as: .accuracyLimit, note: layers.tracking)
        table.read("heartbeat", into: &heartbeat, as: .heartbeat, note: heartbeatLayer ?? layers.tracking)
        return samplingKeys
    }
}

extension TableReader {
    /// Keys with the value that would be in force anyhow are no mistake: `check --print` writes them all.
    fileprivate func warnOfNoEffect(_ keys: [String], _ reason: String) {
        for key in keys where changedKeys.contains(key) { warn(key, "has no effect: \(reason)") }
    }
}

extension ValueForm where Value == Bool {
    fileprivate static var receiverSleeps: ValueForm { .word([("on", false), ("sleep", true)]) }
}

extension ValueForm where Value == Double {
    static var accuracyLimit: ValueForm { .distance(.atLeast(1)) }
}

extension ValueForm where Value == Duration {
    static var heartbeat: ValueForm { .duration(.between(0, 7 * 86_400)) }
}
