import Hash
import WaypostCore

/// When a JSON Web Token (RFC 7519) says that it was issued and expires. Nothing of it is verified: that is the server's part.
struct TokenClaims: Hashable {
    /// Seconds of a span or since 1970 that a sane token stays below.
    private static let secondsMax = 1e11

    /// Unix seconds.
    var expires: Double
    /// Unix seconds; nil when it does not say.
    var issued: Double?

    /// - Parameter secret: the token, alone or behind a scheme such as `Bearer`.
    /// - Returns: nil when it is no such token, or has no end.
    init?(_ secret: String) {
        let parts = (secret.split(separator: " ").last ?? "").split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Self.bytes(parts[1]), let claims = JSONReader.read(bytes),
            let expires = Self.seconds(claims["exp"])
        else { return nil }
        self.expires = expires
        issued = Self.seconds(claims["iat"])
    }

    /// Base64 of RFC 4648 §5, without padding.
    private static func bytes(_ part: Substring) -> [UInt8]? {
        let alphabet = part.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - alphabet.count % 4) % 4)
        return Base64.decode(String(decoding: alphabet + padding, as: UTF8.self))
    }

    private static func seconds(_ value: JSONValue?) -> Double? {
        value?.number.flatMap { (0...secondsMax).contains($0) ? $0 : nil }
    }
}

/// How long what an endpoint is sent with stays valid.
struct TokenLife: Hashable {
    /// Seconds until it expires, negative afterwards; nil = not known, or it does not expire.
    var left: Double?
    /// Seconds from its issue until it expires; nil = not known.
    var validity: Double?
    /// Why the last attempt to renew it failed; nil = it did not, or a person renews it.
    var problem: String?
}
