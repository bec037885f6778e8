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

/// Lower-case hex digits.
public func hexDigits(_ bytes: some Collection<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}
