import WaypostCore

/// The rules of the configuration: the first that holds decides; if none does, the default policy.
///
/// A rule stands where the default policy picks by constraints: what subscribers ask for still refines it, and a low
/// battery still slows the result.
public struct RuleResolutionPolicy: ResolutionPolicy {
    private struct Entry: Sendable {
        var rule: ResolutionRule
        var speed: RangeCondition?
        var battery: RangeCondition?
    }

    private var entries: [Entry]
    private var standard: DefaultResolutionPolicy
    private let looksAtSpeed: Bool
    private let looksAtMotion: Bool
    private let looksAtActivity: Bool

    /// - Parameters:
    ///   - standard: decides where no rule holds.
    ///   - batteryHysteresis: percent.
    public init(
        rules: [ResolutionRule], standard: DefaultResolutionPolicy = DefaultResolutionPolicy(),
        batteryHysteresis: Double = 2
    ) {
        entries = rules.map { rule in
            Entry(
                rule: rule, speed: .speed(above: rule.speedAbove, below: rule.speedBelow),
                battery: .battery(
                    above: rule.batteryAbove, below: rule.batteryBelow, hysteresis: batteryHysteresis))
        }
        self.standard = standard
        looksAtSpeed = entries.contains { $0.speed != nil }
        looksAtMotion = rules.contains { $0.motion != nil }
        looksAtActivity = rules.contains { $0.activity != nil }
    }

    public func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
        guard let entry = entries.first(where: { Self.holds($0, for: request) }) else {
            return standard.networkResolution(for: request)
        }
        return standard.complete(entry.rule.applied(to: standard.picked(for: request)), for: request)
    }

    /// Position of the rule that decides, from 0; nil = the default policy does.
    func ruleInForce(for request: TrackableResolutionRequest) -> Int? {
        entries.firstIndex { Self.holds($0, for: request) }
    }

    public func accepts(_ constraints: ResolutionConstraints) -> Bool { standard.accepts(constraints) }

    private static func holds(_ entry: Entry, for request: TrackableResolutionRequest) -> Bool {
        let rule = entry.rule
        let now = request.circumstances
        return (entry.speed?.holds ?? true) && (entry.battery?.holds ?? true)
            && (rule.motion?.contains(.init(now.motion)) ?? true)
            && (rule.activity.map { now.activity.map($0.contains) ?? false } ?? true)
            && (rule.externalPower.map { $0 == now.externalPower } ?? true)
            && (rule.subscribers.map { $0 == request.hasSubscribers } ?? true)
            && (rule.near.map { $0 == request.near } ?? true)
            && (rule.geofence.map { now.insideFences.contains($0) } ?? true)
            && (rule.hours.map { now.openHours.contains($0) } ?? true)
    }

    public mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect] { standard.trackableAdded(trackable) }

    public mutating func activeTrackableChanged(_ trackable: Trackable?) -> [PolicyEffect] {
        standard.activeTrackableChanged(trackable)
    }

    public mutating func proximityChanged(of trackable: Trackable, near: Bool) -> [PolicyEffect] {
        standard.proximityChanged(of: trackable, near: near)
    }

    public mutating func batteryChanged(percent: Double?) -> [PolicyEffect] {
        for index in entries.indices { _ = entries[index].battery?.observe(percent) }
        return [.recomputeAll]
    }

    public mutating func motionChanged(_ motion: TrackerSnapshot.Motion) -> [PolicyEffect] {
        looksAtMotion ? [.recomputeAll] : []
    }

    public mutating func activityChanged(_ activity: Activity.Kind?) -> [PolicyEffect] {
        looksAtActivity ? [.recomputeAll] : []
    }

    public mutating func speedChanged(_ speed: Double?) -> [PolicyEffect] {
        guard looksAtSpeed else { return [] }
        var changed = false
        for index in entries.indices where entries[index].speed?.observe(speed) ?? false { changed = true }
        return changed ? [.recomputeAll] : []
    }

    public mutating func geofencesChanged(inside ids: Set<String>) -> [PolicyEffect] {
        entries.contains { $0.rule.geofence != nil } ? [.recomputeAll] : []
    }

    public mutating func hoursChanged(_ hours: String, open: Bool) -> [PolicyEffect] {
        entries.contains { $0.rule.hours == hours } ? [.recomputeAll] : []
    }
}
