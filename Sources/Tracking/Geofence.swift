import Positioning

/// An area whose crossings are recorded.
public struct Geofence: Hashable, Sendable, Codable {
    public enum Shape: Hashable, Sendable, Codable {
        /// Radius in metres, 10 m…1000 km.
        case circle(centre: Coordinate, radius: Double)
        /// 3…1000 vertices of a simple polygon without holes, in either direction.
        case polygon([Coordinate])
    }

    public var id: String
    /// Shown to people; nil = only the id.
    public var name: String?
    public var shape: Shape
    /// Stay inside after which DWELL is recorded once; nil = never.
    public var dwell: Duration?

    public init(id: String, name: String? = nil, shape: Shape, dwell: Duration? = nil) {
        self.id = id
        self.name = name
        self.shape = shape
        self.dwell = dwell
    }
}
