import CCrypto

/// SHA-256 (FIPS 180-4), by the libcrypto that libcurl brings along.
public enum SHA256 {
    /// - Returns: 32 bytes.
    public static func hash(_ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        let done = EVP_Digest(message, message.count, &digest, &length, EVP_sha256(), nil)
        precondition(done == 1 && length == 32, "libcrypto has no SHA-256")
        return digest
    }
}
