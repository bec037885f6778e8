import CCrypto

/// SHA-256 (FIPS 180-4), by the libcrypto that libcurl brings along.
package enum SHA256 {
    /// Fetched once: with that of `EVP_sha256` libcrypto looks for a provider at each hash. It is never freed, and
    /// libcrypto only reads it.
    private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    /// - Returns: 32 bytes.
    package static func hash(_ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        let done = EVP_Digest(message, message.count, &digest, &length, algorithm, nil)
        precondition(done == 1 && length == 32, "libcrypto has no SHA-256")
        return digest
    }
}
