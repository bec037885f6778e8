import WaypostCore
import WaypostTracking

extension ResolutionSettings {
    /// What decides about resolutions, besides the resolutions themselves.
    /// - Returns: the tables of the rules, for `requireFences`.
    mutating func readPolicy(_ table: TableReader) -> [TableReader] {
        table.read("proximity", into: &proximity, as: .word(ProximityMode.allCases.map { ($0.rawValue, $0) }))
        table.read("subscriber_interval_floor", into: &subscriberIntervalFloor, as: .duration(.between(0, 86_400)))
        table.read("ignore_battery_on_external_power", into: &ignoreBatteryOnExternalPower, as: .flag)
        applyWithoutConstraints = LowBattery(reading: table.table("apply_without_constraints"))
        let ruleTables = table.tables("rule")
        rules = ruleTables.compactMap { ResolutionRule(reading: $0) }
        guard let constantEngine, constantEngine.best(with: self.default) != constantEngine else { return ruleTables }
        table.warn(
            "constant_engine",
            "found an engine coarser than the default resolution: fewer fixes come in than [resolution.default] asks to keep"
        )
        return ruleTables
    }

    /// A rule about a geofence that does not exist would silently never hold.
    /// - Parameters:
    ///   - sources: names of servers, whose fences are not known here.
    ///   - ruleTables: those of `rules`, in order.
    func requireFences(_ fences: [Geofence], sources: [String], of ruleTables: [TableReader]) {
        let ids = Set(fences.map(\.id))
        // Among thousands it would take too long, and after many it serves no one.
        let near = fences.prefix(1000).map(\.id)
        var hints = 0
        for (table, rule) in zip(ruleTables, rules) {
            guard let id = rule.geofence, !ids.contains(id), !sources.contains(where: { id.hasPrefix("\($0)/") }) else {
                continue
            }
            hints += 1
            let hint = (hints <= 20 ? nearest(id, in: near) : nil).map { " (did you mean \($0.asTOML)?)" } ?? ""
            table.report("geofence", "found \(id.asTOML), expected the id of a geofence of this configuration\(hint)")
        }
    }
}

extension LowBattery {
    /// nil when the table is not written, or not whole.
    fileprivate init?(reading table: TableReader) {
        let threshold = table.require("battery_threshold", as: .percent)
        let multiplier = table.require("low_battery_multiplier", as: .multiplier)
        guard let threshold, let multiplier else { return nil }
        self.init(threshold: threshold, multiplier: multiplier)
    }
}

extension ResolutionRule {
    /// nil when the table is not written.
    fileprivate init?(reading table: TableReader) {
        self.init()
        table.read("motion", into: &motion, as: .words(Motion.allCases.map { ($0.rawValue, $0) }))
        table.read("activity", into: &activity, as: .words(Activity.Kind.allCases.map { ($0.rawValue, $0) }))
        table.read("speed_above", into: &speedAbove, as: .speed())
        table.read("speed_below", into: &speedBelow, as: .speed(.atLeast(0.1)))
        table.read("battery_above", into: &batteryAbove, as: .percent)
        table.read("battery_below", into: &batteryBelow, as: .percent)
        table.read("external_power", into: &externalPower, as: .flag)
        table.read("subscribers", into: &subscribers, as: .flag)
        table.read("near", into: &near, as: .flag)
        table.read("geofence", into: &geofence, as: .name)
        table.read("hours", into: &hours, as: .hours)
        table.read("priority", into: &priority, as: .priority)
        table.read("interval", into: &intervalMs, as: .intervalMs)
        table.read("displacement", into: &displacement, as: .displacement)
        guard table.isWritten else { return nil }
        if let speedAbove, let speedBelow, speedAbove >= speedBelow {
            let other = ValueForm.speed().render(speedBelow)
            table.report(
                "speed_above", "found a speed that is not below speed_below, \(other): the rule could never hold")
        }
        if let batteryAbove, let batteryBelow, batteryAbove >= batteryBelow {
            let other = ValueForm<Double>.percent.render(batteryBelow)
            table.report(
                "battery_above", "found a level that is not below battery_below, \(other): the rule could never hold")
        }
        if !["priority", "interval", "displacement"].contains(where: table.has) {
            table.report(
                "interval",
                "found none of priority, interval and displacement, expected at least one: what the rule sets")
        }
    }
}

extension ValueForm where Value == Double {
    static var multiplier: ValueForm { .number("a factor", .between(1, 1000)) }
}

extension ValueForm {
    /// One of some words, or several in brackets.
    static func words<Word: Hashable>(_ words: [(String, Word)]) -> ValueForm where Value == Set<Word> {
        let one = ValueForm<Word>.word(words)
        return ValueForm(
            expected: "\(one.expected), or some of them in brackets",
            read: { node, environment throws(Mistake) in
                guard case .array = node.value else { return [try one.read(node, environment)] }
                let found = try node.elements { element throws(Mistake) in
                    do throws(Mistake) {
                        return try one.read(element, environment)
                    } catch {
                        var mistake = error
                        mistake.found = mistake.found ?? element.description
                        throw mistake
                    }
                }
                if found.isEmpty { throw Mistake(found: "an empty array") }
                return Set(found)
            },
            render: { value in
                let written = words.filter { value.contains($0.1) }.map(\.0)
                return written.count == 1 ? written[0].asTOML : written.asTOML
            })
    }
}
