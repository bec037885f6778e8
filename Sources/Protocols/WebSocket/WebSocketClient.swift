import WaypostCore

/// One WebSocket connection (RFC 6455), from the opening handshake to its end, over bytes that somebody else carries.
///
/// Its owner connects to the server, hands in what arrives, and writes what `nextOutput` returns, one piece after the
/// other. After `ended`, which comes once, it writes what there still is (a close frame at most) as far as the
/// connection takes it, and closes the connection. The machine keeps one incoming message, `unsentBytesMax` bytes of
/// outgoing ones, and an answer.
package struct WebSocketClient: Sendable {
    package struct Settings: Hashable, Sendable {
        package struct Header: Hashable, Sendable {
            package var name: String
            package var value: String

            package init(_ name: String, _ value: String) {
                self.name = name
                self.value = value
            }
        }

        /// As in the `Host` header: with the port, unless it is that of the scheme.
        package var host: String
        /// Path and query, from the `/` on.
        package var target: String
        package var headers: [Header] = []
        /// In the order of preference. The server may choose none of them.
        package var subprotocols: [String] = []
        /// Longest message that is taken from the server.
        package var messageBytesMax = 131_072
        /// A longer one is passed over without being kept, and reported as `oversized`; else it ends the connection.
        package var skipsOversizedMessages = false
        /// What may wait to be sent.
        package var unsentBytesMax = 262_144
        /// For the answer to the opening handshake.
        package var openingLimit = Duration.seconds(10)
        /// A silence of the server this long is answered with a ping; nil = never.
        package var pingAfter: Duration? = .seconds(300)
        /// For the answer to a ping; anything that the server sends is one.
        package var pongLimit = Duration.seconds(30)
        /// For the answer to our close frame.
        package var closeLimit = Duration.seconds(5)

        package init(host: String, target: String) {
            self.host = host
            self.target = target
        }
    }

    package enum Event: Hashable, Sendable {
        /// The handshake is done, and messages may be sent.
        ///
        /// - Parameter subprotocol: what the server chose; nil = none.
        case opened(subprotocol: String?)
        case text(String)
        case binary([UInt8])
        /// A message was too long.
        case oversized
        case ended(Ending)
    }

    package enum Ending: Hashable, Sendable {
        /// The server answered the handshake with another status than 101.
        case refused(WebSocketRefusal)
        /// - Parameters:
        ///   - byServer: it began.
        ///   - code: nil where its frame has none.
        case closed(byServer: Bool, code: WebSocketCloseCode?, reason: String)
        case violation(WebSocketViolation)
        case noAnswer(to: Question)
        /// The connection ended without a close frame.
        case lost
    }

    /// What the server has to answer in time.
    package enum Question: Hashable, Sendable {
        case handshake
        case ping
        case close
    }

    private enum State {
        /// The handshake is not answered: leaves to `open`, or to `ended`.
        case opening(until: EventTime)
        /// Leaves to `closing` with `close`, to `ended` with a close frame of the server, a violation, silence or loss.
        case open
        /// We said that we close: leaves to `ended` with the answer, or without one at the limit.
        case closing(until: EventTime)
        case ended
    }

    private struct Message {
        var opcode: WebSocketOpcode
        var payload: [UInt8]
    }

    private let settings: Settings
    private let handshake: WebSocketHandshake
    private var state: State
    private var head = ReceivedBytes()
    /// As far as the end of the head was looked for.
    private var headSearched = 0
    private var reader: WebSocketReader
    private var lastHeard: EventTime
    /// When the unanswered ping was due.
    private var pinged: EventTime?

    // What is to be written, in the order in which it goes out.
    private var isRequestUnsent = true
    /// Of the newest ping: the others need no answer (RFC 6455, 5.5.3), so that a server that does not read cannot make
    /// us keep many.
    private var pong: [UInt8]?
    private var isPingUnsent = false
    private var messages: ArraySlice<Message> = []
    private var closeFrame: [UInt8]?
    /// Payload of the messages that no `nextOutput` has returned yet.
    package private(set) var unsentBytes = 0

    /// - Parameter nonce: random.
    /// - Throws: when the settings would not make a request.
    package init(
        _ settings: Settings, nonce: InlineArray<16, UInt8>, at now: EventTime
    ) throws(WebSocketSetupError) {
        self.settings = settings
        handshake = try WebSocketHandshake(settings, nonce: nonce)
        reader = WebSocketReader(
            messageBytesMax: settings.messageBytesMax, skipsOversized: settings.skipsOversizedMessages)
        state = .opening(until: now + settings.openingLimit)
        lastHeard = now
    }

    /// When `deadlineReached` is wanted; nil = never.
    package var nextDeadline: EventTime? {
        switch state {
        case .opening(let limit), .closing(let limit): limit
        case .open: pinged.map { $0 + settings.pongLimit } ?? settings.pingAfter.map { lastHeard + $0 }
        case .ended: nil
        }
    }

    /// The next piece to write: the handshake, or one frame; nil = there is nothing.
    ///
    /// - Parameter mask: fresh random bits for each call.
    package mutating func nextOutput(mask: UInt32) -> [UInt8]? {
        if isRequestUnsent {
            isRequestUnsent = false
            return handshake.request
        }
        if let payload = pong {
            pong = nil
            return WebSocketFrame.bytes(.pong, payload, mask: mask)
        }
        if isPingUnsent {
            isPingUnsent = false
            return WebSocketFrame.bytes(.ping, [], mask: mask)
        }
        if let message = messages.popFirst() {
            unsentBytes -= message.payload.count
            return WebSocketFrame.bytes(message.opcode, message.payload, mask: mask)
        }
        if let payload = closeFrame {
            closeFrame = nil
            return WebSocketFrame.bytes(.close, payload, mask: mask)
        }
        return nil
    }
}

// What its owner wants.
extension WebSocketClient {
    /// - Returns: whether it is taken: false before `opened`, after `close`, and while too much waits already.
    package mutating func send(text: String) -> Bool { send(.text, Array(text.utf8)) }

    /// - Returns: as of `send(text:)`.
    package mutating func send(binary: [UInt8]) -> Bool { send(.binary, binary) }

    private mutating func send(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> Bool {
        guard case .open = state, payload.count <= settings.unsentBytesMax - unsentBytes else { return false }
        messages.append(Message(opcode: opcode, payload: payload))
        unsentBytes += payload.count
        return true
    }

    /// Ends the connection after what waits to be sent. Before `opened` it ends at once.
    ///
    /// - Parameters:
    ///   - code: one that a frame may have.
    ///   - reason: cut after 123 bytes.
    package mutating func close(
        _ code: WebSocketCloseCode = .normal, reason: String = "", at now: EventTime
    ) -> [Event] {
        switch state {
        case .opening: return end(.closed(byServer: false, code: nil, reason: ""))
        case .open:
            closeFrame = Self.closePayload(code, reason)
            state = .closing(until: now + settings.closeLimit)
            return []
        case .closing, .ended: return []
        }
    }

    private static func closePayload(_ code: WebSocketCloseCode, _ reason: String) -> [UInt8] {
        precondition(code.mayBeSent, "a close code that stands in no frame")
        return [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
            + reason.cut(toBytes: WebSocketFrameHeader.controlBytesMax - 2).utf8
    }
}

// What happens to the connection.
extension WebSocketClient {
    package mutating func received(_ bytes: ArraySlice<UInt8>, at now: EventTime) -> [Event] {
        if case .ended = state { return [] }
        guard !bytes.isEmpty else { return [] }
        lastHeard = max(lastHeard, now)
        pinged = nil
        isPingUnsent = false
        if case .opening = state {
            head.append(bytes)
            return takeHead()
        }
        reader.append(bytes)
        return takeItems()
    }

    package mutating func connectionLost(at now: EventTime) -> [Event] {
        if case .ended = state { return [] }
        return end(.lost)
    }

    package mutating func deadlineReached(at now: EventTime) -> [Event] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        switch state {
        case .opening: return end(.noAnswer(to: .handshake))
        case .closing: return end(.noAnswer(to: .close))
        case .open where pinged != nil: return end(.noAnswer(to: .ping))
        case .open:
            pinged = now
            isPingUnsent = true
            return []
        case .ended: return []
        }
    }

    private mutating func takeHead() -> [Event] {
        guard let length = headLength() else {
            guard head.count > WebSocketHandshake.headBytesMax else { return [] }
            return end(.violation(WebSocketViolation(.protocolError, "the answer to the handshake has no end")))
        }
        do throws(WebSocketHandshake.Failure) {
            let subprotocol = try handshake.answered(head.take(length))
            state = .open
            reader.append(head.take(head.count))
            head = ReceivedBytes()
            return [.opened(subprotocol: subprotocol)] + takeItems()
        } catch {
            switch error {
            case .refused(var refusal):
                refusal.body = Array(head.take(min(head.count, WebSocketRefusal.bodyBytesMax)))
                return end(.refused(refusal))
            case .violation(let violation): return end(.violation(violation))
            }
        }
    }

    /// Bytes up to the first empty line, that included; nil when it has not come.
    private mutating func headLength() -> Int? {
        let end = min(head.count, WebSocketHandshake.headBytesMax)
        while headSearched + 4 <= end {
            if head[headSearched] == 0x0D, head[headSearched + 1] == 0x0A, head[headSearched + 2] == 0x0D,
                head[headSearched + 3] == 0x0A
            {
                return headSearched + 4
            }
            headSearched += 1
        }
        return nil
    }

    private mutating func takeItems() -> [Event] {
        var events: [Event] = []
        do throws(WebSocketViolation) {
            while let item = try reader.next() {
                switch item {
                case .text(let text): events.append(.text(text))
                case .binary(let bytes): events.append(.binary(bytes))
                case .oversized: events.append(.oversized)
                // A close frame is the last one.
                case .ping(let payload): if !isCloseSent { pong = payload }
                case .pong: break
                case .close(let code, let reason): return events + closeReceived(code, reason)
                }
            }
        } catch {
            return events + fail(error)
        }
        return events
    }

    private mutating func closeReceived(_ code: WebSocketCloseCode?, _ reason: String) -> [Event] {
        if isCloseSent { return end(.closed(byServer: false, code: code, reason: reason)) }
        let answer = code.map { Self.closePayload($0, "") } ?? []
        return end(.closed(byServer: true, code: code, reason: reason), saying: answer)
    }

    private mutating func fail(_ violation: WebSocketViolation) -> [Event] {
        end(.violation(violation), saying: isCloseSent ? nil : Self.closePayload(violation.code, ""))
    }

    private var isCloseSent: Bool { if case .closing = state { closeFrame == nil } else { false } }

    /// - Parameter close: what a last close frame contains; nil = there is none.
    private mutating func end(_ ending: Ending, saying close: [UInt8]? = nil) -> [Event] {
        state = .ended
        isRequestUnsent = false
        pong = nil
        isPingUnsent = false
        messages = []
        unsentBytes = 0
        closeFrame = close
        head = ReceivedBytes()
        reader = WebSocketReader(messageBytesMax: 0)
        return [.ended(ending)]
    }
}

/// The answer of a server that does not open a WebSocket.
package struct WebSocketRefusal: Hashable, Sendable {
    package let status: Int
    /// The field `Retry-After` as it was sent; nil when there was none.
    package let retryAfter: String?
    /// The beginning of its body, as far as that came with the head.
    package var body: [UInt8] = []

    static let bodyBytesMax = 512
}

/// The settings make no request.
package struct WebSocketSetupError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
}
