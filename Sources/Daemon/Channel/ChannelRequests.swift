import Channel
import Hash
import Protocols

/// Requests to the service of a channel, over the uplink that all endpoints share.
final class ChannelRequests {
    private let scheme: String
    private let uplink: any Uplink
    private var underWay: [Int: UplinkTransfer] = [:]

    init(isEncrypted: Bool, uplink: any Uplink) {
        scheme = isEncrypted ? "https" : "http"
        self.uplink = uplink
    }

    /// - Parameter answered: called once, unless all are given up: with the status of HTTP, nil without an answer, and the
    ///   body.
    func send(_ request: ServiceRequest, _ tls: TLSSettings?, answered: @escaping (Int?, [UInt8]) -> Void) {
        let number = request.number
        underWay[number] = uplink.send(
            UplinkRequest(
                method: request.body == nil ? "GET" : "POST", url: "\(scheme)://\(request.host)\(request.target)",
                headers: Self.headers(request), body: request.body ?? [], timeout: ServiceRequest.timeout, tls: tls,
                replyLimit: ServiceRequest.answerBytesMax)
        ) { [unowned self] outcome in
            underWay[number] = nil
            guard case .reply(let reply) = outcome.result else { return answered(nil, []) }
            answered(reply.status, reply.body)
        }
    }

    func cancelAll() {
        for transfer in underWay.values { uplink.cancel(transfer) }
        underWay = [:]
    }

    private static func headers(_ request: ServiceRequest) -> [UplinkRequest.Header] {
        let shown =
            switch request.credential {
            case .key(let key): "Basic \(Base64.encode(Array(key.revealed.utf8)))"
            case .token(let token): "Bearer \(Base64.encode(Array(token.revealed.utf8)))"
            }
        let headers: [UplinkRequest.Header] = [
            .init("Authorization", shown), .init("Accept", "application/json"), .init("X-Ably-Version", "5"),
        ]
        return request.body == nil ? headers : headers + [.init("Content-Type", "application/json")]
    }
}
