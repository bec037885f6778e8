import Glibc
import Positioning
import Uplink

/// What identifies this machine and this boot.
public enum HostIdentity {
    /// Hashed with the machine id, so that what we send cannot be traced back to the id itself.
    private static let application: [UInt8] = [
        0x6d, 0x1c, 0x1f, 0x5e, 0x29, 0x0b, 0x4b, 0x5a, 0x9a, 0x7d, 0x35, 0x0e, 0x61, 0xc8, 0x04, 0xf2,
    ]

    /// 16 hex digits that are stable for this installation: HMAC-SHA256 of the application id keyed with the machine id,
    /// as `sd_id128_get_machine_app_specific` does, cut to 8 bytes. The raw machine id never leaves the machine.
    /// - Returns: nil when there is no valid machine id.
    public static func machineID(file: String = "/etc/machine-id") -> String? {
        guard let text = readSmallFile(file), let key = bytes(hex: text.trimmed), key.count == 16 else { return nil }
        return hex(HMACSHA256.authenticate(application, key: key).prefix(8))
    }

    /// 32 hex digits naming this boot. Under the unit the manager hands it over, since `ProcSubset=pid` hides the file.
    public static func bootID(
        environment: [String: String], file: String = "/proc/sys/kernel/random/boot_id"
    ) -> String? {
        let text = environment["WAYPOST_BOOT_ID"] ?? readSmallFile(file) ?? ""
        let digits = text.trimmed.filter { $0 != "-" }.lowercased()
        return digits.utf8.count == 32 && bytes(hex: digits) != nil ? digits : nil
    }

    public static func hostName() -> String? {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Host wall clock, Unix milliseconds; see `Host.wallClockMs` for what it is good for.
    public static func wallClockMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    /// Bytes for a new queue's identity.
    /// - Throws: `SystemError` when the kernel gives none.
    public static func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard getentropy(&bytes, count) == 0 else { throw SystemError("getentropy") }
        return bytes
    }

    private static func readSmallFile(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(validating: buffer[..<count], as: UTF8.self) : nil
    }

    private static func bytes(hex: String) -> [UInt8]? {
        let digits = hex.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension String {
    /// Without blanks and line ends at both ends.
    var trimmed: String { String(Substring(utf8.trimming { $0 <= 0x20 })) }
}
