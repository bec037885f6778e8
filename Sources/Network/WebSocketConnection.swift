import Profiles
import Protocols
import WaypostCore

/// A WebSocket over a real connection. The loop drives it as it drives `HTTPUplink`; it may be opened again after its end.
package final class WebSocketConnection {
    package enum Event: Hashable, Sendable {
        /// Messages may be sent.
        ///
        /// - Parameter subprotocol: what the server chose; nil = none.
        case opened(subprotocol: String?)
        case text(String)
        case binary([UInt8])
        /// A message was too long to be read.
        case oversized
        /// The server has answered, and does not open a WebSocket.
        case refused(TransportFailure)
        /// - Parameter byServer: it had been open, and the other side ended it.
        case ended(TransportFailure, byServer: Bool)
    }

    private let random: () -> UInt32
    private let report: (Event, EventTime) -> Void
    private var settings: WebSocketClient.Settings
    private var live: LiveConnection!
    private var machine: WebSocketClient?
    private var isOpen = false
    /// More waits than may: told from the loop.
    private var isOverfull = false
    private var now = EventTime.zero
    package private(set) var peerAddress: String?
    /// Connections, and bytes of WebSocket in both directions.
    package private(set) var counters = HTTPUplink.Counters()

    /// - Parameters:
    ///   - url: `http://host:port` or `https://host:port`.
    ///   - random: of the system.
    ///   - isClockTrusted, watch: as of `HTTPUplink`.
    ///   - report: called only from inside `descriptorReady` and `deadlineReached`.
    /// - Throws: when libcurl does not start.
    package init(
        _ url: String, _ settings: WebSocketClient.Settings, tls: TLSSettings?, transport: HTTPUplink.Settings,
        isClockTrusted: @escaping () -> Bool, random: @escaping () -> UInt32,
        watch: @escaping (Int32, HTTPUplink.Interest?) -> Void, report: @escaping (Event, EventTime) -> Void
    ) throws(HTTPUplink.SetupError) {
        self.settings = settings
        self.random = random
        self.report = report
        live = try LiveConnection(
            url: url, tls: tls, settings: transport, isClockTrusted: isClockTrusted, watch: watch
        ) { [unowned self] in take($0) }
    }

    package var nextDeadline: EventTime? {
        isOverfull ? .zero : [live.nextDeadline, machine?.nextDeadline].compactMap { $0 }.min()
    }

    /// Bytes that wait to be sent: `Settings.unsentBytesMax` at most, beside what a frame adds to its payload.
    package var unsentBytes: Int { (machine?.unsentBytes ?? 0) + live.unsentBytes }

    /// Begins to connect.
    ///
    /// - Parameter target: path and query, which may contain secrets; nil = as before.
    package func open(target: String? = nil) {
        if let target { settings.target = target }
        live.open()
    }

    /// Sends a message. Where too much waits already, since the server does not read, the connection ends: the messages after this
    /// one would mean something else without it.
    package func send(text: String) { send(text.utf8.count) { $0.send(text: text) } }

    /// As `send(text:)`.
    package func send(binary: [UInt8]) { send(binary.count) { $0.send(binary: binary) } }

    private func send(_ count: Int, _ message: (inout WebSocketClient) -> Bool) {
        guard isOpen, !isOverfull, machine != nil else { return }
        let isTaken = unsentBytes + count <= settings.unsentBytesMax && message(&machine!)
        if !isTaken { isOverfull = true }
        flush()
    }

    /// See `LiveConnection.linksChanged`.
    package func linksChanged() { live.linksChanged() }

    /// Ends it without a report.
    package func close() {
        flush()
        (machine, isOpen, isOverfull) = (nil, false, false)
        live.close()
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {
        self.now = now
        live.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
    }

    package func deadlineReached(at now: EventTime) {
        self.now = now
        if isOverfull { return end(.timeout("the server does not read what is sent over WebSocket")) }
        live.deadlineReached(at: now)
        if let events = machine?.deadlineReached(at: now) { take(events) }
        flush()
    }

    /// What the connection does not take at once stays in the machine, whose limit then counts.
    private func flush() {
        while live.unsentBytes == 0, let piece = machine?.nextOutput(mask: random()) {
            counters.bytesSent += piece.count
            live.send(piece)
        }
    }

    private func take(_ event: LiveConnection.Event) {
        switch event {
        case .opened(let peer):
            peerAddress = peer ?? peerAddress
            counters.connections += 1
            begin()
        case .received(let bytes):
            counters.bytesReceived += bytes.count
            take(machine?.received(bytes[...], at: now) ?? [])
            flush()
        case .written: flush()
        case .ended(let failure): end(failure)
        }
    }

    private func begin() {
        var nonce = InlineArray<16, UInt8>(repeating: 0)
        for index in nonce.indices { nonce[index] = UInt8(truncatingIfNeeded: random()) }
        do throws(WebSocketSetupError) {
            machine = try WebSocketClient(settings, nonce: nonce, at: now)
            flush()
        } catch {
            end(.broken(error.description))
        }
    }

    private func take(_ events: [WebSocketClient.Event]) {
        for event in events {
            switch event {
            case .opened(let subprotocol):
                isOpen = true
                report(.opened(subprotocol: subprotocol), now)
            case .text(let text): report(.text(text), now)
            case .binary(let bytes): report(.binary(bytes), now)
            case .oversized: report(.oversized, now)
            case .ended(let ending): end(ending.failure, isAnswer: ending.isAnswer)
            }
        }
    }

    /// - Parameter isAnswer: the server has said something that is not WebSocket.
    private func end(_ failure: TransportFailure, isAnswer: Bool = false) {
        let wasOpen = isOpen
        close()
        report(isAnswer && !wasOpen ? .refused(failure) : .ended(failure, byServer: wasOpen), now)
    }
}

extension WebSocketClient.Ending {
    fileprivate var isAnswer: Bool {
        switch self {
        case .refused, .violation: true
        case .closed, .noAnswer, .lost: false
        }
    }

    fileprivate var failure: TransportFailure {
        switch self {
        case .refused(let refusal):
            .connect(
                "the server refuses the WebSocket: status \(refusal.status)"
                    + (ServerWords.first(of: refusal.body, status: refusal.status).map { " (\($0))" } ?? ""))
        case .closed(_, _, let reason):
            .closedWithoutReply("the server closed the WebSocket\(reason.isEmpty ? "" : ": \(reason.prefix(100))")")
        case .violation(let violation): .broken("the server broke the protocol of WebSocket: \(violation.words)")
        case .noAnswer: .timeout("no answer of the server over WebSocket in time")
        case .lost: .closedWithoutReply("the server closed the connection")
        }
    }
}
