import Channel
import Configuration
import Network
import Protocols
import WaypostCore
import WaypostHost

/// What carries the frames of a channel: a WebSocket, or in the simulated world a service that is made up. It reports from the loop,
/// never from inside these calls.
package protocol ChannelCarrier: AnyObject {
    func open(_ request: TransportRequest)
    func send(_ frame: ClientFrame)
    /// Without a report.
    func close()
    /// Links, addresses or routes of this host may have changed.
    func linksChanged()
    /// From the next connection on.
    func trust(_ tls: TLSSettings?)
}

/// The WebSocket of a channel on the event loop: to one host after the other, as the protocol wants.
final class ChannelTransport: ChannelCarrier {
    private let isEncrypted: Bool
    private var tls: TLSSettings?
    private let loop: EventLoop
    private let report: (WebSocketConnection.Event, EventTime) -> Void
    private var connection: WebSocketConnection?
    private var host = ""
    private var alarm: EventLoop.Alarm?
    /// It could not be set up: told from the loop.
    private var failure: TransportFailure?

    init(
        isEncrypted: Bool, tls: TLSSettings?, loop: EventLoop,
        report: @escaping (WebSocketConnection.Event, EventTime) -> Void
    ) {
        self.isEncrypted = isEncrypted
        self.tls = tls
        self.loop = loop
        self.report = report
        alarm = loop.alarm { [unowned self] now in due(at: now) }
    }

    func trust(_ new: TLSSettings?) {
        guard new != tls else { return }
        tls = new
        host = ""
    }

    func open(_ request: TransportRequest) {
        do throws(HTTPUplink.SetupError) {
            if connection == nil || request.host != host { connection = try connection(to: request.host) }
            host = request.host
            connection?.open(target: request.target.revealed)
        } catch {
            failure = .broken(error.description)
        }
        arm()
    }

    func send(_ frame: ClientFrame) {
        connection?.send(text: frame.text)
        arm()
    }

    func close() {
        connection?.close()
        failure = nil
        arm()
    }

    func linksChanged() {
        connection?.linksChanged()
        arm()
    }

    private func connection(to host: String) throws(HTTPUplink.SetupError) -> WebSocketConnection {
        connection?.close()
        var settings = WebSocketClient.Settings(host: host, target: "/")
        // The protocol has its own heartbeat.
        settings.pingAfter = nil
        settings.messageBytesMax = ChannelClient.Settings.frameBytesMax
        settings.skipsOversizedMessages = true
        var generator = SystemRandomNumberGenerator()
        return try WebSocketConnection(
            "\(isEncrypted ? "https" : "http")://\(host)", settings, tls: tls,
            transport: .init(version: AgentVersion.current),
            isClockTrusted: { [host = loop.host] in host.isClockSynchronised },
            random: { UInt32.random(in: 0...UInt32.max, using: &generator) },
            watch: { [unowned self] descriptor, interest in watch(descriptor, interest) },
            report: { [unowned self] event, now in report(event, now) })
    }

    private func watch(_ descriptor: Int32, _ interest: HTTPUplink.Interest?) {
        guard let interest else { return loop.forget(descriptor) }
        try? loop.watch(descriptor, readable: interest.readable, writable: interest.writable) {
            [unowned self] readiness, now in
            connection?.descriptorReady(
                descriptor, readable: readiness.readable, writable: readiness.writable, at: now)
            arm()
        }
    }

    private func due(at now: EventTime) {
        if let failure {
            self.failure = nil
            report(.ended(failure, byServer: false), now)
        }
        connection?.deadlineReached(at: now)
        arm()
    }

    private func arm() { alarm?.deadline = failure == nil ? connection?.nextDeadline : .zero }
}
