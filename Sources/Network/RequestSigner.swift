import Hash
import Protocols

/// Proves to the server who made a request, and that it was not changed in transit.
///
/// Signing is pure: the same request, id and time give the same headers.
package enum RequestSigner: Hashable, Sendable {
    /// Standard Webhooks 1.0.0 with one key or, while keys are exchanged, several.
    case standardWebhooks(keys: [[UInt8]])
    /// `X-Hub-Signature-256`, as GitHub signs its webhooks.
    case gitHub(secret: [UInt8])
    /// Signature Version 4 of AWS.
    case aws(SigV4)

    /// Whether the signature holds a time, so that a wrong clock makes the server refuse it.
    package var needsTime: Bool {
        switch self {
        case .standardWebhooks, .aws: true
        case .gitHub: false
        }
    }

    /// Adds the headers of the signature; those of an earlier attempt must not be there.
    ///
    /// - Parameters:
    ///   - id: of the batch, by which the server recognises repetitions.
    ///   - time: Unix seconds of this attempt.
    package func sign(_ request: inout UplinkRequest, id: String, time: Int64) {
        // What is signed are the bytes on the wire.
        request.gzip = false
        switch self {
        case .standardWebhooks(let keys):
            request.headers += StandardWebhooks.headers(keys: keys, id: id, time: time, body: request.body)
        case .gitHub(let secret):
            let digest = HMACSHA256.authenticate(request.body, key: secret)
            request.headers.append(.init("X-Hub-Signature-256", "sha256=\(String(hexOf: digest))"))
        case .aws(let signer):
            request.headers += signer.headers(for: request, time: time)
        }
    }
}

/// Standard Webhooks 1.0.0 (standard-webhooks/standard-webhooks).
package enum StandardWebhooks {
    /// `whsec_` and the base64 of 24 to 64 bytes.
    /// - Returns: nil for anything else.
    package static func key(_ secret: String) -> [UInt8]? {
        let prefix = "whsec_"
        guard secret.hasPrefix(prefix), let key = Base64.decode(String(secret.dropFirst(prefix.count))),
            (24...64).contains(key.count)
        else { return nil }
        return key
    }

    static func headers(keys: [[UInt8]], id: String, time: Int64, body: [UInt8]) -> [UplinkRequest.Header] {
        let signed = Array("\(id).\(time).".utf8) + body
        let signatures = keys.map { "v1,\(Base64.encode(HMACSHA256.authenticate(signed, key: $0)))" }
        return [
            .init("webhook-id", id), .init("webhook-timestamp", String(time)),
            .init("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}
