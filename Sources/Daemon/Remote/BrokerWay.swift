import Configuration
import Network
import Protocols
import WaypostCore
import WaypostHost

/// Documents, commands, reports and answers as messages of a broker, over the connection that carries the rows.
final class BrokerWay: RemoteWay {
    private let topic: String
    private let isSigned: Bool
    private let delivery: EndpointDelivery
    private let loop: EventLoop
    private var arrivals = TokenBucket(burst: 60, refill: .seconds(10))
    var hear: (RemoteMessage) -> Void = { _ in }

    /// - Parameters:
    ///   - topic: what all topics of this device begin with.
    ///   - isSigned: messages are envelopes with a signature.
    init(topic: String, isSigned: Bool, delivery: EndpointDelivery, uplink: any Uplink, loop: EventLoop) {
        self.topic = topic
        self.isSigned = isSigned
        self.delivery = delivery
        self.loop = loop
        uplink.listen { [weak self] in self?.take($0) }
    }

    var isAsked: Bool { false }
    var isOfEndpoint: Bool { true }

    func fetch(known: Int64, _ done: @escaping (RemoteFetch) -> Void) {}

    func report(_ state: [UInt8], _ done: @escaping (RemoteDispatch) -> Void) {
        delivery.publish(message("settings/reported", state, isRetained: true)) { result in
            guard case .published(let reply) = result, let reason = reply.reasons.first ?? nil else {
                return done(.failed)
            }
            switch reason.meaning {
            case .retry, .slowDown: done(.failed)
            default: done(.settled)
            }
        }
    }

    func answer(_ answer: [UInt8]) {
        delivery.publish(message("cmd/ack", answer, isRetained: false)) { _ in }
    }

    private func message(_ name: String, _ payload: [UInt8], isRetained: Bool) -> MQTTMessage {
        var message = MQTTMessage(topic: "\(topic)/\(name)", payload: payload, isRetained: isRetained)
        message.contentType = "application/json"
        return message
    }

    private func take(_ news: BrokerNews) {
        switch news {
        case .subscribed(let refused):
            hear(.problem(refused.isEmpty ? nil : "the broker refuses \(refused.joined(separator: " and "))"))
        case .message(let message):
            // No document and no command is that long.
            guard message.payload.count <= SignedEnvelope.bytesMax else { return }
            switch message.topic {
            case "\(topic)/\(RemoteTopic.settings.rawValue)":
                // Empty: the broker has forgotten the last one.
                if message.payload.isEmpty { return hear(.noDocument) }
                let (bytes, signature) = opened(message.payload)
                hear(.document(bytes, signature: signature))
            case "\(topic)/\(RemoteTopic.commands.rawValue)":
                // A flood costs no more than this, whatever is in it.
                guard arrivals.take(at: loop.now) == nil else { return }
                let (bytes, signature) = opened(message.payload)
                hear(.command(bytes, signature: signature, isRetained: message.isRetained))
            default: break
            }
        case .connected, .keepAliveShortened, .birthsAnswered: break
        }
    }

    private func opened(_ payload: [UInt8]) -> (bytes: [UInt8], signature: String?) {
        guard isSigned, let envelope = SignedEnvelope(payload) else { return (payload, nil) }
        return (envelope.content, envelope.signature)
    }
}
