import Positioning

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

    public init(
        sampling: LocationSampler.Settings, resolution: Resolution, accuracyMax: Double, heartbeat: Duration
    ) {
        self.sampling = sampling
        self.resolution = resolution
        self.accuracyMax = accuracyMax
        self.heartbeat = heartbeat
    }

    /// What holds while a boost lasts: a fix is kept when interval or displacement is reached, whatever the rule else.
    func boosted(_ resolution: Resolution) -> MotionProfile {
        var boosted = self
        boosted.resolution = resolution
        boosted.sampling.rule = .either
        boosted.sampling.minGap = .zero
        return boosted
    }
}

extension Tracker.Settings {
    /// The settings that no motion state overrides.
    public var profile: MotionProfile {
        MotionProfile(
            sampling: sampling, resolution: resolution.default, accuracyMax: admission.accuracyMax,
            heartbeat: motion.heartbeat)
    }
}

extension Tracker {
    /// The settings of both motion states, worked out when settings change and not with each fix.
    struct Profiles: Sendable {
        var moving: MotionProfile
        /// Until the first departure too.
        var stationary: MotionProfile

        init(_ settings: Settings) {
            moving = settings.moving ?? settings.profile
            stationary = settings.stationary ?? moving
        }
    }

    /// What chooses a profile.
    struct ProfileChoice: Hashable, Sendable {
        var isMoving: Bool
        var boost: Resolution?
    }

    /// Puts the profile of the motion state in force, or over it a boost.
    mutating func chooseProfile(_ effects: inout [Effect]) {
        let choice = ProfileChoice(isMoving: motion.isMoving, boost: board.boost)
        guard choice != profileChoice else { return }
        profileChoice = choice
        let moving = choice.boost.map(profiles.moving.boosted) ?? profiles.moving
        let profile = choice.isMoving || choice.boost != nil ? moving : profiles.stationary
        filter.settings.accuracyMax = profile.accuracyMax
        board.defaultResolution = profile.resolution
        // Parked nothing is sampled but in a boost, so that no segment ends by a change of rules that choose nothing.
        sample(by: moving.sampling, &effects)
    }

    /// nil, or a boost of no duration, ends the one that lasts; another replaces it.
    mutating func boostChanged(_ boost: Boost?, _ effects: inout [Effect]) {
        let boost = boost.flatMap { $0.duration > .zero ? $0 : nil }
        boostUntil = boost.map { now + min($0.duration, Boost.durationMax) }
        guard boost?.resolution != board.boost else { return }
        board.boost = boost?.resolution
        // A viewer who asks for more sees where the asset is with the next fix.
        if motion.isMoving { segmentReason = segmentReason ?? "profile" }
        recompute(&effects)
    }
}
