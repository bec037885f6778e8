import WaypostCore

/// The thing whose locations are published. Two trackables are the same if their ids are.
public struct Trackable: Hashable, Sendable {
    public var id: String
    /// Where it is going; nil = nowhere known, it is never near.
    public var destination: Coordinate?
    /// nil = the default resolution, or the best of what subscribers ask for.
    public var constraints: ResolutionConstraints?

    public init(id: String, destination: Coordinate? = nil, constraints: ResolutionConstraints? = nil) {
        self.id = id
        self.destination = destination
        self.constraints = constraints
    }
}
