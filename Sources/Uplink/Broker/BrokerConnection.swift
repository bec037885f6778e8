import Delivery
import Live
import Positioning

/// A broker over a real connection: plain or TLS, with WebSocket or without. The loop drives it as it drives `HTTPUplink`.
package final class BrokerConnection {
    private let address: BrokerAddress
    private let random: () -> UInt32
    private var link: BrokerLink
    private var live: LiveConnection!
    private var webSocket: WebSocketClient?
    /// The bytes of MQTT may go out: there is no WebSocket, or it is open.
    private var isReady = false
    private var peerAddress: String?
    private var completions: [Int: (UplinkOutcome) -> Void] = [:]
    /// Since the last outcome.
    private var sent = 0
    private var received = 0
    private var isNew = false
    private var now = EventTime.zero
    /// Of all its life.
    package private(set) var counters = HTTPUplink.Counters()

    /// - Parameters:
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
        self.address = address
        self.random = random
        link = BrokerLink(session, jitter: jitter)
        live = try LiveConnection(
            url: address.connectURL, tls: tls, settings: settings, isClockTrusted: isClockTrusted, watch: watch
        ) { [unowned self] event in take(event) }
    }

    package var nextDeadline: EventTime? {
        [live.nextDeadline, link.nextDeadline, webSocket?.nextDeadline].compactMap { $0 }.min()
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

    package func cancel(_ number: Int) {
        completions[number] = nil
        link.cancel(number)
    }

    package func reconnect(at now: EventTime) {
        self.now = now
        link.reconnect(at: now)
        obey()
    }

    /// Leaves the broker, without calling back.
    /// - Returns: who would have been called.
    @discardableResult
    package func close() -> [(UplinkOutcome) -> Void] {
        defer { completions = [:] }
        let waiting = completions.values
        link.end()
        obey()
        live.close()
        return Array(waiting)
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {
        self.now = now
        live.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
        finish()
    }

    package func deadlineReached(at now: EventTime) {
        self.now = now
        live.deadlineReached(at: now)
        if let events = webSocket?.deadlineReached(at: now) { take(events) }
        link.deadlineReached(at: now)
        obey()
        finish()
    }

    private func finish() {
        for outcome in link.takeOutcomes() {
            guard let completion = completions.removeValue(forKey: outcome.number) else { continue }
            counters.requests += 1
            let (sent, received, isNew) = (self.sent, self.received, self.isNew)
            (self.sent, self.received, self.isNew) = (0, 0, false)
            completion(
                UplinkOutcome(
                    outcome.result, bytesSent: sent, bytesReceived: received, newConnection: isNew,
                    peerAddress: peerAddress))
        }
    }
}

// Between the protocol and the connection.
extension BrokerConnection {
    private func obey() {
        for command in link.takeCommands() {
            switch command {
            case .connect: live.open()
            case .write(let bytes): write(bytes)
            case .close:
                webSocket = nil
                isReady = false
                live.close()
            }
        }
    }

    private func write(_ bytes: [UInt8]) {
        guard webSocket != nil else { return transmit(bytes) }
        // What does not fit ends in silence, and so in another connection.
        _ = webSocket?.send(binary: bytes)
        writeFrames()
    }

    private func writeFrames() {
        while let piece = webSocket?.nextOutput(mask: random()) { transmit(piece) }
    }

    private func transmit(_ bytes: [UInt8]) {
        sent += bytes.count
        counters.bytesSent += bytes.count
        live.send(bytes)
    }

    private func take(_ event: LiveConnection.Event) {
        switch event {
        case .opened(let peer):
            peerAddress = peer ?? peerAddress
            isNew = true
            counters.connections += 1
            beginProtocol()
        case .received(let bytes):
            received += bytes.count
            counters.bytesReceived += bytes.count
            if webSocket != nil {
                take(webSocket?.received(bytes[...], at: now) ?? [])
                writeFrames()
            } else {
                link.received(bytes[...], at: now)
            }
        case .written: break
        case .ended(let failure):
            webSocket = nil
            isReady = false
            link.lost(failure, at: now)
        }
        obey()
    }

    private func beginProtocol() {
        guard let target = address.webSocketTarget else { return link.opened(at: now) }
        let host = address.connectURL.split(separator: "/").last.map(String.init) ?? ""
        var settings = WebSocketClient.Settings(host: host, target: target)
        settings.subprotocols = ["mqtt"]
        // MQTT asks by itself.
        settings.pingAfter = nil
        var nonce = InlineArray<16, UInt8>(repeating: 0)
        for index in nonce.indices { nonce[index] = UInt8(truncatingIfNeeded: random()) }
        do throws(WebSocketSetupError) {
            webSocket = try WebSocketClient(settings, nonce: nonce, at: now)
            writeFrames()
        } catch {
            live.close()
            link.lost(.broken(error.description), at: now)
        }
    }

    private func take(_ events: [WebSocketClient.Event]) {
        for event in events {
            switch event {
            case .opened(let subprotocol):
                guard subprotocol == "mqtt" else {
                    return endWebSocket(.broken("the server does not speak MQTT over this WebSocket"))
                }
                link.opened(at: now)
            case .binary(let bytes): link.received(bytes[...], at: now)
            case .text: endWebSocket(.broken("the broker sent text over WebSocket"))
            case .ended(let ending): endWebSocket(ending.failure)
            }
            obey()
        }
    }

    private func endWebSocket(_ failure: TransportFailure) {
        writeFrames()
        webSocket = nil
        live.close()
        link.lost(failure, at: now)
    }
}

extension WebSocketClient.Ending {
    fileprivate var failure: TransportFailure {
        switch self {
        case .refused(let refusal): .connect("the server refuses the WebSocket: status \(refusal.status)")
        case .closed(_, _, let reason):
            .closedWithoutReply("the server closed the WebSocket\(reason.isEmpty ? "" : ": \(reason.prefix(100))")")
        case .violation(let violation): .broken("the server broke the protocol of WebSocket: \(violation.words)")
        case .noAnswer: .timeout("no answer of the server over WebSocket in time")
        case .lost: .closedWithoutReply("the server closed the connection")
        }
    }
}
