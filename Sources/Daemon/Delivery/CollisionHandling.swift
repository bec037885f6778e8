import Profiles
import Queue
import WaypostCore

/// What becomes of the rows of an asset that another device reports: `on_collision`.
struct CollisionHandling {
    /// Rows that are recorded meanwhile are handled no more often than this, so that they cost no commit each.
    private static let interval = Duration.seconds(900)

    /// When rows were last handled; nil = not since the asset was taken.
    private var handledAt: EventTime?

    /// The asset was taken by another device, or has another binding now.
    mutating func reset() { handledAt = nil }

    /// For what waits; nil = it stays where it is, or is handled later.
    mutating func order(_ settings: EndpointSettings, at now: EventTime) -> QueueOrder? {
        guard settings.onCollision != .keep else { return nil }
        if let handledAt, handledAt + Self.interval > now { return nil }
        handledAt = now
        if settings.onCollision == .clear { return .clear(endpoint: settings.name) }
        let asset = settings.assetID.map { " of asset \($0)" } ?? ""
        return .quarantine(endpoint: settings.name, Refusal(reason: "collision\(asset)"))
    }

    /// What is done, for people.
    static func words(_ settings: EndpointSettings) -> String {
        settings.onCollision == .keep
            ? "nothing is sent; `sudo waypost endpoint bind \(settings.name)` takes it back"
            : "nothing is sent; what waits is handled by on_collision = \"\(settings.onCollision.rawValue)\""
    }

    /// What was done with these rows, for people.
    static func words(_ settings: EndpointSettings, rows: Int, first: Int64?, last: Int64?) -> String {
        let range = first.flatMap { first in last.map { " (\(first) to \($0))" } } ?? ""
        return "\(rows) locations\(range) were \(settings.onCollision == .clear ? "deleted" : "quarantined")"
    }
}
