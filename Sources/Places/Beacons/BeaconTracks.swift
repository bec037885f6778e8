import WaypostCore

/// What is known of the beacons that were seen last, a limited number of them.
///
/// Each sighting costs the same, however many beacons there are: whoever sends a new number each time fills it, and no more.
struct BeaconTracks: Sendable {
    struct Track: Sendable {
        /// dBm; nil = unknown.
        var smoothed: Double?
        var measuredPower: Int8
        /// The last sighting.
        var at: EventTime
        /// The first sighting without a long silence after it.
        var first: EventTime
        /// When it was last decided whether a sighting is recorded; nil = never.
        var decidedAt: EventTime?
        /// It was recorded when that was decided.
        var isRecorded = false
    }

    private struct Slot: Sendable {
        var beacon: Beacon
        var track: Track
        /// Slots of the beacons that were seen before and after it; nil at the ends.
        var older: Int?
        var newer: Int?
    }

    static let countMax = 256

    private var slots: [Slot] = []
    private var places: [Beacon: Int] = [:]
    private var oldest: Int?
    private var newest: Int?

    var all: some Sequence<(beacon: Beacon, track: Track)> { slots.lazy.map { ($0.beacon, $0.track) } }

    /// The beacon was seen. Where there is no room for another one, the one that was not seen for the longest is forgotten.
    ///
    /// - Parameter change: what that means for its track; nil = it is not known.
    mutating func seen<Result>(_ beacon: Beacon, _ change: (Track?) -> (Track, Result)) -> Result {
        if let place = places[beacon] {
            let (track, result) = change(slots[place].track)
            slots[place].track = track
            unlink(place)
            linkAsNewest(place)
            return result
        }
        let (track, result) = change(nil)
        let place: Int
        if slots.count < Self.countMax {
            place = slots.count
            slots.append(Slot(beacon: beacon, track: track))
        } else {
            place = oldest ?? 0
            places[slots[place].beacon] = nil
            unlink(place)
            slots[place] = Slot(beacon: beacon, track: track)
        }
        places[beacon] = place
        linkAsNewest(place)
        return result
    }

    /// Forgets the others.
    mutating func keep(where isKept: (Beacon) -> Bool) {
        var kept = BeaconTracks()
        var next = oldest
        while let place = next {
            let slot = slots[place]
            if isKept(slot.beacon) { kept.seen(slot.beacon) { _ in (slot.track, ()) } }
            next = slot.newer
        }
        self = kept
    }

    private mutating func unlink(_ place: Int) {
        let (older, newer) = (slots[place].older, slots[place].newer)
        if let older { slots[older].newer = newer } else { oldest = newer }
        if let newer { slots[newer].older = older } else { newest = older }
    }

    private mutating func linkAsNewest(_ place: Int) {
        (slots[place].older, slots[place].newer) = (newest, nil)
        if let newest { slots[newest].newer = place } else { oldest = place }
        newest = place
    }
}
