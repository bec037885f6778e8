import WaypostCore

/// One MQTT connection of a client, 5 or 3.1.1, over bytes that somebody else carries.
///
/// Its owner connects to the server, hands in what arrives, and writes what `takeOutput` returns. After `ended`, which
/// comes once, it writes what there still is (a DISCONNECT at most) as far as the connection takes it, and closes the
/// connection. The session is a clean one and nothing is ever sent again: what is unsettled at the end goes back to its
/// owner.
package struct MQTTClient: Sendable {
    package enum Event: Hashable, Sendable {
        /// Messages may be published.
        case connected(MQTTWelcome)
        /// The server answered a publish, named by its packet id.
        ///
        /// - Parameter detail: words of the server; nil when it has none.
        case settled(UInt16, MQTTReason, detail: String?)
        /// One reason for each filter.
        case subscribed(UInt16, [MQTTReason])
        /// One reason for each filter; none in 3.1.1.
        case unsubscribed(UInt16, [MQTTReason])
        case message(MQTTMessage)
        /// - Parameter unsettled: the packet ids of all publishes without an answer, in the order of sending. Nobody
        ///   knows whether the server has them.
        case ended(Ending, unsettled: [UInt16])
    }

    package enum Ending: Hashable, Sendable {
        /// The server refused to connect.
        case refused(MQTTReason, detail: String?)
        /// The server said that it ends the connection.
        case dismissed(MQTTReason, detail: String?)
        /// We did.
        case disconnected
        case defect(MQTTDefect)
        case noAnswer(to: Question)
        /// The connection ended without a word.
        case lost

        /// What it means for the endpoint; a loss means nothing but `retry`.
        package var meaning: MQTTMeaning {
            switch self {
            case .refused(let reason, _), .dismissed(let reason, _): reason.isError ? reason.meaning : .retry
            case .disconnected, .defect, .noAnswer, .lost: .retry
            }
        }
    }

    /// What the server has to answer in time.
    package enum Question: Hashable, Sendable {
        case connect
        case publish
        case subscribe
        case unsubscribe
        case ping
    }

    private enum State {
        /// CONNECT is not answered: leaves to `connected`, or to `ended`.
        case connecting(until: EventTime)
        /// Leaves to `ended` with a DISCONNECT of either side, a defect, silence or loss.
        case connected
        case ended
    }

    private struct Request {
        var id: UInt16
        var question: Question
        /// Topic filters of a subscription.
        var filters = 1
        var since: EventTime
        /// Its packet was taken to be written.
        var isTaken = false
    }

    /// Publishes of the server that it may have unanswered; what MQTT 5 is told.
    static let incomingMax = 20
    /// Of subscriptions and their ends.
    private static let subscribesMax = 8
    private static let filtersMax = 100
    /// With topic and properties still of a length that a packet can state.
    private static let payloadBytesMax = 268_000_000

    private let settings: Settings
    private var state: State
    private var reader: MQTTPacketReader
    private var output: [UInt8]
    private var welcome = MQTTWelcome()
    /// Unanswered, in the order of sending.
    private var requests: [Request] = []
    private var lastID: UInt16 = 0
    private var lastSent: EventTime
    private var lastHeard: EventTime
    /// When the unanswered PINGREQ was sent.
    private var pinged: EventTime?
    /// Acknowledgements in `output`.
    private var unsentAcknowledgements = 0

    /// - Throws: when the settings make no CONNECT.
    package init(_ settings: Settings, at now: EventTime) throws(MQTTSetupError) {
        if let problem = settings.problem { throw MQTTSetupError(description: problem) }
        self.settings = settings
        state = .connecting(until: now + settings.connectLimit)
        reader = MQTTPacketReader(settings.version, packetBytesMax: settings.packetBytesMax)
        output = MQTTClientPacket.connect(settings).bytes(settings.version)
        lastSent = now
        lastHeard = now
    }

    /// Publishes that may be sent now and wait for an answer.
    package var room: Int {
        guard case .connected = state else { return 0 }
        return max(0, welcome.window - requests.count { $0.question == .publish })
    }

    /// Publishes that may be unanswered at a time; 0 before CONNACK.
    package var window: Int { welcome.window }

    /// Packets that the server has not answered, without pings.
    package var unanswered: Int { requests.count }

    /// What is to be written next, which is empty when there is nothing.
    package mutating func takeOutput() -> [UInt8] {
        defer {
            output = []
            unsentAcknowledgements = 0
        }
        wasWritten()
        return output
    }

    /// The server may have all that was wanted up to now: before, it can answer nothing of that.
    mutating func wasWritten() { for index in requests.indices { requests[index].isTaken = true } }

    /// When `deadlineReached` is wanted; nil = never.
    package var nextDeadline: EventTime? {
        switch state {
        case .connecting(let limit): limit
        case .connected: [answerDeadline, pingDeadline].compactMap { $0 }.min()
        case .ended: nil
        }
    }

    /// When the last packet of either side went over the connection.
    package var lastPacketAt: EventTime { max(lastSent, lastHeard) }

    /// What the server has not answered for longest was sent then; nil = it owes nothing.
    package var unansweredSince: EventTime? { [requests.first?.since, pinged].compactMap { $0 }.min() }

    private var answerDeadline: EventTime? { unansweredSince.map { $0 + settings.answerLimit } }

    /// A server may close after one and a half of the interval in which it heard nothing. We also ask when we heard
    /// nothing for as long, because messages of QoS 0 would go into a dead connection for ever.
    private var pingDeadline: EventTime? {
        guard welcome.keepAlive > 0, pinged == nil else { return nil }
        return min(lastSent, lastHeard) + .seconds(Int64(welcome.keepAlive))
    }
}

/// What the server takes, from its CONNACK.
package struct MQTTWelcome: Hashable, Sendable {
    /// Publishes that may be unanswered at a time.
    package fileprivate(set) var window = 0
    /// Seconds; 0 = none.
    package fileprivate(set) var keepAlive: UInt16 = 0
    package fileprivate(set) var qosMax = MQTTQoS.atLeastOnce
    package fileprivate(set) var canRetain = true
    /// Longest packet that it takes.
    package fileprivate(set) var packetBytesMax = Int.max
    /// The client id that it gave us; nil = the one of the settings.
    package fileprivate(set) var clientID: String?
}

/// Why something is not sent. The connection goes on.
package enum MQTTRefusal: Error, Hashable, Sendable {
    case notConnected
    /// As many are unanswered as may be.
    case windowFull
    /// The topic or a property is not possible: words for people.
    case impossible(String)
    /// The server would not take the packet.
    case tooLarge(bytes: Int, bytesMax: Int)
    case qosUnsupported
    case retainUnsupported
}

// What its owner wants.
extension MQTTClient {
    /// - Returns: the packet id, by which `settled` names it; nil with QoS 0, of which nothing more is heard.
    package mutating func publish(_ message: MQTTMessage, at now: EventTime) throws(MQTTRefusal) -> UInt16? {
        guard case .connected = state else { throw .notConnected }
        if let problem = message.problem { throw .impossible(problem) }
        guard message.qos.rawValue <= welcome.qosMax.rawValue else { throw .qosUnsupported }
        guard !message.isRetained || welcome.canRetain else { throw .retainUnsupported }
        guard message.qos == .atLeastOnce else {
            try queue(.publish(message, id: nil), at: now)
            return nil
        }
        guard room > 0 else { throw .windowFull }
        let id = unusedID()
        try queue(.publish(message, id: id), at: now)
        requests.append(Request(id: id, question: .publish, since: now))
        invariant(id > 0, "a packet without a number")
        invariant(Set(requests.map(\.id)).count == requests.count, "two packets have the number \(id)")
        invariant(requests.count { $0.question == .publish } <= welcome.window, "more publishes than the broker takes")
        return id
    }

    /// - Returns: the packet id, by which `subscribed` names it.
    package mutating func subscribe(
        _ subscriptions: [MQTTSubscription], at now: EventTime
    ) throws(MQTTRefusal) -> UInt16 {
        try ask(.subscribe, subscriptions.map(\.filter), at: now) { .subscribe(id: $0, subscriptions) }
    }

    /// - Returns: the packet id, by which `unsubscribed` names it.
    package mutating func unsubscribe(_ filters: [String], at now: EventTime) throws(MQTTRefusal) -> UInt16 {
        try ask(.unsubscribe, filters, at: now) { .unsubscribe(id: $0, filters) }
    }

    /// Ends the connection. The server publishes the will only `withWill`, which 3.1.1 does not have: there the
    /// connection then just ends.
    package mutating func disconnect(withWill: Bool = false) -> [Event] {
        guard !hasEnded else { return [] }
        if case .connected = state, !withWill || settings.version == .v5 {
            output += MQTTClientPacket.disconnect(withWill ? .disconnectWithWill : .success).bytes(settings.version)
        }
        return end(.disconnected)
    }

    private mutating func ask(
        _ question: Question, _ filters: [String], at now: EventTime, _ packet: (UInt16) -> MQTTClientPacket
    ) throws(MQTTRefusal) -> UInt16 {
        guard case .connected = state else { throw .notConnected }
        guard (1...Self.filtersMax).contains(filters.count) else {
            throw .impossible("there are \(filters.count) topic filters; 1 to \(Self.filtersMax) are possible")
        }
        for filter in filters {
            if let problem = MQTTTopic.problem(ofFilter: filter) { throw .impossible(problem) }
        }
        guard requests.count(where: { $0.question != .publish }) < Self.subscribesMax else { throw .windowFull }
        let id = unusedID()
        try queue(packet(id), at: now)
        requests.append(Request(id: id, question: question, filters: filters.count, since: now))
        invariant(Set(requests.map(\.id)).count == requests.count, "two packets have the number \(id)")
        invariant(
            requests.count { $0.question != .publish } <= Self.subscribesMax, "more subscriptions than may be open")
        return id
    }

    private mutating func queue(_ packet: MQTTClientPacket, at now: EventTime) throws(MQTTRefusal) {
        // Before the bytes are made, of which the length must have a form.
        if case .publish(let message, _) = packet, message.payload.count > Self.payloadBytesMax {
            throw .tooLarge(bytes: message.payload.count, bytesMax: Self.payloadBytesMax)
        }
        let bytes = packet.bytes(settings.version)
        guard bytes.count <= welcome.packetBytesMax else {
            throw .tooLarge(bytes: bytes.count, bytesMax: welcome.packetBytesMax)
        }
        output += bytes
        lastSent = now
    }

    private mutating func unusedID() -> UInt16 {
        repeat { lastID = lastID == .max ? 1 : lastID + 1 } while requests.contains { $0.id == lastID }
        return lastID
    }
}

// What happens to the connection.
extension MQTTClient {
    package mutating func received(_ bytes: ArraySlice<UInt8>, at now: EventTime) -> [Event] {
        guard !hasEnded, !bytes.isEmpty else { return [] }
        lastHeard = max(lastHeard, now)
        reader.append(bytes)
        var events: [Event] = []
        do throws(MQTTDefect) {
            while !hasEnded, let packet = try reader.next() { events += try take(packet, at: now) }
        } catch {
            events += fail(error)
        }
        return events
    }

    package mutating func connectionLost(at now: EventTime) -> [Event] { hasEnded ? [] : end(.lost) }

    package mutating func deadlineReached(at now: EventTime) -> [Event] {
        if case .connecting(let limit) = state { return limit <= now ? end(.noAnswer(to: .connect)) : [] }
        guard case .connected = state else { return [] }
        if let answerDeadline, answerDeadline <= now {
            let isPing = pinged.map { $0 + settings.answerLimit == answerDeadline } == true
            let question = isPing ? .ping : requests.first?.question ?? .ping
            output += dismissal(.unspecified)
            return end(.noAnswer(to: question))
        }
        if let pingDeadline, pingDeadline <= now {
            output += MQTTClientPacket.pingreq.bytes(settings.version)
            lastSent = now
            pinged = now
        }
        return []
    }

    private mutating func take(_ packet: MQTTServerPacket, at now: EventTime) throws(MQTTDefect) -> [Event] {
        if case .connecting = state {
            guard case .connack(let isSessionPresent, let reason, let properties) = packet else {
                throw MQTTDefect(.protocolError, "another packet before CONNACK")
            }
            return try answeredConnect(isSessionPresent, reason, properties)
        }
        switch packet {
        case .connack: throw MQTTDefect(.protocolError, "a second CONNACK")
        case .publish(let message, let id, _, _):
            if let id { try acknowledge(id, at: now) }
            return [.message(message)]
        case .puback(let id, let reason, let properties):
            _ = try removeRequest(id, .publish, "PUBACK")
            return [.settled(id, reason, detail: properties.detail)]
        case .suback(let id, let reasons, _):
            let request = try removeRequest(id, .subscribe, "SUBACK")
            guard reasons.count == request.filters else {
                throw MQTTDefect(.protocolError, "a SUBACK with another number of reasons than filters")
            }
            return [.subscribed(id, reasons)]
        case .unsuback(let id, let reasons, _):
            let request = try removeRequest(id, .unsubscribe, "UNSUBACK")
            guard settings.version == .v3 || reasons.count == request.filters else {
                throw MQTTDefect(.protocolError, "an UNSUBACK with another number of reasons than filters")
            }
            return [.unsubscribed(id, reasons)]
        case .pingresp:
            guard pinged != nil else { throw MQTTDefect(.protocolError, "a PINGRESP that nobody asked for") }
            pinged = nil
            return []
        case .disconnect(let reason, let properties):
            return end(.dismissed(reason, detail: properties.detail))
        }
    }

    private mutating func answeredConnect(
        _ isSessionPresent: Bool, _ reason: MQTTReason, _ properties: MQTTProperties
    ) throws(MQTTDefect) -> [Event] {
        guard reason == .success else { return end(.refused(reason, detail: properties.detail)) }
        guard !isSessionPresent else {
            throw MQTTDefect(.protocolError, "an old session, although a clean one was asked for")
        }
        welcome = MQTTWelcome(settings, properties)
        state = .connected
        return [.connected(welcome)]
    }

    private mutating func acknowledge(_ id: UInt16, at now: EventTime) throws(MQTTDefect) {
        // The server cannot have seen any of these: what it sends on without them has to end somewhere.
        guard unsentAcknowledgements < (settings.version == .v5 ? Self.incomingMax : Int(UInt16.max)) else {
            throw MQTTDefect(.receiveMaximumExceeded, "more unanswered messages than we take")
        }
        unsentAcknowledgements += 1
        output += MQTTClientPacket.puback(id: id).bytes(settings.version)
        lastSent = now
    }

    private mutating func removeRequest(
        _ id: UInt16, _ question: Question, _ name: String
    ) throws(MQTTDefect) -> Request {
        guard let place = requests.firstIndex(where: { $0.id == id && $0.question == question }) else {
            throw MQTTDefect(.protocolError, "\(name) \(id), for which there was no question")
        }
        guard requests[place].isTaken else {
            throw MQTTDefect(.protocolError, "\(name) \(id) before it could have the question")
        }
        return requests.remove(at: place)
    }

    private var hasEnded: Bool { if case .ended = state { true } else { false } }

    private mutating func fail(_ defect: MQTTDefect) -> [Event] {
        output += dismissal(defect.reason)
        return end(.defect(defect))
    }

    /// Only MQTT 5 can say why, and only to a server that has accepted us.
    private func dismissal(_ reason: MQTTReason) -> [UInt8] {
        guard case .connected = state, settings.version == .v5 else { return [] }
        return MQTTClientPacket.disconnect(reason).bytes(.v5)
    }

    private mutating func end(_ ending: Ending) -> [Event] {
        let unsettled = requests.filter { $0.question == .publish }.map(\.id)
        state = .ended
        requests = []
        reader = MQTTPacketReader(settings.version, packetBytesMax: 0)
        return [.ended(ending, unsettled: unsettled)]
    }
}

extension MQTTWelcome {
    fileprivate init(_ settings: MQTTClient.Settings, _ properties: MQTTProperties) {
        window = min(settings.windowMax, Int(properties.number(.receiveMaximum) ?? UInt32(UInt16.max)))
        // A server that wants none does not close a silent connection, but it may be dead all the same.
        keepAlive =
            properties.number(.serverKeepAlive).map { UInt16(truncatingIfNeeded: $0) }.flatMap { $0 > 0 ? $0 : nil }
            ?? settings.keepAlive
        if properties.number(.maximumQoS) == 0 { qosMax = .atMostOnce }
        canRetain = properties.number(.retainAvailable) != 0
        packetBytesMax = properties.number(.maximumPacketSize).map { Int($0) } ?? .max
        clientID = properties.text(.assignedClientID)
    }
}

extension MQTTProperties {
    /// What the server says about a reason, of a length that can be kept.
    fileprivate var detail: String? {
        let parts = [text(.reasonString), text(.serverReference).map { "it names \($0)" }].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: "; ").cut(toBytes: 256)
    }
}
