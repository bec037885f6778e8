import CCrypto

/// HMAC with SHA-256 (RFC 2104), by the libcrypto that libcurl brings along.
package enum HMACSHA256 {
    /// - Returns: 32 bytes.
    package static func authenticate(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        // A key of no bytes still needs a valid pointer.
        let done = HMAC(
            EVP_sha256(), key.isEmpty ? [0] : key, Int32(key.count), message, message.count, &digest, &length)
        precondition(done != nil && length == 32, "libcrypto has no SHA-256")
        return digest
    }
}
