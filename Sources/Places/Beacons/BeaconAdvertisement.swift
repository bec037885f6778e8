/// A transmitter that says which it is.
package struct Beacon: Hashable, Sendable, CustomStringConvertible {
    package var uuid: ProximityUUID
    package var major: UInt16
    package var minor: UInt16

    package init(uuid: ProximityUUID, major: UInt16, minor: UInt16) {
        self.uuid = uuid
        self.major = major
        self.minor = minor
    }

    package var description: String { "\(uuid)/\(major)/\(minor)" }

    /// - Parameter text: as `description` writes it.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, let uuid = ProximityUUID(String(parts[0])), let major = UInt16(parts[1]),
            let minor = UInt16(parts[2])
        else { return nil }
        self.init(uuid: uuid, major: major, minor: minor)
    }
}

/// What an iBeacon sends (Apple, Proximity Beacon Specification R1).
package struct BeaconAdvertisement: Hashable, Sendable {
    /// Of Apple, under which the Bluetooth stack hands over the bytes.
    package static let company: UInt16 = 0x004C
    private static let header: [UInt8] = [0x02, 0x15]
    private static let length = 23

    package var beacon: Beacon
    /// dBm at a distance of one metre, as the maker measured it.
    package var measuredPower: Int8

    package init(beacon: Beacon, measuredPower: Int8) {
        self.beacon = beacon
        self.measuredPower = measuredPower
    }

    /// - Parameter bytes: manufacturer data of `company`, without its number; nil when it is of another kind. What follows the
    ///   23 bytes of an iBeacon is ignored.
    package init?(manufacturerData bytes: some RandomAccessCollection<UInt8>) {
        guard bytes.count >= Self.length, bytes.starts(with: Self.header),
            let uuid = ProximityUUID(bytes.dropFirst(2).prefix(16))
        else { return nil }
        let rest = Array(bytes.dropFirst(18).prefix(5))
        beacon = Beacon(
            uuid: uuid, major: UInt16(rest[0]) << 8 | UInt16(rest[1]), minor: UInt16(rest[2]) << 8 | UInt16(rest[3]))
        measuredPower = Int8(bitPattern: rest[4])
    }
}
