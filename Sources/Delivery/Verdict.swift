import Positioning

/// What one attempt means for its batch. Only `accepted` ever lets rows go.
public enum Verdict: Hashable, Sendable {
    /// Stored, as far as the server says.
    case accepted
    /// Not now: the same batch again later.
    case retry(RetryCause, after: Duration?)
    /// The credential, not the rows (401, 402, 403, 407).
    case authStop(status: Int)
    /// Unknown or gone (404, 410).
    case goneStop(status: Int)
    /// Our method, type, version or address is wrong.
    case misconfigured(status: Int)
    /// 415: our content encoding is refused.
    case encodingRefused
    /// Some record, or the request as a whole, is refused (400, 422).
    case split(status: Int)
    /// The request is too large (413, 414).
    case tooLarge(status: Int, after: Duration?)
    /// Another device reports this asset.
    case collision

    /// Why a batch is to be repeated.
    public enum RetryCause: Hashable, Sendable {
        case transport(TransportFailure)
        /// 3xx and 511: moved, or a captive portal. Never followed.
        case redirected(status: Int)
        /// 409 without the profile's sign of a collision: a conflict, or a twin request in progress.
        case conflict
        case status(Int)
    }

    /// The verdict of the profile `waypost`, for any outcome whatsoever.
    public init(_ outcome: UplinkOutcome) {
        switch outcome.result {
        case .failed(let failure): self = .retry(.transport(failure), after: nil)
        case .reply(let reply): self.init(reply)
        }
    }

    private init(_ reply: UplinkReply) {
        let status = reply.status
        let after = RetryAfter.parse(reply.headers)
        switch status {
        case 200...299: self = .accepted
        case 100...199: self = .misconfigured(status: status)
        case 300...399, 511: self = .retry(.redirected(status: status), after: after)
        case 400, 422: self = .split(status: status)
        case 401, 402, 403, 407: self = .authStop(status: status)
        case 404, 410: self = .goneStop(status: status)
        case 409:
            self = reply.saysAssetTaken ? .collision : .retry(.conflict, after: after)
        case 413, 414: self = .tooLarge(status: status, after: after)
        case 415: self = .encodingRefused
        case 408, 421, 423, 424, 425, 429: self = .retry(.status(status), after: after)
        case 400...499: self = .misconfigured(status: status)
        case 501, 505: self = .misconfigured(status: status)
        default: self = .retry(.status(status), after: after)
        }
    }

    /// One word or two for counters, logs and `status`.
    public var word: String {
        switch self {
        case .accepted: "accepted"
        case .retry(.transport(let failure), _): failure.word
        case .retry(.redirected, _): "redirected"
        case .retry(.conflict, _): "conflict"
        case .retry(.status(let status), _), .misconfigured(let status), .split(let status): "status \(status)"
        case .authStop: "auth"
        case .goneStop(let status): status == 410 ? "gone" : "not found"
        case .encodingRefused: "encoding refused"
        case .tooLarge: "too large"
        case .collision: "taken"
        }
    }
}

extension UplinkReply {
    /// The body is the native sign of a collision, `{"error":"asset_taken"}`, whatever its white space.
    fileprivate var saysAssetTaken: Bool {
        let compact = body.filter { $0 > 0x20 }
        let sign = Array("\"error\":\"asset_taken\"".utf8)
        guard !bodyIncomplete, compact.count >= sign.count else { return false }
        return (0...compact.count - sign.count).contains { compact[$0..<$0 + sign.count].elementsEqual(sign) }
    }
}
