import WaypostCore

/// The settings that may differ between a moving and a parked asset: other values, the same rules.
public struct MotionProfile: Hashable, Sendable {
    /// Which fixes are kept while moving. Parked, only heartbeats and events are.
    public var sampling: LocationSampler.Settings
    /// What the resolution policy starts from, and with it what the receiver is asked for. Parked, no more is published
    /// than a heartbeat however small the interval is.
    public var resolution: Resolution
    /// Metres; a fix that is less accurate is rejected.
    public var accuracyMax: Double
    /// While parked a record at least this often; zero = none. Means nothing while moving.
    public var heartbeat: Duration

    /// What holds while a boost lasts, moving or parked: a fix is kept when the interval or the displacement is reached. What
    /// keeps fewer (`minGap`, another rule) is suspended, what keeps more (`angle`, `speedChange`) stays.
    func boosted(_ resolution: Resolution) -> MotionProfile {
        var boosted = self
        boosted.resolution = resolution
        boosted.sampling.rule = .either
        boosted.sampling.minGap = .zero
        return boosted
    }
}

/// The profiles of both motion states, worked out when settings change, and which of them is in force.
struct ProfileChoice: Sendable {
    private struct Basis: Hashable {
        let isMoving: Bool
        let boost: Resolution?
        let isWatched: Bool
        let isEngineSet: Bool
    }

    private let settledReason: LocationSampler.RuleReason
    private let moving: MotionProfile
    /// Until the first departure too.
    private let stationary: MotionProfile
    /// Between two heartbeats while parked; zero = none.
    let heartbeat: Nanoseconds
    /// nil = nothing is in force yet.
    private var basis: Basis?
    /// Why the rule in force is what it is.
    private(set) var ruleReason: LocationSampler.RuleReason

    init(_ settings: Tracker.Settings) {
        moving = settings.moving ?? settings.profile
        stationary = settings.stationary ?? moving
        heartbeat = Nanoseconds(stationary.heartbeat)
        settledReason = settings.ruleReason
        ruleReason = settledReason
    }

    /// As in the settings.
    var heartbeatSetting: Duration { stationary.heartbeat }

    /// The rule that moving assets are followed by.
    var rule: LocationSampler.Rule {
        switch ruleReason {
        case .subscriber, .boost, .engine: .either
        case .chosen, .nothingAsks, .asked: moving.sampling.rule
        }
    }

    /// - Parameters:
    ///   - isWatched: a subscriber is there.
    ///   - isEngineSet: a constant location engine is in force.
    /// - Returns: the profile that comes into force; nil = it is already.
    mutating func choose(
        isMoving: Bool, boost: Resolution?, isWatched: Bool, isEngineSet: Bool
    ) -> MotionProfile? {
        let mayAsk = settledReason == .nothingAsks
        let basis = Basis(
            isMoving: isMoving, boost: boost, isWatched: isWatched && mayAsk, isEngineSet: isEngineSet && mayAsk)
        guard basis != self.basis else { return nil }
        self.basis = basis
        ruleReason =
            boost != nil ? .boost : basis.isWatched ? .subscriber : basis.isEngineSet ? .engine : settledReason
        var moving = boost.map(self.moving.boosted) ?? self.moving
        moving.sampling.rule = rule
        var chosen = isMoving || boost != nil ? moving : stationary
        // Parked, nothing is sampled except in a boost: other rules would only end a segment.
        chosen.sampling = moving.sampling
        return chosen
    }
}
