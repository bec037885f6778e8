import Positioning

extension Tracker.Settings {
    /// What contradicts itself in these settings, in words for people; empty = they can be used.
    public var problems: [String] {
        let policy = policy ?? resolution.policy
        return trackables.compactMap { trackable in
            guard let constraints = trackable.constraints, !policy.accepts(constraints) else { return nil }
            return "trackable \(trackable.id) has constraints that the resolution policy cannot read"
        }
    }
}

extension Tracker {
    /// The asset reports a place: is a trackable near its destination, and does a rule look at how it moves?
    mutating func reported(at place: Coordinate, _ effects: inout [Effect]) {
        let speed = averageSpeed.value(at: now)
        board.motionChanged(motion.phase, speed: speed)
        board.placeReported(place, speed: speed)
        if board.isStale { recompute(&effects) }
    }

    /// Once more with the last place, after destinations may have changed.
    mutating func judgeProximity() {
        guard let place = heldAnchor?.coordinate ?? lastFix?.coordinate else { return }
        board.placeReported(place, speed: averageSpeed.value(at: now))
    }

    mutating func restoreProximity(_ restored: StoredState) {
        for index in tracks.indices {
            let mark = restored.recorded.first { $0.trackable == tracks[index].id }?.proximity ?? 0
            board.restoreProximity(mark, at: index)
        }
    }

    mutating func subscriberChanged(_ change: SubscriberChange, _ effects: inout [Effect]) {
        guard board.subscriberChanged(change) else {
            counters.subscribersRefused += 1
            effects.append(.count(.subscriberRefused))
            return
        }
        recompute(&effects)
    }
}
