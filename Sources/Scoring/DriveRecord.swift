import Positioning

/// What a tracker said about one simulated drive: the material that is scored against its truth. All times are
/// milliseconds since the start of the drive.
public struct DriveRecord: Sendable {
    /// An announced motion change.
    public struct Decision: Hashable, Sendable {
        public var moving: Bool
        /// When it was announced.
        public var at: Int
        /// moving: the departure; else the standstill, as dated back.
        public var since: Int
        /// As in the record: `speed`, `stop-timeout`, `gap`, …
        public var reason: String

        public init(moving: Bool, at: Int, since: Int, reason: String) {
            self.moving = moving
            self.at = at
            self.since = since
            self.reason = reason
        }
    }

    /// A stored location.
    public struct Point: Hashable, Sendable {
        /// Of the fix.
        public var time: Int
        /// When it was stored.
        public var at: Int
        /// Metres from the origin of the drive.
        public var place: PlanePoint
        public var moving: Bool

        public init(time: Int, at: Int, place: PlanePoint, moving: Bool) {
            self.time = time
            self.at = at
            self.place = place
            self.moving = moving
        }
    }

    /// A believed fix.
    public struct Seen: Hashable, Sendable {
        public var time: Int
        /// Metres from the origin of the drive.
        public var place: PlanePoint
        /// Metres; nil = unknown.
        public var accuracy: Double?

        public init(time: Int, place: PlanePoint, accuracy: Double?) {
            self.time = time
            self.place = place
            self.accuracy = accuracy
        }
    }

    /// Believed fixes that say that they move, rising in time.
    public var seen: [Seen] = []
    /// In the order of announcement.
    public var decisions: [Decision] = []
    /// In the order in which they were stored.
    public var points: [Point] = []
    /// Metres at the end, without what was counted across `blindness`.
    public var odometer = 0.0
    /// Times between two fixes that are too far apart to be a drive that was seen: the last fix before and the first after.
    /// The time before the first fix is one of them, beginning at `Int.min`.
    public var blindness: [Range<Int>] = []

    public init() {}
}
