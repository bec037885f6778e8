import Positioning

// Hours outside of which nothing is tracked. The calendar is the agent's, the tracker is told when they begin and end.
extension Tracker {
    /// Whether it is within them; true where there are none.
    public var inHours: Bool { windowOpen }

    /// Outside its hours the asset counts as parked, without heartbeats, and nothing is recorded but a panic; fixes
    /// only keep the time.
    mutating func timeWindowChanged(open: Bool, _ effects: inout [Effect]) {
        guard open != windowOpen else { return }
        windowOpen = open
        pendingPace = nil
        if open {
            if lastFixAt != nil { openedAt = now }
            // Where it was parked then is no news: the first heartbeat comes when it is due from here.
            lastRecordAt = lastRecordAt.map { _ in now }
            motion.beginAgain()
            geofences.beganAnew(at: now)
            // Also one that was released: it followed the asset until the hours ended, and is wanted again.
            awaken(&effects)
        } else {
            stopOutsideHours(&effects)
        }
        motion.forgetEvidence()
        ring.removeAll()
    }

    /// Where it stood, or was last seen, when the hours ended. After a restart that is where the run before saw it.
    mutating func stopOutsideHours(_ effects: inout [Effect]) {
        guard motion.isMoving, let time = lastFix?.time else { return }
        if let transition = motion.parkOutsideHours(since: halt?.time, lastFix: time) { perform(transition, &effects) }
    }
}
