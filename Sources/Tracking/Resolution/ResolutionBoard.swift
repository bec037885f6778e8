import WaypostCore

/// The resolutions in force: one published for each trackable, and one asked of the receiver.
///
/// Keeps what a policy needs to know and reports changes to it; the policy returns what is to be decided again.
/// Recomputing is idempotent: effects come only of changes.
struct ResolutionBoard: Sendable {
    struct Entry: Sendable {
        var trackable: Trackable
        /// What each present member asks for; nil = it asks for nothing.
        var subscribers: [String: Resolution?] = [:]
        /// The threshold that is watched; nil = none.
        var watched: Proximity?
        var near = NearFlag()
        var battery = LowBatteryFlag()
        /// The answer of the policy; nil = it must be asked.
        var network: Resolution?
        /// With boost and cap; nil before the first computation.
        var published: Resolution?
    }

    /// A reading of the battery that is older says nothing.
    static let batteryLifetime = Duration.seconds(600)
    /// More subscribers of one trackable are refused: a subscriber must not fill the memory.
    static let subscribersMax = 200

    private var policy: any ResolutionPolicy
    /// A policy of the user's own, which outlives a reload.
    private let isForeign: Bool
    /// What decides where nothing else does; the profile of the motion state may set another than the settings.
    var defaultResolution: Resolution {
        didSet { if defaultResolution != oldValue { refresh() } }
    }
    private(set) var settings: ResolutionSettings
    private(set) var entries: [Entry]
    private(set) var engine: Resolution?
    var constantEngine: Resolution?
    /// A boost that is in force, and when it ends.
    private(set) var boost: Resolution?
    private(set) var boostEnd: EventTime?
    /// Something that a policy wants to be asked about has changed since the last computation.
    private(set) var isStale = true

    private var circumstances = Circumstances()
    private var power = PowerState()
    /// When the battery was last read; nil = not in this run, or too long ago.
    private var batteryReadAt: EventTime?

    /// Id of the trackable that alone is watched in the mode `sticky`.
    private var active: String?
    /// The one threshold of the mode `sticky`.
    private var armed: Proximity?
    /// The one flag of the mode `sticky`.
    private var isNearForAll = false

    /// - Parameter policy: nil = the one that the settings describe.
    init(settings: ResolutionSettings, policy: (any ResolutionPolicy)? = nil, trackables: [Trackable]) {
        self.settings = settings
        self.policy = policy ?? settings.policy
        isForeign = policy != nil
        defaultResolution = settings.default
        constantEngine = settings.constantEngine
        entries = trackables.map { Entry(trackable: $0) }
        for entry in entries { apply(self.policy.trackableAdded(entry.trackable)) }
        chooseActive()
    }

    /// Subscribers, nearness and what was published so far stay with trackables that are in both.
    mutating func reload(settings: ResolutionSettings, trackables: [Trackable]) {
        let before = entries
        for old in before where !trackables.contains(old.trackable) {
            apply(policy.trackableRemoved(old.trackable))
        }
        if let active, !trackables.contains(where: { $0.id == active }) {
            self.active = nil
            apply(policy.activeTrackableChanged(nil))
        }
        if settings.proximity != self.settings.proximity { isNearForAll = false }
        let keepsNear = settings.proximity == self.settings.proximity
        self.settings = settings
        defaultResolution = settings.default
        constantEngine = settings.constantEngine
        entries = trackables.map { trackable in
            var entry = before.first { $0.trackable.id == trackable.id } ?? Entry(trackable: trackable)
            if !isForeign || entry.trackable != trackable { entry.watched = nil }
            entry.trackable = trackable
            return entry
        }
        armed = isForeign ? armed : nil
        if !isForeign {
            policy = settings.policy
            _ = policy.batteryChanged(percent: circumstances.batteryPercent)
            _ = policy.speedChanged(circumstances.speed)
        }
        for trackable in trackables where !isForeign || !before.contains(where: { $0.trackable == trackable }) {
            apply(policy.trackableAdded(trackable))
        }
        chooseActive()
        for index in entries.indices {
            guard let old = before.first(where: { $0.trackable.id == entries[index].trackable.id }) else { continue }
            let isSame =
                keepsNear && entries[index].watched == old.watched
                && entries[index].trackable.destination == old.trackable.destination
            entries[index].near = isSame ? old.near : NearFlag()
            if old.near.isNear, !isSame { apply(policy.proximityChanged(of: entries[index].trackable, near: false)) }
        }
        powerChanged(power)
        refresh()
    }

    /// The first trackable, or again the active one, whose constraints may have changed.
    private mutating func chooseActive() {
        let trackable = (entries.first { $0.trackable.id == active } ?? entries.first)?.trackable
        guard let trackable else { return }
        active = trackable.id
        apply(policy.activeTrackableChanged(trackable))
    }

    /// - Returns: false when there are too many.
    mutating func subscriberChanged(_ change: SubscriberChange) -> Bool {
        guard let index = entries.firstIndex(where: { $0.trackable.id == change.trackable }) else { return true }
        let trackable = entries[index].trackable
        let isPresent = entries[index].subscribers.keys.contains(change.member)
        switch change.action {
        case .add(let request), .update(let request):
            if !isPresent {
                guard case .add = change.action else { return true }
                guard entries[index].subscribers.count < Self.subscribersMax else { return false }
            }
            entries[index].subscribers.updateValue(request.map(floored), forKey: change.member)
            apply(
                isPresent
                    ? policy.subscriberUpdated(change.member, of: trackable)
                    : policy.subscriberAdded(change.member, to: trackable))
        case .remove:
            guard isPresent else { return true }
            entries[index].subscribers.removeValue(forKey: change.member)
            apply(policy.subscriberRemoved(change.member, from: trackable))
        }
        return true
    }

    /// Somebody is subscribed to a trackable, whether or not with a request.
    var isWatched: Bool { entries.contains { !$0.subscribers.isEmpty } }

    private func floored(_ request: Resolution) -> Resolution {
        var request = request
        request.intervalMs = max(request.intervalMs, settings.subscriberIntervalFloor.milliseconds)
        return request
    }

    /// The battery was read; `powerChanged` follows with the level.
    mutating func batteryRead(at now: EventTime) { batteryReadAt = now }

    mutating func powerChanged(_ power: PowerState) {
        self.power = power
        if power.externalPower != circumstances.externalPower {
            circumstances.externalPower = power.externalPower
            apply(policy.externalPowerChanged(power.externalPower))
        }
        let isIgnored = settings.ignoreBatteryOnExternalPower && power.externalPower == true
        let percent = isIgnored || batteryReadAt == nil ? nil : power.batteryPercent.map(Double.init)
        var changed = percent != circumstances.batteryPercent
        circumstances.batteryPercent = percent
        for index in entries.indices {
            let battery = entries[index].trackable.lowBattery(withoutConstraints: settings.applyWithoutConstraints)
            let before = entries[index].battery
            if let battery {
                entries[index].battery.observe(
                    percent: percent, threshold: battery.threshold, hysteresis: settings.lowBatteryHysteresis)
            } else {
                entries[index].battery = LowBatteryFlag()
            }
            changed = changed || entries[index].battery != before
        }
        if changed { apply(policy.batteryChanged(percent: percent)) }
    }

    /// - Parameter speed: m/s, smoothed; nil = unknown.
    mutating func motionChanged(_ motion: TrackerSnapshot.Motion, speed: Double?) {
        if motion != circumstances.motion {
            circumstances.motion = motion
            apply(policy.motionChanged(motion))
        }
        let speed = motion == .stationary ? 0 : speed
        guard speed != circumstances.speed else { return }
        circumstances.speed = speed
        apply(policy.speedChanged(speed))
    }

    /// - Parameter activity: nil = unknown.
    mutating func activityChanged(_ activity: Activity.Kind?) {
        guard activity != circumstances.activity else { return }
        circumstances.activity = activity
        apply(policy.activityChanged(activity))
    }

    /// - Parameter ids: of all geofences that the asset is in now.
    mutating func insideFencesChanged(_ ids: Set<String>) {
        guard ids != circumstances.insideFences else { return }
        circumstances.insideFences = ids
        apply(policy.geofencesChanged(inside: ids))
    }

    mutating func hoursChanged(_ hours: String, open: Bool) {
        let changed =
            open
            ? circumstances.openHours.insert(hours).inserted : circumstances.openHours.remove(hours) != nil
        if changed { apply(policy.hoursChanged(hours, open: open)) }
    }

    /// The asset is at a place that it reports.
    /// - Parameter speed: m/s, smoothed; nil = unknown.
    mutating func placeReported(_ place: Coordinate, speed: Double?) {
        switch settings.proximity {
        case .perTrackable:
            for index in entries.indices {
                guard let watched = entries[index].watched else { continue }
                let distance = entries[index].trackable.destination.map { place.distance(to: $0) }
                let wasNear = entries[index].near.isNear
                entries[index].near.observe(
                    watched, distance: distance,
                    remaining: distance.flatMap { AverageSpeed.remaining($0, at: speed) })
                let isNear = entries[index].near.isNear
                if isNear != wasNear { apply(policy.proximityChanged(of: entries[index].trackable, near: isNear)) }
            }
        case .sticky:
            guard !isNearForAll, let armed, let trackable = activeEntry?.trackable,
                let distance = trackable.destination.map({ place.distance(to: $0) }),
                armed.isReached(distance: distance, remaining: AverageSpeed.remaining(distance, at: speed))
            else { return }
            isNearForAll = true
            apply(policy.proximityChanged(of: trackable, near: true))
        }
    }

    private var activeEntry: Entry? { entries.first { $0.trackable.id == active } }
    private func isNear(_ entry: Entry) -> Bool { settings.proximity == .sticky ? isNearForAll : entry.near.isNear }

    /// nil, or a boost of no duration, ends the one in force; another replaces it.
    /// - Returns: whether the resolutions change by it.
    mutating func boostChanged(_ boost: Boost?, at now: EventTime) -> Bool {
        let boost = boost.flatMap { $0.duration > .zero ? $0 : nil }
        boostEnd = boost.map { now + min($0.duration, Boost.durationMax) }
        guard boost?.resolution != self.boost else { return false }
        self.boost = boost?.resolution
        return true
    }

    /// When a reading of the battery expires.
    private var batteryExpiry: EventTime? { batteryReadAt.map { $0 + Self.batteryLifetime } }

    /// When the boost ends, or a reading of the battery expires.
    var nextDeadline: EventTime? {
        guard let boostEnd else { return batteryExpiry }
        return min(boostEnd, batteryExpiry ?? boostEnd)
    }

    /// - Returns: whether a reading of the battery expired; the resolutions must be computed again.
    mutating func deadlineReached(at now: EventTime) -> Bool {
        guard let due = batteryExpiry, due <= now else { return false }
        batteryReadAt = nil
        powerChanged(power)
        return true
    }

    // MARK: Computation

    private mutating func apply(_ wishes: [PolicyEffect]) {
        for wish in wishes {
            switch wish {
            case .recomputeAll:
                refresh()
            case .recompute(let trackables):
                for index in entries.indices where trackables.contains(entries[index].trackable.id) {
                    entries[index].network = nil
                    isStale = true
                }
            case .watchProximity(let trackable, let threshold):
                watch(trackable, threshold)
            }
        }
    }

    private mutating func watch(_ trackable: String, _ threshold: Proximity?) {
        switch settings.proximity {
        case .perTrackable:
            guard let index = entries.firstIndex(where: { $0.trackable.id == trackable }),
                entries[index].watched != threshold
            else { return }
            entries[index].watched = threshold
            entries[index].near = NearFlag()
        case .sticky:
            armed = threshold
            if threshold == nil { isNearForAll = false }
        }
    }

    /// Every trackable is asked for again.
    mutating func refresh() {
        for index in entries.indices { entries[index].network = nil }
        isStale = true
    }

    /// - Parameter cap: while parked nothing is published more often than the heartbeat; nil = moving, or no heartbeat. It
    ///   does not slow the receiver: otherwise a departure would be seen late.
    mutating func recompute(cap: Duration?, into effects: inout [Effect]) {
        isStale = false
        var network: [Resolution] = []
        network.reserveCapacity(entries.count)
        for index in entries.indices {
            let answer = entries[index].network ?? Self.sane(policy.networkResolution(for: request(entries[index])))
            entries[index].network = answer
            network.append(answer)
        }
        let engine =
            boost ?? constantEngine
            ?? Self.sane(policy.engineResolution(of: network, default: defaultResolution))
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

    /// For `TrackerSnapshot`.
    /// - Parameter lastRecord: by index of the trackable.
    func snapshot(lastRecord: (Int) -> UTCTime?) -> [TrackerSnapshot.TrackableResolution] {
        entries.enumerated().map { index, entry in
            TrackerSnapshot.TrackableResolution(
                id: entry.trackable.id, resolution: entry.published ?? settings.default,
                subscribers: entry.subscribers.count, near: isNear(entry), batteryLow: entry.battery.isLow,
                lastRecorded: lastRecord(index))
        }
    }

    /// For `TrackerLook`.
    var published: [TrackerLook.Published] {
        let rules = policy as? RuleResolutionPolicy
        return entries.prefix(TrackerLook.publishedMax).map { entry in
            let decided = boost ?? entry.network
            let resolution = entry.published ?? settings.default
            return TrackerLook.Published(
                id: entry.trackable.id, resolution: resolution, isBoosted: boost != nil,
                rule: rules?.ruleInForce(for: request(entry)), near: isNear(entry),
                subscribers: entry.subscribers.count, batteryLow: entry.battery.isLow,
                isCapped: decided.map { $0.intervalMs < resolution.intervalMs } ?? false)
        }
    }

    private func request(_ entry: Entry) -> TrackableResolutionRequest {
        TrackableResolutionRequest(
            trackable: entry.trackable, defaultResolution: defaultResolution, near: isNear(entry),
            hasSubscribers: !entry.subscribers.isEmpty, remoteRequests: entry.subscribers.values.compactMap { $0 },
            batteryLow: entry.battery.isLow, circumstances: circumstances)
    }

    /// A policy of the user's own may answer anything.
    private static func sane(_ resolution: Resolution) -> Resolution {
        Resolution(
            priority: resolution.priority, intervalMs: max(0, resolution.intervalMs),
            displacement: resolution.displacement >= 0 ? min(resolution.displacement, 1e9) : 0)
    }
}

// MARK: Restart

extension ResolutionBoard {
    private enum Mark {
        static let spatial = 1
        static let temporal = 2
        static let sticky = 4
        static let bits = 3
    }

    /// Who is near, as a small number: 0 = far. With a check of destination and threshold, so that the flag of another
    /// destination is not restored.
    func proximityMark(at index: Int) -> Int {
        let entry = entries[index]
        var flags = 0
        if entry.near.spatial { flags |= Mark.spatial }
        if entry.near.temporal { flags |= Mark.temporal }
        if isNearForAll, entry.trackable.id == active { flags |= Mark.sticky }
        return flags == 0 ? 0 : check(entry) << Mark.bits | flags
    }

    mutating func restoreProximity(_ recorded: [StoredState.Recorded]) {
        for index in entries.indices {
            guard let last = recorded.first(where: { $0.trackable == entries[index].trackable.id }) else { continue }
            restoreProximity(last.proximity, at: index)
        }
    }

    private mutating func restoreProximity(_ mark: Int, at index: Int) {
        let entry = entries[index]
        guard mark != 0, mark >> Mark.bits == check(entry) else { return }
        if settings.proximity == .sticky {
            guard mark & Mark.sticky != 0, entry.trackable.id == active, armed != nil else { return }
            isNearForAll = true
        } else {
            guard entry.watched != nil else { return }
            entries[index].near.spatial = mark & Mark.spatial != 0
            entries[index].near.temporal = mark & Mark.temporal != 0
            guard entries[index].near.isNear else { return }
        }
        apply(policy.proximityChanged(of: entry.trackable, near: true))
    }

    /// A hash of 16 bits.
    private func check(_ entry: Entry) -> Int {
        let threshold = settings.proximity == .sticky ? armed : entry.watched
        var fnv = FNV1a()
        fnv.add(UInt64(UInt32(bitPattern: entry.trackable.destination?.latitudeE7 ?? 0)))
        fnv.add(UInt64(UInt32(bitPattern: entry.trackable.destination?.longitudeE7 ?? 0)))
        fnv.add((threshold?.spatial ?? 0).bitPattern)
        fnv.add(UInt64(bitPattern: threshold?.temporal?.nanoseconds ?? 0))
        let hash = fnv.value
        return Int((hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) & 0xFFFF)
    }
}

extension ResolutionBoard {
    /// What holds between two calls.
    func checkInvariants() {
        invariant((boost == nil) == (boostEnd == nil), "a boost without end")
        invariant(Set(entries.map(\.trackable.id)).count == entries.count, "two trackables have one name")
        invariant(
            active == nil || entries.contains { $0.trackable.id == active },
            "\(active ?? "") is followed, and there is no such trackable")
    }
}
