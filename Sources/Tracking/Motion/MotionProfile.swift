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
    }

    private let moving: MotionProfile
    /// Until the first departure too.
    private let stationary: MotionProfile
    /// Between two heartbeats while parked; zero = none.
    let heartbeat: Nanoseconds
    /// nil = nothing is in force yet.
    private var basis: Basis?

    init(_ settings: Tracker.Settings) {
        moving = settings.moving ?? settings.profile
        stationary = settings.stationary ?? moving
        heartbeat = Nanoseconds(stationary.heartbeat)
    }

    /// As in the settings.
    var heartbeatSetting: Duration { stationary.heartbeat }

    /// - Returns: the profile that comes into force; nil = it is already.
    mutating func choose(isMoving: Bool, boost: Resolution?) -> MotionProfile? {
        let basis = Basis(isMoving: isMoving, boost: boost)
        guard basis != self.basis else { return nil }
        self.basis = basis
        let moving = boost.map(self.moving.boosted) ?? self.moving
        var chosen = isMoving || boost != nil ? moving : stationary
        // Parked, nothing is sampled except in a boost: other rules would only end a segment.
        chosen.sampling = moving.sampling
        return chosen
    }
}
