import Protocols
import WaypostCore

/// A broker over a real connection: plain or TLS, with WebSocket or without. The loop drives it as it drives `HTTPUplink`.
package final class BrokerConnection {
    /// What carries the bytes of MQTT.
    private enum Carrier {
        case plain(LiveConnection)
        case webSocket(WebSocketConnection)
    }

    private var link: BrokerLink
    private var carrier: Carrier!
    private var peerAddress: String?
    private var completions: [Int: (UplinkOutcome) -> Void] = [:]
    /// Takes what the broker says without being asked.
    package var hear: (BrokerNews) -> Void = { _ in }
    /// Since the last outcome.
    private var recent = HTTPUplink.Counters()
    private var now = EventTime.zero
    /// Of all its life.
    package private(set) var counters = HTTPUplink.Counters()

    /// - Parameters:
    ///   - url: `mqtt://`, `mqtts://`, `ws://` or `wss://`.
    ///   - random: of the system.
    ///   - jitter: 0 ≤ jitter < 1, of the system.
    ///   - isClockTrusted, watch: as of `HTTPUplink`.
    /// - Throws: when the URL is not that of a broker, or libcurl does not start.
    package init(
        _ url: String, session: BrokerSession, tls: TLSSettings?, settings: HTTPUplink.Settings,
        isClockTrusted: @escaping () -> Bool = { true }, random: @escaping () -> UInt32,
        jitter: @escaping () -> Double, watch: @escaping (Int32, HTTPUplink.Interest?) -> Void
    ) throws(HTTPUplink.SetupError) {
        guard let address = BrokerAddress(url) else {
            throw HTTPUplink.SetupError(description: "the address is not that of a broker")
        }
        link = BrokerLink(session, jitter: jitter)
        guard let target = address.webSocketTarget else {
            carrier = .plain(
                try LiveConnection(
                    url: address.connectURL, tls: tls, settings: settings, isClockTrusted: isClockTrusted, watch: watch
                ) { [unowned self] in take($0) })
            return
        }
        var webSocket = WebSocketClient.Settings(host: address.authority, target: target)
        webSocket.subprotocols = ["mqtt"]
        // MQTT asks by itself, and bounds what is unanswered.
        webSocket.pingAfter = nil
        webSocket.unsentBytesMax = .max
        carrier = .webSocket(
            try WebSocketConnection(
                address.connectURL, webSocket, tls: tls, transport: settings, isClockTrusted: isClockTrusted,
                random: random, watch: watch
            ) { [unowned self] event, _ in take(event) })
    }

    package var nextDeadline: EventTime? {
        // What has ended inside `send` or `cancel` is reported from the loop.
        if link.hasReports { return .zero }
        let carried =
            switch carrier! {
            case .plain(let live): live.nextDeadline
            case .webSocket(let webSocket): webSocket.nextDeadline
            }
        return [carried, link.nextDeadline].compactMap { $0 }.min()
    }

    package func send(
        _ request: UplinkRequest, number: Int, at now: EventTime, _ completion: @escaping (UplinkOutcome) -> Void
    ) {
        guard let broker = request.broker else { return }
        self.now = now
        completions[number] = completion
        link.send(broker, number: number, limit: request.timeout, at: now)
        obey()
    }

    package func cancel(_ number: Int, at now: EventTime) {
        self.now = now
        completions[number] = nil
        link.cancel(number, at: now)
        obey()
    }

    package func reconnect(_ cause: ReconnectCause, at now: EventTime) {
        self.now = now
        link.reconnect(cause, at: now)
        obey()
    }

    /// See `LiveConnection.linksChanged`.
    package func linksChanged() {
        switch carrier! {
        case .plain(let live): live.linksChanged()
        case .webSocket(let webSocket): webSocket.linksChanged()
        }
    }

    /// Ends the connection for one with another session, without calling back.
    /// - Returns: who is to be called, with what the broker has answered.
    package func replace(at now: EventTime) -> [() -> Void] {
        link.replaced(at: now)
        let ended = link.takeOutcomes().compactMap { outcome in
            completions.removeValue(forKey: outcome.number).map { completion in
                let outcome = report(outcome.result)
                return { completion(outcome) }
            }
        }
        close()
        return ended
    }

    /// Leaves the broker, without calling back.
    package func close() {
        completions = [:]
        link.end()
        obey()
        closeCarrier()
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {
        self.now = now
        switch carrier! {
        case .plain(let live): live.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
        case .webSocket(let webSocket):
            webSocket.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
        }
        // After all that has come: one piece, and one system call, for what the answers make room for.
        obey()
        finish()
    }

    package func deadlineReached(at now: EventTime) {
        self.now = now
        switch carrier! {
        case .plain(let live): live.deadlineReached(at: now)
        case .webSocket(let webSocket): webSocket.deadlineReached(at: now)
        }
        link.deadlineReached(at: now)
        obey()
        finish()
    }

    private func finish() {
        for news in link.takeNews() { hear(news) }
        for outcome in link.takeOutcomes() {
            guard let completion = completions.removeValue(forKey: outcome.number) else { continue }
            completion(report(outcome.result))
        }
    }

    private func report(_ result: UplinkOutcome.Result) -> UplinkOutcome {
        counters.requests += 1
        let carried = recent
        recent = HTTPUplink.Counters()
        var outcome = UplinkOutcome(
            result, bytesSent: carried.bytesSent, bytesReceived: carried.bytesReceived,
            newConnection: carried.connections > 0, peerAddress: peerAddress)
        outcome.reconnectsAt = link.restsUntil
        return outcome
    }
}

// Between the protocol and what carries it.
extension BrokerConnection {
    private func obey() {
        for command in link.takeCommands() {
            switch (command, carrier!) {
            case (.connect, .plain(let live)): live.open()
            case (.connect, .webSocket(let webSocket)): webSocket.open()
            case (.write(let bytes), .plain(let live)):
                count { $0.bytesSent += bytes.count }
                live.send(bytes)
            case (.write(let bytes), .webSocket(let webSocket)):
                count { $0.bytesSent += bytes.count }
                webSocket.send(binary: bytes)
            case (.close, _): closeCarrier()
            }
        }
    }

    private func closeCarrier() {
        switch carrier! {
        case .plain(let live): live.close()
        case .webSocket(let webSocket): webSocket.close()
        }
    }

    private func count(_ change: (inout HTTPUplink.Counters) -> Void) {
        change(&counters)
        change(&recent)
    }

    private func take(_ event: LiveConnection.Event) {
        switch event {
        case .opened(let peer): opened(peer)
        case .received(let bytes): received(bytes)
        case .written: break
        case .ended(let failure): link.lost(failure, at: now)
        }
    }

    private func take(_ event: WebSocketConnection.Event) {
        guard case .webSocket(let webSocket) = carrier else { return }
        switch event {
        case .opened(subprotocol: "mqtt"): opened(webSocket.peerAddress)
        case .opened: breakOff(webSocket, .broken("the server does not speak MQTT over this WebSocket"))
        case .text: breakOff(webSocket, .broken("the broker sent text over WebSocket"))
        case .oversized: break
        case .binary(let bytes): received(bytes)
        case .refused(let failure), .ended(let failure, _): link.lost(failure, at: now)
        }
    }

    private func breakOff(_ webSocket: WebSocketConnection, _ failure: TransportFailure) {
        webSocket.close()
        link.lost(failure, at: now)
    }

    private func opened(_ peer: String?) {
        peerAddress = peer ?? peerAddress
        count { $0.connections += 1 }
        link.opened(at: now)
    }

    private func received(_ bytes: [UInt8]) {
        count { $0.bytesReceived += bytes.count }
        link.received(bytes[...], at: now)
    }
}
