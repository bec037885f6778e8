import Network
import Protocols
import WaypostCore
import WaypostHost

/// A connection to a broker on the event loop.
final class LoopedBroker {
    private let session: BrokerSession
    private let tls: TLSSettings?
    private let loop: EventLoop
    private let connection: BrokerConnection
    private let alarm: EventLoop.Alarm

    var counters: HTTPUplink.Counters { connection.counters }

    /// - Throws: when the URL is not that of a broker, or libcurl does not start.
    init(
        _ request: UplinkRequest, _ session: BrokerSession, settings: HTTPUplink.Settings, loop: EventLoop,
        hear: @escaping (BrokerNews) -> Void
    ) throws(HTTPUplink.SetupError) {
        let link = Link()
        self.session = session
        tls = request.tls
        self.loop = loop
        var generator = SystemRandomNumberGenerator()
        connection = try BrokerConnection(
            request.url, session: session, tls: request.tls, settings: settings,
            isClockTrusted: { [host = loop.host] in host.isClockSynchronised },
            random: { UInt32.random(in: 0...UInt32.max, using: &generator) },
            jitter: { [host = loop.host] in host.jitter }
        ) { descriptor, interest in
            guard let interest else { return loop.forget(descriptor) }
            try? loop.watch(descriptor, readable: interest.readable, writable: interest.writable) {
                link.broker?.ready(descriptor, $0, at: $1)
            }
        }
        connection.hear = hear
        alarm = loop.alarm { link.broker?.due(at: $0) }
        link.broker = self
    }

    /// What the closures that are made before it reach it by.
    private final class Link {
        weak var broker: LoopedBroker?
    }

    /// Whether another request goes over the same connection.
    func isFor(_ session: BrokerSession, _ tls: TLSSettings?) -> Bool { self.session == session && self.tls == tls }

    func send(_ request: UplinkRequest, number: Int, _ completion: @escaping (UplinkOutcome) -> Void) {
        connection.send(request, number: number, at: loop.now, completion)
        arm()
    }

    func cancel(_ number: Int) {
        connection.cancel(number, at: loop.now)
        arm()
    }

    func reconnect(_ cause: ReconnectCause, at now: EventTime) {
        connection.reconnect(cause, at: now)
        arm()
    }

    func linksChanged() {
        connection.linksChanged()
        arm()
    }

    /// See `BrokerConnection.replace`.
    func replace() -> [() -> Void] {
        alarm.deadline = nil
        return connection.replace(at: loop.now)
    }

    func close() {
        alarm.deadline = nil
        connection.close()
    }

    private func ready(_ descriptor: Int32, _ readiness: EventLoop.Readiness, at now: EventTime) {
        connection.descriptorReady(descriptor, readable: readiness.readable, writable: readiness.writable, at: now)
        arm()
    }

    private func due(at now: EventTime) {
        connection.deadlineReached(at: now)
        arm()
    }

    private func arm() { alarm.deadline = connection.nextDeadline }
}
