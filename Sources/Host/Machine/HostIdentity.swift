import Glibc
import WaypostCore

/// What identifies this host and this boot.
package enum HostIdentity {
    /// 32 hex digits naming this boot. Under the unit the manager hands it over, since `ProcSubset=pid` hides the file.
    package static func bootID(
        environment: [String: String], file: String = "/proc/sys/kernel/random/boot_id"
    ) -> String? {
        let text = environment["WAYPOST_BOOT_ID"] ?? readSmallFile(file) ?? ""
        let digits = text.trimmed.filter { $0 != "-" }.lowercased()
        return digits.utf8.count == 32 && bytes(hex: digits) != nil ? digits : nil
    }

    package static func hostName() -> String? {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Host wall clock, Unix milliseconds; see `Host.wallClockMs` for what it is good for.
    package static func wallClockMs() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }

    /// Bytes for a new queue's identity.
    /// - Throws: `SystemError` when the kernel gives none.
    package static func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard getentropy(&bytes, count) == 0 else { throw SystemError("getentropy") }
        return bytes
    }

    package static func readSmallFile(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &buffer, buffer.count)
        return count > 0 ? String(validating: buffer[..<count], as: UTF8.self) : nil
    }

    package static func bytes(hex: String) -> [UInt8]? {
        let digits = hex.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
    }
}

extension String {
    /// Without blanks and line ends at both ends.
    package var trimmed: String { String(Substring(utf8.trimming { $0 <= 0x20 })) }
}
