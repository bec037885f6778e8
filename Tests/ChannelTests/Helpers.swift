import Profiles
import WaypostCore

@testable import Channel

extension ChannelFeature {
    static func sample(seconds: Int64 = 0) -> ChannelFeature {
        ChannelFeature(
            coordinate: Coordinate(latitudeE7: 107_700_000, longitudeE7: 1_067_000_000), altitude: 5, accuracy: 4,
            bearing: 90, speed: 8.3, time: UTCTime(milliseconds: 1_700_000_000_250 + seconds * 1000))
    }
}

/// A row of the queue, one second after the other.
func row(_ seq: Int64, selected: Bool = true, accuracy: Double? = 4, seconds: Int64? = nil) -> QueuedLocation {
    QueuedLocation(
        seq: seq, bootID: nil, receivedMs: nil,
        location: Location(
            trackable: "a", time: UTCTime(milliseconds: 1000 * (seconds ?? seq)), at: .zero,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), horizontalAccuracy: accuracy, moving: true,
            published: selected))
}

func seconds(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }
