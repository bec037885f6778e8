import Positioning

/// The resolutions in force: one published for each trackable, and one asked of the receiver.
///
/// Recomputing is idempotent: effects come only of changes.
struct ResolutionBoard: Sendable {
    struct Entry: Sendable {
        var trackable: Trackable
        /// What each present member asks for; nil = it asks for nothing.
        var subscribers: [String: Resolution?] = [:]
        var near = false
        var batteryLow = false
        /// nil before the first computation.
        var published: Resolution?
    }

    private var policy: any ResolutionPolicy
    /// What decides where nothing else does; the profile of the motion state may set another than the settings.
    var defaultResolution: Resolution {
        didSet { policy = DefaultResolutionPolicy(defaultResolution: defaultResolution) }
    }
    private var settings: ResolutionSettings
    private(set) var entries: [Entry]
    private(set) var engine: Resolution?
    var constantEngine: Resolution?
    var boost: Resolution?

    init(settings: ResolutionSettings, trackables: [Trackable]) {
        self.settings = settings
        defaultResolution = settings.default
        policy = DefaultResolutionPolicy(defaultResolution: settings.default)
        constantEngine = settings.constantEngine
        entries = trackables.map { Entry(trackable: $0) }
    }

    /// Subscribers and what was published so far stay with trackables that are in both.
    mutating func reload(settings: ResolutionSettings, trackables: [Trackable]) {
        self.settings = settings
        defaultResolution = settings.default
        constantEngine = settings.constantEngine
        let before = entries
        entries = trackables.map { trackable in
            var entry = before.first { $0.trackable.id == trackable.id } ?? Entry(trackable: trackable)
            entry.trackable = trackable
            return entry
        }
    }

    mutating func subscriberChanged(_ change: SubscriberChange) {
        guard let index = entries.firstIndex(where: { $0.trackable.id == change.trackable }) else { return }
        switch change.action {
        case .add(let resolution):
            entries[index].subscribers.updateValue(resolution, forKey: change.member)
        case .update(let resolution):
            guard entries[index].subscribers.keys.contains(change.member) else { return }
            entries[index].subscribers.updateValue(resolution, forKey: change.member)
        case .remove:
            entries[index].subscribers.removeValue(forKey: change.member)
        }
    }

    /// Low below the threshold; well again only some percent above it. An unknown level is not low.
    mutating func powerChanged(_ power: PowerState) {
        let ignored = settings.ignoreBatteryOnExternalPower && power.externalPower == true
        let percent = ignored ? nil : power.batteryPercent.map(Double.init)
        for index in entries.indices {
            guard let percent, let threshold = entries[index].trackable.constraints?.lowBattery?.threshold else {
                entries[index].batteryLow = false
                continue
            }
            let limit = entries[index].batteryLow ? threshold + settings.lowBatteryHysteresis : threshold
            entries[index].batteryLow = percent < limit
        }
    }

    /// - Parameter cap: while parked nothing is published more often than the heartbeat; nil = moving, or no heartbeat. It
    ///   does not slow the receiver: otherwise a departure would be seen late.
    mutating func recompute(cap: Duration?, into effects: inout [Effect]) {
        var network: [Resolution] = []
        network.reserveCapacity(entries.count)
        for entry in entries {
            network.append(
                policy.networkResolution(
                    for: TrackableResolutionRequest(
                        trackable: entry.trackable, near: entry.near, hasSubscribers: !entry.subscribers.isEmpty,
                        remoteRequests: entry.subscribers.values.compactMap { $0 }, batteryLow: entry.batteryLow)))
        }
        let engine = boost ?? constantEngine ?? policy.engineResolution(of: network)
        if engine != self.engine {
            self.engine = engine
            effects.append(.setReceiver(engine))
        }
        for index in entries.indices {
            var published = boost ?? network[index]
            if let cap { published.intervalMs = max(published.intervalMs, cap.milliseconds) }
            guard published != entries[index].published else { continue }
            entries[index].published = published
            effects.append(.announceResolution(trackable: entries[index].trackable.id, published))
        }
    }
}
