import Configuration
import Delivery
import EventLoop
import Glibc
import Positioning
import Uplink

/// The refresh token that an issuer gave in place of the configured one, kept over restarts with mode 0600.
///
/// It counts only while the configuration names the token that it came from: a new one in the configuration replaces it.
struct RefreshTokenFile {
    let path: String
    /// Names the configured token without holding it.
    private let origin: String

    init(directory: String, endpoint: String, client: String, configured: String) {
        path = "\(directory)/\(endpoint).refresh-token"
        origin = String(hexOf: SHA256.hash(Array("\(client)\n\(configured)".utf8)))
    }

    /// nil when there is none, or one of another origin.
    func read() -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard let bytes = readAll(descriptor, bytesMax: 64 * 1024),
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // The last line is empty: without it the file was cut short.
        guard lines.count == 3, lines[0] == origin, !lines[1].isEmpty, lines[2].isEmpty else { return nil }
        return String(lines[1])
    }

    /// After a power cut the file holds the old token or the new one.
    /// - Throws: `SystemError`
    func write(_ token: String) throws(SystemError) {
        let draft = path + ".new"
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("open \(draft)") }
        let bytes = Array("\(origin)\n\(token)\n".utf8)
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let isSafe = written == bytes.count && fchmod(descriptor, 0o600) == 0 && fsync(descriptor) == 0
        let error = SystemError("write \(draft)")
        close(descriptor)
        guard isSafe else {
            unlink(draft)
            throw error
        }
        guard rename(draft, path) == 0 else { throw SystemError("rename \(draft)") }
        let directory = open(path.parentDirectory, O_RDONLY | O_DIRECTORY)
        if directory >= 0 {
            fsync(directory)
            close(directory)
        }
    }
}
