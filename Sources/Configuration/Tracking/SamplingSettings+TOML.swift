import WaypostCore
import WaypostTracking

/// Interval, displacement and angle under one word. The vendors' modes of the same names publish no numbers; these are
/// ours.
package enum SamplingPreset: String, CaseIterable {
    case active, balanced, passive

    package var resolution: Resolution {
        switch self {
        case .active: Resolution(priority: .balanced, intervalMs: 1000, displacement: 5)
        case .balanced: Resolution(priority: .balanced, intervalMs: 10_000, displacement: 50)
        case .passive: Resolution(priority: .balanced, intervalMs: 300_000, displacement: 200)
        }
    }

    /// Degrees; nil = off.
    package var angle: Double? {
        switch self {
        case .balanced: 20
        case .active, .passive: nil
        }
    }

    /// Where a value comes from that this preset gives.
    var note: String { "preset \(rawValue.asTOML)" }
}

extension LocationSampler.Settings {
    /// Gives the preset, which fills in what `[resolution]` and the other keys leave out, and the rule; nil = none is set.
    /// - Parameter vendorRule: what a vendor's key in another table says of the rule: see `ResolutionSettings.vendorRule`.
    mutating func read(
        _ table: TableReader, vendorRule: LocationSampler.Rule?
    ) -> (preset: SamplingPreset?, rule: LocationSampler.Rule?) {
        var preset: SamplingPreset?
        table.read("preset", into: &preset, as: .word(SamplingPreset.allCases.map { ($0.rawValue, $0) }))
        if let preset { angle = preset.angle }
        var rule = vendorRule
        let ruleNote =
            switch vendorRule {
            case nil: "track-error as long as nothing asks for a resolution"
            case .interval: "distanceFilter = 0"
            default: "distanceFilter"
            }
        readKeys(table, rule: &rule, ruleNote: ruleNote, angleNote: preset?.note)
        if vendorRule == .interval, let rule, rule != .interval {
            table.report(
                "rule",
                "found \(rule.rawValue.asTOML) together with distanceFilter = 0, expected one of the two: that is the rule "
                    + "\(LocationSampler.Rule.interval.rawValue.asTOML)")
        }
        return (preset, rule)
    }

    /// The keys of `[sampling]` that `[tracking.moving]` and `[tracking.stationary]` may override: what is not written stays
    /// as it is. It runs for all three tables, so a check across these keys goes through `TableReader.report(_: [String], _:)`,
    /// which reports in the table that has one of them. A check against a key of another table (interval, heartbeat) goes into
    /// `readProfiles`, on the moving profile, where all layers are known. No key here affects the receiver: see
    /// `LocationSampler.Settings`.
    /// - Parameters:
    ///   - rule: nil = none is set; see `AgentConfig.decideRules`.
    ///   - ruleNote: where a rule comes from that is not written there.
    ///   - angleNote: the same for the angle; nil = the default.
    mutating func readKeys(
        _ table: TableReader, rule: inout LocationSampler.Rule?, note: String? = nil, ruleNote: String? = nil,
        angleNote: String? = nil
    ) {
        table.read(
            "rule", into: &rule, as: .word(LocationSampler.Rule.allCases.map { ($0.rawValue, $0) }),
            note: ruleNote ?? note)
        table.read("bound", into: &bound, as: .distance(.between(0.1, 10_000)), note: note)
        table.read("max_delay", into: &maxDelay, as: .duration(.between(1, 3600)), note: note)
        table.read("angle", into: &angle, as: ValueForm<Double>.angle().orOff, note: angleNote ?? note)
        table.read("speed_change", into: &speedChange, as: ValueForm<Double>.speed(.between(0, 100)).orOff, note: note)
        table.read(
            "elasticity", into: &elasticity, as: ValueForm<Double>.number("a factor", .between(0, 100)).orOff,
            note: note)
        table.read("min_gap", into: &minGap, as: .duration(.between(0, 86_400)), note: note)
    }
}

extension ValueForm where Value == Double {
    /// "off" and 0 are nil.
    fileprivate var orOff: ValueForm<Double?> {
        orNone("off").map(to: { $0 == 0 ? nil : $0 }, from: { $0 })
    }
}
