import WaypostCore

/// What a tracker said about one simulated drive: the material that is scored against its truth. All times are
/// milliseconds since the start of the drive.
package struct DriveRecord: Sendable {
    /// An announced motion change.
    package struct Decision: Hashable, Sendable {
        package var moving: Bool
        /// When it was announced.
        package var at: Int
        /// moving: the departure; else the standstill, as dated back.
        package var since: Int
        /// As in the record: `speed`, `stop-timeout`, `gap`, …
        package var reason: String

        package init(moving: Bool, at: Int, since: Int, reason: String) {
            self.moving = moving
            self.at = at
            self.since = since
            self.reason = reason
        }
    }

    /// A stored location.
    package struct Point: Hashable, Sendable {
        /// Of the fix.
        package var time: Int
        /// When it was stored.
        package var at: Int
        /// Metres from the origin of the drive.
        package var place: PlanePoint
        package var moving: Bool

        package init(time: Int, at: Int, place: PlanePoint, moving: Bool) {
            self.time = time
            self.at = at
            self.place = place
            self.moving = moving
        }
    }

    /// A believed fix.
    package struct Seen: Hashable, Sendable {
        package var time: Int
        /// Metres from the origin of the drive.
        package var place: PlanePoint
        /// Metres; nil = unknown.
        package var accuracy: Double?

        package init(time: Int, place: PlanePoint, accuracy: Double?) {
            self.time = time
            self.place = place
            self.accuracy = accuracy
        }
    }

    /// Believed fixes that say that they move, rising in time.
    package var seen: [Seen] = []
    /// In the order of announcement.
    package var decisions: [Decision] = []
    /// In the order in which they were stored.
    package var points: [Point] = []
    /// Metres at the end, without what was counted across `blindness`.
    package var odometer = 0.0
    /// Times between two fixes that are too far apart to be a drive that was seen: the last fix before and the first after.
    /// The time before the first fix is one of them, beginning at `Int.min`.
    package var blindness: [Range<Int>] = []

    package init() {}
}
