import CCrypto
import Hash

/// What shows that a message was written by who has the key, whatever carried it.
package enum MessageKey: Sendable {
    /// HMAC with SHA-256: who can check a signature can also make one.
    case secret([UInt8])
    /// The public half of an Ed25519 key (RFC 8032), 32 bytes: devices can check, and only the owner can sign.
    case publicKey([UInt8])

    /// - Parameter signature: `sha256=` and 64 hexadecimal digits, or `ed25519=` and base64, over exactly these bytes.
    package func verifies(_ message: [UInt8], signature: String) -> Bool {
        switch self {
        case .secret(let key):
            guard let given = Self.content(of: signature, after: "sha256=").flatMap(Self.hex) else { return false }
            return Self.isSame(given, HMACSHA256.authenticate(message, key: key))
        case .publicKey(let key):
            guard let given = Self.content(of: signature, after: "ed25519=").flatMap(Base64.decode) else {
                return false
            }
            return Self.isSigned(message, given, by: key)
        }
    }

    private static func content(of text: String, after prefix: String) -> String? {
        text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }

    private static func hex(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { UInt8(exactly: Character(Unicode.Scalar($0)).hexDigitValue ?? 255) ?? 255 }
        guard digits.count == 64, digits.allSatisfy({ $0 < 16 }) else { return nil }
        return stride(from: 0, to: 64, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    /// Takes as long whatever differs: an attacker must not learn the signature byte by byte.
    private static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private static func isSigned(_ message: [UInt8], _ signature: [UInt8], by key: [UInt8]) -> Bool {
        guard key.count == 32, signature.count == 64,
            let known = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, key, key.count)
        else { return false }
        defer { EVP_PKEY_free(known) }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit(context, nil, nil, nil, known) == 1 else { return false }
        let isGood = EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        // A signature that does not match leaves its reason behind, which the next user of libcrypto would find.
        if !isGood { ERR_clear_error() }
        return isGood
    }
}
