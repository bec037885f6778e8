import Network
import Protocols
import WaypostCore
import WaypostHost

/// The uplinks on the event loop, for HTTP and for brokers: watches the descriptors that they name and keeps their deadlines
/// armed.
package final class LoopedUplink: Uplink {
    private let loop: EventLoop
    private let http: HTTPUplink
    private let alarm: EventLoop.Alarm
    private let settings: HTTPUplink.Settings
    /// By the address of the broker and the client id.
    private var brokers: [String: LoopedBroker] = [:]
    private var brokerByTransfer: [Int: LoopedBroker] = [:]
    /// Numbers of transfers to brokers are below zero.
    private var lastBrokerTransfer = 0
    /// To be told from the loop, as any outcome.
    private var failures: [() -> Void] = []
    private var hearers: [(BrokerNews) -> Void] = []

    /// Of requests to all servers.
    var counters: HTTPUplink.Counters { brokers.values.reduce(http.counters) { $0 + $1.counters } }

    /// - Throws: `HTTPUplink.SetupError`
    package init(settings: HTTPUplink.Settings, loop: EventLoop) throws(HTTPUplink.SetupError) {
        let link = Link()
        self.loop = loop
        self.settings = settings
        http = try HTTPUplink(settings: settings, isClockTrusted: { [host = loop.host] in host.isClockSynchronised }) {
            descriptor, interest in
            guard let interest else { return loop.forget(descriptor) }
            // A descriptor that cannot be watched shows as a request that times out; nothing is lost.
            try? loop.watch(descriptor, readable: interest.readable, writable: interest.writable) {
                link.uplink?.ready(descriptor, $0, at: $1)
            }
        }
        alarm = loop.alarm { link.uplink?.due(at: $0) }
        link.uplink = self
    }

    /// What the closures that are made before the uplink reach it by.
    private final class Link {
        weak var uplink: LoopedUplink?
    }

    @discardableResult
    package func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
        if let broker = request.broker { return send(broker, request, completion) }
        defer { arm() }
        return http.send(request, completion: completion)
    }

    package func cancel(_ transfer: UplinkTransfer) {
        if let broker = brokerByTransfer.removeValue(forKey: transfer.number) { return broker.cancel(transfer.number) }
        http.cancel(transfer)
        arm()
    }

    private func send(
        _ broker: BrokerRequest, _ request: UplinkRequest, _ completion: @escaping (UplinkOutcome) -> Void
    ) -> UplinkTransfer {
        lastBrokerTransfer -= 1
        let number = lastBrokerTransfer
        let key = "\(request.url) \(broker.session.clientID)"
        do throws(HTTPUplink.SetupError) {
            let looped = try self.broker(key, request, broker.session)
            brokerByTransfer[number] = looped
            looped.send(request, number: number) { [unowned self] outcome in
                brokerByTransfer[number] = nil
                completion(outcome)
            }
        } catch {
            failures.append { completion(UplinkOutcome(.failed(.connect(error.description)))) }
            arm()
        }
        return UplinkTransfer(number)
    }

    /// The connection for such a request, which replaces one with other credentials.
    private func broker(
        _ key: String, _ request: UplinkRequest, _ session: BrokerSession
    ) throws(HTTPUplink.SetupError) -> LoopedBroker {
        if let known = brokers[key] {
            if known.isFor(session, request.tls) { return known }
            failures += known.replace()
            arm()
        }
        let broker = try LoopedBroker(request, session, settings: settings, loop: loop) { [unowned self] news in
            switch news {
            case .connected, .keepAliveShortened, .birthsAnswered: break
            // Others may say what nobody asked for.
            case .message, .subscribed: if session.subscriptions.isEmpty { return }
            }
            for hear in hearers { hear(news) }
        }
        brokers[key] = broker
        return broker
    }

    package func listen(_ hear: @escaping (BrokerNews) -> Void) { hearers.append(hear) }

    package func linksChanged(at now: EventTime) {
        http.linksChanged(at: now)
        for broker in brokers.values { broker.linksChanged() }
        arm()
    }

    package func reconnect(_ cause: ReconnectCause, at now: EventTime) {
        for broker in brokers.values { broker.reconnect(cause, at: now) }
    }

    package func closeIdleConnections(at now: EventTime) {
        http.closeIdleConnections(at: now)
        arm()
    }

    package func close() {
        alarm.deadline = nil
        http.close()
        for broker in brokers.values { broker.close() }
        brokers = [:]
        brokerByTransfer = [:]
    }

    private func ready(_ descriptor: Int32, _ readiness: EventLoop.Readiness, at now: EventTime) {
        http.descriptorReady(descriptor, readable: readiness.readable, writable: readiness.writable, at: now)
        arm()
    }

    private func due(at now: EventTime) {
        http.deadlineReached(at: now)
        let due = failures
        failures = []
        for report in due { report() }
        arm()
    }

    private func arm() { alarm.deadline = failures.isEmpty ? http.nextDeadline : .zero }
}
