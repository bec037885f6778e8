import Testing
import WaypostCore

@testable import Channel

/// A client and a service that says what the test wants.
final class Rig {
    var client: ChannelClient
    private(set) var now = EventTime.zero
    var jitter = 0.5
    /// Of all calls since it was last emptied.
    var effects: [ChannelClient.Effect] = []

    init(
        credential: ChannelCredential? = .token(ChannelSecret("t1")),
        _ change: (inout ChannelClient.Settings) -> Void = { _ in }
    ) {
        var settings = ChannelClient.Settings(host: "h", clientID: "van")
        change(&settings)
        client = ChannelClient(settings, credential: credential)
    }

    static let presence = PublisherPresence(
        resolution: Resolution(priority: .balanced, intervalMs: 1000, displacement: 1))

    /// Connected, with requests to attach that nobody has answered.
    static func connected(_ trackables: [String] = ["a"], jitter: Double = 0.5) -> Rig {
        let rig = Rig()
        rig.jitter = jitter
        for trackable in trackables { rig.attach(trackable) }
        rig.connect()
        return rig
    }

    /// Connected, attached, entered.
    /// - Parameter seconds: since then; after a minute a connection counts as one that lasts.
    static func entered(_ trackables: [String] = ["a"], hasPresence: Bool = false, since seconds: Int = 0) -> Rig {
        let rig = Rig.connected(trackables)
        for trackable in trackables { rig.attached(trackable, hasPresence: hasPresence) }
        rig.receive(#"{"action":1,"msgSerial":0,"count":\#(trackables.count)}"#)
        rig.pass(.seconds(seconds))
        rig.effects = []
        return rig
    }

    /// - Returns: what the call gives.
    @discardableResult
    func act(_ call: (inout ChannelClient, EventTime) throws -> [ChannelClient.Effect]) rethrows
        -> [ChannelClient.Effect]
    {
        let new = try call(&client, now)
        effects += new
        return new
    }

    @discardableResult
    func attach(_ trackable: String, _ presence: PublisherPresence = presence) -> [ChannelClient.Effect] {
        act { $0.attach(trackable, presence, at: $1) ?? [] }
    }

    @discardableResult
    func receive(_ text: String) -> [ChannelClient.Effect] { act { $0.received(text, jitter: jitter, at: $1) } }

    @discardableResult
    func connect(_ id: String = "c", key: String = "k", details: String = "") -> [ChannelClient.Effect] {
        receive(
            #"{"action":4,"connectionId":"\#(id)","connectionDetails":{"connectionKey":"\#(key)"\#(details)}}"#)
    }

    @discardableResult
    func attached(
        _ trackable: String = "a", hasPresence: Bool = false, isResumed: Bool = false
    ) -> [ChannelClient.Effect] {
        let flags = ClientFrame.attachFlags + (hasPresence ? 1 : 0) + (isResumed ? 4 : 0)
        return receive(#"{"action":11,"channel":"tracking:\#(trackable)","flags":\#(flags),"channelSerial":"s1"}"#)
    }

    @discardableResult
    func lose(byServer: Bool = false) -> [ChannelClient.Effect] {
        act { $0.transportLost(byServer: byServer, jitter: jitter, at: $1) }
    }

    @discardableResult
    func renew(_ token: String) -> [ChannelClient.Effect] {
        act { $0.credentialRenewed(.token(ChannelSecret(token)), at: $1) }
    }

    @discardableResult
    func leave(_ trackable: String) -> [ChannelClient.Effect] { act { $0.leave(trackable, at: $1) } }

    /// Deadlines come in order, each at its time.
    @discardableResult
    func pass(_ duration: Duration) -> [ChannelClient.Effect] {
        let (end, first) = (now + duration, effects.count)
        while let next = client.nextDeadline, next <= end {
            now = max(now, next)
            act { $0.deadlineReached(jitter: jitter, at: $1) }
            if let again = client.nextDeadline, again <= now {
                Issue.record("a deadline that was reached comes again")
                break
            }
        }
        now = end
        return Array(effects[first...])
    }

    @discardableResult
    func publish(
        _ seq: Int = 1, of trackable: String = "a", _ name: ChannelMessage.Name = .enhanced
    ) throws -> [ChannelClient.Effect] {
        let message = try #require(
            ChannelMessage(id: "q-\(seq)", name: name, feature: .sample(), skipped: [], bytesMax: 65_536))
        return try act { try $0.publish(message, of: trackable, at: $1) }
    }

    var state: ConnectionState { client.state }
}

extension [ChannelClient.Effect] {
    /// What is sent.
    var texts: [String] { compactMap { if case .send(let frame) = $0 { frame.text } else { nil } } }

    /// The frames that are sent, without data: `10 tracking:a`.
    var sent: [String] { compactMap { if case .send(let frame) = $0 { "\(frame)" } else { nil } } }

    var openings: [TransportRequest] {
        compactMap { if case .openTransport(let request) = $0 { request } else { nil } }
    }

    var settled: [String] {
        compactMap { effect in
            guard case .settled(_, _, let id, let outcome) = effect else { return nil }
            return switch outcome {
            case .taken: "\(id) taken"
            case .refused(let error): "\(id) refused \(error.code)"
            case .unanswered: "\(id) unanswered"
            }
        }
    }

    var viewers: [String] {
        compactMap { effect in
            guard case .subscriberChanged(let change) = effect else { return nil }
            func words(_ request: Resolution?) -> String { request.map { " \($0.intervalMs)" } ?? "" }
            return switch change.action {
            case .add(let request): "+\(change.member)\(words(request))"
            case .update(let request): "=\(change.member)\(words(request))"
            case .remove: "-\(change.member)"
            }
        }
    }

    var trackableStates: [TrackableState] {
        compactMap { if case .trackableChanged(_, let state, _) = $0 { state } else { nil } }
    }

    var channelStates: [ChannelState] {
        compactMap { if case .channelChanged(_, let state, _) = $0 { state } else { nil } }
    }

    var connectionStates: [ConnectionState] {
        compactMap { if case .connectionChanged(let state, _) = $0 { state } else { nil } }
    }

    var warnings: [ChannelClient.Warning] {
        compactMap { if case .warned(_, let warning) = $0 { warning } else { nil } }
    }

    var renewals: Int { count { if case .renewCredential = $0 { true } else { false } } }
}

let second = Duration.seconds(1)
