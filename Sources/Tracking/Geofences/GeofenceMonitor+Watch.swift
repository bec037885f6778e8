import Positioning

extension GeofenceMonitor {
    /// A fence that needs a look at each fix: the asset is inside of it, or may be about to enter.
    struct Watch: Sendable {
        var fence: Int
        var isInside = false
        /// ENTER was recorded, so EXIT will be.
        var isTold = false
        var enteredTime = UTCTime(milliseconds: 0)
        /// nil after a restart until the first fix.
        var enteredAt: EventTime?
        var dwelled = false
        /// Nothing was known about this fence before.
        var isFirst = false
        /// What changed other than the position since the last decision.
        var cause: Reason?
        /// The first fix of those that say otherwise, and how many there are.
        var pending: Sighting?
        var pendingFixes = 0
        /// When DWELL is due; nil = never, or not known yet.
        var dwellDue: EventTime?
        /// Metres that the asset may move before the edge needs another look.
        var clearance = 0.0
    }
}
