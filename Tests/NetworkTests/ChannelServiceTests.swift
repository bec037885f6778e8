import Channel
import Foundation
import Profiles
import Protocols
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Network

/// Our publisher over the real connection, watched by real viewers, who judge. `scripts/live/channel` runs it, and ends
/// it by a viewer named `stop`.
@Suite("With real viewers", .enabled(if: ChannelPublisher.port != nil)) struct ChannelServiceTests {
    @Test func isWatched() throws {
        let publisher = try ChannelPublisher()
        publisher.run()
        #expect(publisher.client.state == .closed)
    }
}

/// The machine on a connection, with a queue in memory, as a daemon would join them.
private final class ChannelPublisher {
    static let port = ProcessInfo.processInfo.environment["WAYPOST_LIVE_CHANNEL"]

    private(set) var client: ChannelClient
    private var feed = LocationFeed(queue: "q7", name: .enhanced, cursor: 0)
    private var webSocket: WebSocketClient?
    private let loop: ConnectionLoop
    private var rows: [QueuedLocation] = []
    private var requests: [String: Resolution?] = [:]
    private var tokens = 1
    private var mask = SeededGenerator(seed: 1)

    init() throws {
        let host = "127.0.0.1:\(Self.port ?? "")"
        loop = try ConnectionLoop("http://\(host)")
        var settings = ChannelClient.Settings(host: host, clientID: "van")
        settings.firstReconnectSpread = .zero
        client = ChannelClient(settings, credential: .token(ChannelSecret("token1")))
        loop.react = { [unowned self] in react($0) }
    }

    func run() {
        perform(client.attach("van", presence, at: loop.now) ?? [])
        record()
        loop.run {
            // A wait for the next attempt need not be waited for.
            if client.state == .disconnected, let next = client.nextDeadline { loop.now = max(loop.now, next) }
            if let next = client.nextDeadline, next <= loop.now {
                perform(client.deadlineReached(jitter: 0, at: loop.now))
            }
            pump()
            return client.state == .closed
        }
    }

    /// What viewers are told: the finest that anybody asks for.
    private var presence: PublisherPresence {
        let standard = Resolution(priority: .balanced, intervalMs: 1000, displacement: 10)
        return PublisherPresence(resolution: Resolution.best(of: [standard] + requests.values.compactMap { $0 }))
    }

    /// Two fixes, of which the second is selected.
    private func record() {
        for isSelected in [false, true] {
            let seq = Int64(rows.count + 1)
            rows.append(
                QueuedLocation(
                    seq: seq, bootID: nil, receivedMs: nil,
                    location: Location(
                        trackable: "van", time: UTCTime(milliseconds: 1_700_000_000_000 + seq * 1000), at: loop.now,
                        coordinate: Coordinate(latitudeE7: 525_000_000 + Int32(seq), longitudeE7: 134_000_000),
                        horizontalAccuracy: 4, moving: true, published: isSelected)))
        }
        publish(feed.next(rows, bytesMax: client.messageBytesMax, at: loop.now))
    }

    private func publish(_ message: ChannelMessage?) {
        guard let message else { return }
        do throws(ChannelClient.Refusal) {
            perform(try client.publish(message, of: "van", at: loop.now))
        } catch {
            feed.unsent(at: loop.now)
        }
    }

    private func perform(_ effects: [ChannelClient.Effect]) {
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: ChannelClient.Effect) {
        switch effect {
        case .openTransport(let request):
            let settings = WebSocketClient.Settings(host: request.host, target: request.target.revealed)
            webSocket = try? WebSocketClient(settings, nonce: InlineArray(repeating: 7), at: loop.now)
            loop.connection.open()
        case .closeTransport:
            pump()
            webSocket = nil
            loop.connection.close()
        case .send(let frame):
            if webSocket?.send(text: frame.text) != true { Issue.record("a frame too many: \(frame)") }
        case .renewCredential:
            tokens += 1
            perform(client.credentialRenewed(.token(ChannelSecret("token\(tokens)")), at: loop.now))
        case .settled(_, _, _, .taken): feed.acknowledged(at: loop.now)
        case .settled(_, _, _, .refused(let error)): publish(feed.refused(error, jitter: 0, at: loop.now))
        case .settled(_, _, _, .unanswered): feed.unsent(at: loop.now)
        case .subscriberChanged(let change): changed(change)
        case .channelChanged(_, .attached, _):
            loop.now = max(loop.now, feed.nextDeadline ?? loop.now)
            publish(feed.next(rows, bytesMax: client.messageBytesMax, at: loop.now))
        case .channelChanged, .connectionChanged, .trackableChanged, .request, .requestsArrive: break
        case .warned(_, let warning): Issue.record("\(warning)")
        }
    }

    private func changed(_ change: SubscriberChange) {
        if change.member.hasSuffix(":stop") { return perform(client.close(at: loop.now)) }
        switch change.action {
        case .add(let request), .update(let request): requests.updateValue(request, forKey: change.member)
        case .remove: requests.removeValue(forKey: change.member)
        }
        // At most one a second is told.
        loop.now = loop.now + .seconds(1)
        perform(client.attach("van", presence, at: loop.now) ?? [])
        loop.now = max(loop.now, feed.nextDeadline ?? loop.now)
        record()
    }

    private func pump() {
        while loop.connection.isOpen, loop.connection.unsentBytes == 0,
            let piece = webSocket?.nextOutput(mask: UInt32.random(in: 0...UInt32.max, using: &mask))
        {
            loop.connection.send(piece)
        }
    }

    private func react(_ event: LiveConnection.Event) {
        switch event {
        case .opened, .written: pump()
        case .received(let bytes):
            for event in webSocket?.received(bytes[...], at: loop.now) ?? [] { react(event) }
        case .ended: lost(byServer: false)
        }
    }

    private func react(_ event: WebSocketClient.Event) {
        switch event {
        case .text(let text): perform(client.received(text, jitter: 0, at: loop.now))
        case .ended:
            pump()
            loop.connection.close()
            lost(byServer: true)
        case .opened, .binary, .oversized: break
        }
    }

    private func lost(byServer: Bool) {
        guard webSocket != nil else { return }
        webSocket = nil
        perform(client.transportLost(byServer: byServer, jitter: 0, at: loop.now))
    }
}
