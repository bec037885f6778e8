import WaypostCore
import WaypostTracking

/// Follows a delivery van closely near the customer, once a minute on the way, and seldom while it is parked.
package struct VanPolicy: ResolutionPolicy {
    private static let close = Resolution(priority: .high, intervalMs: 2_000, displacement: 5)
    private static let onTheWay = Resolution(priority: .balanced, intervalMs: 60_000, displacement: 500)
    private static let parked = Resolution(priority: .low, intervalMs: 600_000, displacement: 1_000)

    /// The battery is below 20 %.
    private var isBatteryLow = false

    package init() {}

    package func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
        if request.near { return Self.close }
        var resolution = request.circumstances.motion == .stationary ? Self.parked : Self.onTheWay
        if isBatteryLow { resolution.intervalMs *= 2 }
        return resolution
    }

    package func accepts(_ constraints: ResolutionConstraints) -> Bool { Self.closeMetres(constraints) != nil }

    package mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect] {
        let proximity = Self.closeMetres(trackable.constraints).map { Proximity(spatial: $0) }
        return [.watchProximity(trackable: trackable.id, proximity), .recompute(trackables: [trackable.id])]
    }

    package mutating func batteryChanged(percent: Double?) -> [PolicyEffect] {
        let wasLow = isBatteryLow
        isBatteryLow = percent.map { $0 < 20 } ?? false
        return isBatteryLow == wasLow ? [] : [.recomputeAll]
    }

    /// Metres from the customer at which the van is near.
    private static func closeMetres(_ constraints: ResolutionConstraints?) -> Double? {
        guard case .custom(let values)? = constraints, case .number(let metres)? = values["close"] else { return nil }
        return metres
    }
}
