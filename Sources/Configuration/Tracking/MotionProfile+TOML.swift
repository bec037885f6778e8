import WaypostCore
import WaypostTracking

/// The rules that are written, with those of the tables that they override; nil = none is.
package struct WrittenRules: Sendable {
    var sampling: LocationSampler.Rule?
    var moving: LocationSampler.Rule?
    var stationary: LocationSampler.Rule?
    /// Names of the settings of tracking that ask for a resolution.
    var asking: [String] = []

    init(sampling: LocationSampler.Rule? = nil) {
        self.sampling = sampling
        moving = sampling
        stationary = sampling
    }
}

extension AgentConfig {
    /// The rule where none is written: as few points as needed, unless a setting says how finely.
    package mutating func decideRules() { tracking.decide(rules, asking: rules.asking.first) }
}

extension Tracker.Settings {
    /// `[tracking.moving]` and `[tracking.stationary]`: override single keys of other tables. What `stationary` leaves
    /// out is as in `moving`.
    /// - Parameter hasDisplacement: see `ResolutionSettings.hasDisplacement`.
    /// - Returns: the key of `[tracking.moving]` that asks for a resolution; nil = none does.
    mutating func readProfiles(_ table: TableReader, rules: inout WrittenRules, hasDisplacement: Bool) -> String? {
        let movingTable = table.table("moving")
        let stationaryTable = table.table("stationary")
        var moving = profile
        moving.read(
            movingTable, rule: &rules.moving, hasDisplacement: hasDisplacement,
            layers: (sampling: "as [sampling]", resolution: "as [resolution.default]", tracking: "as [tracking]"))
        movingTable.read("receiver", into: &receiver.sleepMoving, as: .receiverSleeps)
        movingTable.warnOfNoEffect(["heartbeat"], "it is of a parked asset: see [tracking.stationary]")
        var stationary = moving
        stationary.heartbeat = motion.heartbeat
        rules.stationary = rules.moving
        let samplingKeys = stationary.read(
            stationaryTable, rule: &rules.stationary,
            hasDisplacement: hasDisplacement || movingTable.has("displacement"),
            layers: (
                sampling: "as [tracking.moving]", resolution: "as [tracking.moving]", tracking: "as [tracking.moving]"
            ), heartbeatLayer: "as [tracking]")
        stationaryTable.read("receiver", into: &receiver.sleep, as: .receiverSleeps, note: "as [receiver] sleep")
        stationaryTable.warnOfNoEffect(
            samplingKeys, "while parked heartbeats and events are kept, whatever the rule")
        self.moving = movingTable.isWritten ? moving : nil
        self.stationary = stationaryTable.isWritten ? stationary : nil
        let asking = movingTable.changedKeys.first {
            ["priority", "interval", "displacement", "elasticity", "min_gap"].contains($0)
        }
        return asking.map { "[tracking.moving] \($0)" }
    }

    /// - Parameter asking: the name of a setting that asks for a resolution; nil = none does.
    fileprivate mutating func decide(_ rules: WrittenRules, asking: String?) {
        let rule: LocationSampler.Rule = asking == nil ? .trackError : .either
        sampling.rule = rules.sampling ?? rule
        moving?.sampling.rule = rules.moving ?? rule
        stationary?.sampling.rule = rules.stationary ?? rule
        ruleReason = rules.moving == nil ? asking.map { .asked(by: $0) } ?? .nothingAsks : .chosen
    }

    /// `bound` and `max_delay`, if the asset is never tracked by the rule that obeys them.
    /// - Parameters:
    ///   - table: `[sampling]`.
    ///   - thins: a full queue is thinned, which `bound` is for as well.
    func warnOfTrackErrorAlone(_ table: TableReader, thins: Bool) {
        guard sampling.rule != .trackError, moving?.sampling.rule != .trackError else { return }
        let because = ruleReason == .chosen ? "" : ", because \(ruleReason.words)"
        let reason = "the rule is \(sampling.rule.rawValue.asTOML)\(because)"
        table.warnOfNoEffect(["max_delay"], reason)
        if !thins { table.warnOfNoEffect(["bound"], reason) }
    }

    /// What in `[resolution]`, `[sampling]` and `[[trackable]]` asks for a resolution.
    func asking(_ resolutionTable: TableReader, preset: SamplingPreset?) -> [String] {
        var asking: [String] = []
        if preset != nil { asking.append("[sampling] preset") }
        if sampling.elasticity != nil { asking.append("[sampling] elasticity") }
        if sampling.minGap > .zero { asking.append("[sampling] min_gap") }
        for name in ["default", "constant_engine", "apply_without_constraints"] where resolutionTable.has(name) {
            asking.append("[resolution.\(name)]")
        }
        if resolutionTable.has("locationUpdateInterval") { asking.append("[resolution] locationUpdateInterval") }
        if !resolution.rules.isEmpty { asking.append("[[resolution.rule]]") }
        if let trackable = trackables.first(where: { $0.constraints != nil }) {
            asking.append("constraints of trackable \(trackable.id)")
        }
        return asking
    }
}

extension MotionProfile {
    /// - Parameters:
    ///   - hasDisplacement: a displacement is set in a table that this one overrides.
    ///   - layers: where a value that is not written comes from.
    /// - Returns: the keys of sampling that the table changes.
    @discardableResult
    fileprivate mutating func read(
        _ table: TableReader, rule: inout LocationSampler.Rule?, hasDisplacement: Bool,
        layers: (sampling: String, resolution: String, tracking: String),
        heartbeatLayer: String? = nil
    ) -> [String] {
        sampling.readKeys(table, rule: &rule, note: layers.sampling)
        let samplingKeys = table.changedKeys
        if !hasDisplacement, table.has("rule"), let rule {
            resolution.displacement =
                rule == .significant
                ? LocationSampler.significantDisplacement : ResolutionSettings().default.displacement
        }
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
