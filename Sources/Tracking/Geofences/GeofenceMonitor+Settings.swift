import WaypostCore

extension GeofenceMonitor {
    public struct Settings: Hashable, Sendable {
        /// At most 10,000, with ids of their own. A fence whose shape cannot be used, whose id came before, or that is
        /// beyond that number is left out and counted.
        public var fences: [Geofence] = []
        /// ENTER is recorded for a fence inside of which the asset is when it is first seen. Without it such a stay is
        /// silent: no ENTER, so no DWELL and no EXIT either. The default is true.
        public var initialEnter = true
        /// Above this number of fences a grid finds the near ones. The default is 64.
        public var gridAbove = 64

        public init(fences: [Geofence] = []) { self.fences = fences }
    }

    public static let fencesMax = 10_000
    /// Stays that are recorded at the same time, and stored with each commit; further ones are silent, and counted.
    public static let staysMax = 256

    /// A position as it is reported: where a standing asset is held, or the fix itself.
    public struct Sighting: Sendable {
        public var fix: Fix
        public var time: UTCTime
        public var at: EventTime
        /// The place that a standing asset reports instead of the fix.
        public var held: StoredState.Anchor?
        /// Metres, as of this sighting.
        public var odometer: Double
        /// Why a new segment begins with this fix; nil when none does.
        public var opening: SegmentOpening?

        public init(
            fix: Fix, time: UTCTime, at: EventTime, held: StoredState.Anchor? = nil, odometer: Double = 0,
            opening: SegmentOpening? = nil
        ) {
            self.fix = fix
            self.time = time
            self.at = at
            self.held = held
            self.odometer = odometer
            self.opening = opening
        }

        public var coordinate: Coordinate { held?.coordinate ?? fix.coordinate }
        /// Metres; nil when unknown.
        public var accuracy: Double? { held == nil ? fix.horizontalAccuracy : held?.accuracy }
    }

    /// Why a crossing is recorded, besides that the edge was crossed.
    public enum Reason: String, Sendable, Codable, CaseIterable {
        case crossing
        /// Inside when the fence was first looked at.
        case initial
        case dwell
        /// It happened while no process ran.
        case restart
        /// It happened during a gap.
        case gap
        /// It was found after a jump.
        case jump
        /// The fence has another shape now.
        case changed
        /// The fence is no longer there.
        case removed
    }

    /// ENTER, EXIT or DWELL.
    public struct Crossing: Sendable {
        public var id: String
        public var name: String?
        /// By which the server knows the fence that it came from.
        public var serverID: String?
        public var action: GeofenceCrossing.Action
        public var reason: Reason
        /// The first of the fixes that decided; nil = no fix did, it happened where the asset was last reported.
        public var sighting: Sighting?
        /// Of a DWELL: when the time was over.
        public var due: EventTime?
    }
}
