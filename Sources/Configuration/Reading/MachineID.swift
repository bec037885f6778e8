import Hash
import WaypostCore
import WaypostHost

/// The identity of an installation, for device ids and client ids.
package enum MachineID {
    /// Hashed with the machine id, so that what we send cannot be traced back to the id itself.
    private static let application: [UInt8] = [
        0x6d, 0x1c, 0x1f, 0x5e, 0x29, 0x0b, 0x4b, 0x5a, 0x9a, 0x7d, 0x35, 0x0e, 0x61, 0xc8, 0x04, 0xf2,
    ]

    /// 16 hex digits that are stable for this installation: HMAC-SHA256 of the application id keyed with the machine id,
    /// as `sd_id128_get_machine_app_specific` does, cut to 8 bytes. The raw machine id never leaves the machine.
    /// - Returns: nil when there is no valid machine id.
    package static func read(file: String = "/etc/machine-id") -> String? {
        guard let text = HostIdentity.readSmallFile(file), let key = HostIdentity.bytes(hex: text.trimmed),
            key.count == 16
        else { return nil }
        return String(hexOf: HMACSHA256.authenticate(application, key: key).prefix(8))
    }
}
