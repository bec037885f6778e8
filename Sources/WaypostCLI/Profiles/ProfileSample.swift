import Profiles
import WaypostCore

/// Locations to look at a profile with: made up, always the same.
package enum ProfileSample: String, CaseIterable, Sendable {
    /// Everything is known.
    case full
    /// Time and position alone.
    case bare
    /// Everything is known, and the asset has entered a geofence.
    case eventEnter = "event-enter"
    /// Three locations of one drive, the last of them bare.
    case batch
    /// Two trackables and two boots.
    case mixed
    /// Two locations that agree in all that is not a number.
    case constant

    /// Uuid of the queue that numbered them.
    package static let outbox: [UInt8] = [
        0x7F, 0x3A, 0x91, 0xC2, 0x5B, 0x0E, 0x4D, 0x19, 0x8C, 0x27, 0x61, 0xE4, 0xA0, 0xD3, 0xF5, 0x92,
    ]

    private static let boot = "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"

    /// When it is sent, Unix milliseconds.
    package var sentMs: Int64 { 1_700_000_020_500 }

    package var rows: [QueuedLocation] {
        switch self {
        case .full: return [Self.first]
        case .bare:
            return [Self.bare(seq: 1041, ms: 1_700_000_000_123, latitudeE7: 525_200_066, longitudeE7: 134_049_540)]
        case .eventEnter:
            var row = Self.first
            row.location.event = .geofence
            row.location.reason = "enter"
            row.location.geofence = GeofenceCrossing(id: "f-1", name: "Depot North", action: .enter)
            return [row]
        case .batch: return [Self.first, Self.second, Self.third]
        case .mixed:
            var other = Self.second
            other.location.trackable = "van-8"
            other.bootID = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
            return [Self.first, other]
        case .constant:
            var rows = [Self.first, Self.second]
            for index in rows.indices { rows[index].location.trackable = "van-8" }
            return rows
        }
    }

    private static var first: QueuedLocation {
        row(
            seq: 1041,
            Location(
                trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_123), at: EventTime(nanoseconds: 0),
                coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), altitudeMSL: 34.1,
                altitudeHAE: 73.7, horizontalAccuracy: 4.5, speed: 12.3, course: 271, hdop: 0.9, satellitesUsed: 9,
                mode: .threeD, quality: .dgps, moving: true, reason: "displacement", odometer: 15_230.4,
                power: PowerState(batteryPercent: 87, charging: true, externalPower: true)))
    }

    /// 4 s later.
    private static var second: QueuedLocation {
        var row = first
        row.seq = 1042
        row.receivedMs = row.receivedMs.map { $0 + 4000 }
        row.location.time = UTCTime(milliseconds: 1_700_000_004_123)
        row.location.coordinate = Coordinate(latitudeE7: 525_200_160, longitudeE7: 134_042_300)
        row.location.altitudeMSL = 34.6
        row.location.altitudeHAE = 74.2
        row.location.horizontalAccuracy = 4.8
        row.location.speed = 12.1
        row.location.course = 270.6
        row.location.odometer = 15_279.4
        return row
    }

    /// Another 6 s later; those between went elsewhere.
    private static var third: QueuedLocation {
        bare(seq: 1045, ms: 1_700_000_010_123, latitudeE7: 525_200_204, longitudeE7: 134_031_450)
    }

    private static func bare(seq: Int64, ms: Int64, latitudeE7: Int32, longitudeE7: Int32) -> QueuedLocation {
        var row = row(
            seq: seq,
            Location(
                trackable: "van-7", time: UTCTime(milliseconds: ms), at: EventTime(nanoseconds: 0),
                coordinate: Coordinate(latitudeE7: latitudeE7, longitudeE7: longitudeE7), moving: false))
        row.receivedMs = nil
        return row
    }

    private static func row(seq: Int64, _ location: Location) -> QueuedLocation {
        QueuedLocation(
            seq: seq, bootID: boot, receivedMs: location.time.milliseconds + 200, location: location)
    }
}
