import WaypostCore

/// Which beacon regions the asset is in: ENTER and EXIT, for each region in strict alternation.
///
/// A region is entered with the second sighting within 25 s, and left after 30 s in which was scanned and nothing seen, in two
/// scan windows at least: some controllers report a beacon every 10 s only, and between two windows nobody looks. How
/// near a beacon is, is only compared, never given in metres: bodies and walls change it tenfold.
package struct BeaconMonitor: Sendable {
    package enum Event: Hashable, Sendable {
        case entered(BeaconRegion)
        /// - isRemoved: it is configured no longer.
        case left(BeaconRegion, isRemoved: Bool)
        /// A beacon of a region that the asset is in, seen for the first time or after a long silence.
        case sighted(Beacon)
        /// The last region was left: perhaps the asset moves.
        case leftAll
    }

    private struct Presence: Sendable {
        var region: BeaconRegion
        var isInside = false
        /// The first of two sightings.
        var first: EventTime?
        var seen: ScanClock.Instant
        /// Beacons that were never recorded before: a transmitter may send another number each time.
        var newBeacons = TokenBucket(burst: BeaconMonitor.newBeaconsMax, refill: .seconds(60))
    }

    /// What distinguishes a region from others.
    private struct Key: Hashable, Sendable {
        var uuid: ProximityUUID
        var major: UInt16?
        var minor: UInt16?
    }

    private static let entry = Duration.seconds(25)
    /// Of scanning.
    private static let exit = Duration.seconds(30)
    private static let exitWindows = 2
    /// Two reports of one advertisement come within less.
    private static let between = Duration.milliseconds(100)
    /// Between two sightings of one beacon that are recorded.
    private static let reportInterval = Duration.seconds(600)
    /// Of a region: so many at once, and then one a minute.
    package static let newBeaconsMax = 60
    /// Of the newest strength in the smoothed one.
    private static let weight = 0.25
    /// A beacon that was not seen for longer is not near.
    private static let fresh = Duration.seconds(10)

    private var presences: [Presence] = []
    /// Where each region is in `presences`.
    private var places: [Key: Int] = [:]
    private var tracks = BeaconTracks()
    private var clock = ScanClock()
    /// Beacons that were not recorded, since too many new ones were seen in their region.
    package private(set) var unrecorded = 0
    /// The region of the last of them.
    package private(set) var crowdedRegion: BeaconRegion?

    package init(_ regions: [BeaconRegion] = []) {
        presences = Self.distinct(regions).map { Presence(region: $0, seen: clock.start) }
        places = Self.places(presences)
    }

    package var regions: [BeaconRegion] { presences.map(\.region) }
    package var inside: [BeaconRegion] { presences.filter(\.isInside).map(\.region) }

    /// When a region may be left; nil = not before something happens.
    package var nextDeadline: EventTime? {
        presences.lazy.filter(\.isInside).compactMap { [clock] in
            clock.time(after: $0.seen, scanned: Self.exit, windows: Self.exitWindows)
        }.min()
    }

    /// The beacon that is received best for its power, of those seen within the last 10 s.
    package func nearest(at now: EventTime) -> Beacon? {
        let near = tracks.all.compactMap { beacon, track in
            track.smoothed.flatMap { strength in
                now.duration(since: track.at) <= Self.fresh
                    ? (beacon: beacon, loss: Double(track.measuredPower) - strength) : nil
            }
        }
        return near.min { ($0.loss, $0.beacon.description) < ($1.loss, $1.beacon.description) }?.beacon
    }

    // MARK: Events

    package mutating func scanStarted(at now: EventTime) { clock.started(at: now) }

    package mutating func scanStopped(at now: EventTime) -> [Event] {
        clock.stopped(at: now)
        return leaveOverdue(at: now)
    }

    /// - Parameter rssi: dBm; nil = unknown.
    package mutating func sighted(_ advertisement: BeaconAdvertisement, rssi: Int?, at now: EventTime) -> [Event] {
        let beacon = advertisement.beacon
        let around = regions(around: beacon)
        guard !around.isEmpty else { return [] }
        // First: after a time in which nobody looked, as a sleep of the host, it is the sighting that counts.
        let here = clock.instant(at: now)
        for index in around { presences[index].seen = here }
        var events = leaveOverdue(at: now)
        for index in around.sorted() where !presences[index].isInside && isSecond(&presences[index].first, now) {
            presences[index].isInside = true
            presences[index].first = nil
            events.append(.entered(presences[index].region))
        }
        if isNews(advertisement, rssi, in: around.last { presences[$0].isInside }, now) {
            events.append(.sighted(beacon))
        }
        return events
    }

    package mutating func deadlineReached(at now: EventTime) -> [Event] { leaveOverdue(at: now) }

    /// Other regions are wanted. Presence in those that stay goes on.
    package mutating func regionsChanged(_ regions: [BeaconRegion], at now: EventTime) -> [Event] {
        let before = Dictionary(uniqueKeysWithValues: presences.map { ($0.region.id, $0) })
        let here = clock.instant(at: now)
        presences = Self.distinct(regions).map { region in
            var presence = before[region.id] ?? Presence(region: region, seen: here)
            presence.region = region
            return presence
        }
        places = Self.places(presences)
        let kept = Set(presences.map(\.region.id))
        let gone = before.values.filter { $0.isInside && !kept.contains($0.region.id) }.map(\.region)
        tracks.keep { beacon in regions.contains { $0.contains(beacon) } }
        // A list that became shorter is no sign that the asset moves.
        return gone.sorted { $0.id < $1.id }.map { .left($0, isRemoved: true) }
    }

    // MARK: Parts

    private func isSecond(_ first: inout EventTime?, _ now: EventTime) -> Bool {
        if let earlier = first, now.duration(since: earlier) <= Self.entry {
            return now.duration(since: earlier) >= Self.between
        }
        first = now
        return false
    }

    /// The regions that contain a beacon, the widest first. There are three at most, which are found without a look at all others.
    private func regions(around beacon: Beacon) -> [Int] {
        let keys = [
            Key(uuid: beacon.uuid), Key(uuid: beacon.uuid, major: beacon.major),
            Key(uuid: beacon.uuid, major: beacon.major, minor: beacon.minor),
        ]
        return keys.compactMap { places[$0] }
    }

    private static func places(_ presences: [Presence]) -> [Key: Int] {
        var places: [Key: Int] = [:]
        for (index, presence) in presences.enumerated() {
            let region = presence.region
            places[Key(uuid: region.uuid, major: region.major, minor: region.minor)] = index
        }
        return places
    }

    /// Whether a sighting is worth a record: the beacon was seen twice, in a region that the asset is in, and not
    /// recorded for long. Of beacons that are new, a region has a limited number.
    ///
    /// - Parameter region: the narrowest one that the asset is in; nil = it is in none.
    private mutating func isNews(
        _ advertisement: BeaconAdvertisement, _ rssi: Int?, in region: Int?, _ now: EventTime
    ) -> Bool {
        var newBeacons = region.map { presences[$0].newBeacons }
        let (isDue, isRecorded) = tracks.seen(advertisement.beacon) { known in
            var track =
                known ?? BeaconTracks.Track(measuredPower: advertisement.measuredPower, at: now, first: now)
            if now.duration(since: track.at) > Self.entry { track.first = now }
            track.at = now
            track.measuredPower = advertisement.measuredPower
            if let rssi, rssi < 20 {
                track.smoothed = track.smoothed.map { $0 + Self.weight * (Double(rssi) - $0) } ?? Double(rssi)
            }
            let isSeenTwice = now.duration(since: track.first) >= Self.between
            let isDue = track.decidedAt.map { now.duration(since: $0) >= Self.reportInterval } ?? true
            guard newBeacons != nil, isSeenTwice, isDue else { return (track, (false, false)) }
            track.decidedAt = now
            if !track.isRecorded { track.isRecorded = newBeacons?.take(at: now) == nil }
            return (track, (true, track.isRecorded))
        }
        guard let region, let newBeacons, isDue else { return false }
        presences[region].newBeacons = newBeacons
        if !isRecorded {
            unrecorded += 1
            crowdedRegion = presences[region].region
        }
        return isRecorded
    }

    private mutating func leaveOverdue(at now: EventTime) -> [Event] {
        var events: [Event] = []
        for index in presences.indices where presences[index].isInside {
            guard clock.isPast(presences[index].seen, scanned: Self.exit, windows: Self.exitWindows, at: now)
            else { continue }
            presences[index].isInside = false
            presences[index].first = nil
            events.append(.left(presences[index].region, isRemoved: false))
        }
        if !events.isEmpty, inside.isEmpty { events.append(.leftAll) }
        return events
    }

    private static func distinct(_ regions: [BeaconRegion]) -> [BeaconRegion] {
        var known: Set<String> = []
        return regions.filter { known.insert($0.id).inserted }
    }

    // MARK: Restart

    /// What is to be stored: the regions that were entered.
    package var stored: [String] { inside.map(\.id) }

    /// The asset was in these regions when an earlier process ended. Those that are configured no longer are left.
    package mutating func resumed(_ ids: [String], at now: EventTime) -> [Event] {
        let here = clock.instant(at: now)
        var events: [Event] = []
        for id in ids {
            if let index = presences.firstIndex(where: { $0.region.id == id }) {
                presences[index].isInside = true
                presences[index].seen = here
            } else if let region = BeaconRegion(id: id) {
                events.append(.left(region, isRemoved: true))
            }
        }
        return events
    }
}
