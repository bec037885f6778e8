import Configuration
import Glibc
import Hash
import Profiles
import WaypostCore
import WaypostHost

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
        guard let file = try? RegularFile(path, followsLinks: false),
            let bytes = readAll(file.descriptor, bytesMax: 64 * 1024),
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
        try replaceFile(path, with: Array("\(origin)\n\(token)\n".utf8), mode: 0o600)
    }
}
