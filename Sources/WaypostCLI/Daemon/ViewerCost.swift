import Configuration
import WaypostCore

/// What one viewer of a live channel may cost: the viewer decides, up to a limit of the configuration.
struct ViewerCost {
    /// Bytes of a location, measured at 5 Hz: docs/asset-tracking.md.
    private static let (onChannel, atEndpoint, onDisk) = (410.0, 30.0, 235.0)

    /// Name of the channel.
    let channel: String
    /// Seconds between two locations that a viewer may ask for; 0 = each fix.
    let floor: Double

    /// For each channel that is configured.
    static func all(_ config: AgentConfig) -> [ViewerCost] {
        let floor = config.tracking.resolution.subscriberIntervalFloor
        return config.channels.map {
            ViewerCost(channel: $0.endpoint.settings.name, floor: Double(floor.nanoseconds) / 1e9)
        }
    }

    var words: String {
        let key = "raise subscriber_interval_floor in [resolution] for less"
        guard floor > 0 else {
            return "channel \(channel): one viewer may have every fix of the receiver recorded and sent: \(key)"
        }
        let locations = 3600 / floor
        func megabytes(_ each: Double) -> String {
            let tenths = Scaled.integer(locations * each / 1e6, places: 1) ?? 0
            return "\(tenths / 10).\(tenths % 10) MB"
        }
        let count = Scaled.integer(locations, places: 0) ?? 0
        return "channel \(channel): one viewer may have up to \(count) locations an hour recorded and sent, about "
            + "\(megabytes(Self.onChannel)) on the channel, \(megabytes(Self.atEndpoint)) to an "
            + "endpoint and \(megabytes(Self.onDisk)) written to disk: \(key)"
    }
}
