import WaypostCore

/// What all channels of a connection share: the numbered frames, their limit, and what is to be done.
struct ChannelLine: Sendable {
    private(set) var unanswered = UnansweredFrames()
    private var limit = SendLimit()
    /// Number of the oldest frame without an answer when it was found to be overdue.
    private var overdueSerial: Int64?
    /// An answer takes a moment where there is a connection.
    private static let answerLimit = Duration.seconds(60)
    private var effects: [ChannelClient.Effect] = []
    var connectionID: String?
    /// As the service knows us.
    var clientID: String
    /// Items of presence that say nothing that we know.
    var ignoredItems = 0

    init(clientID: String) { self.clientID = clientID }

    /// When a numbered frame may go out.
    var nextTurn: EventTime { limit.next }

    mutating func report(_ effect: ChannelClient.Effect) { effects.append(effect) }

    mutating func takeEffects() -> [ChannelClient.Effect] {
        defer { effects = [] }
        return effects
    }

    mutating func send(_ frame: ClientFrame) { report(.send(frame)) }

    /// - Returns: the number of the frame.
    @discardableResult
    mutating func send(
        _ body: UnansweredFrames.Body, of trackable: String, isAfterRenewal: Bool = false, at now: EventTime
    ) -> Int64 {
        let serial = unanswered.append(body, of: trackable, isAfterRenewal: isAfterRenewal, at: now)
        limit.sent(at: now)
        send(frame(body, of: trackable, serial: serial))
        return serial
    }

    /// Presence is not sent while so much waits for answers.
    var hasRoom: Bool { !unanswered.areTooMany }

    /// The trackable of a frame that the service does not answer, though there is a connection; nil = it answers.
    var overdue: String? { unanswered.oldest.flatMap { $0.serial == overdueSerial ? $0.trackable : nil } }

    /// When the oldest frame without an answer becomes overdue; nil = it is, or there is none.
    var answerDeadline: EventTime? {
        unanswered.oldest.flatMap { $0.serial == overdueSerial ? nil : $0.sentAt + Self.answerLimit }
    }

    mutating func deadlineReached(at now: EventTime) {
        if let deadline = answerDeadline, deadline <= now { overdueSerial = unanswered.oldest?.serial }
    }

    /// A message goes out another way.
    mutating func limited(at now: EventTime) { limit.sent(at: now) }

    /// The service lost the connection, but not our place: it may not have had them.
    mutating func sendAgain(at now: EventTime) {
        unanswered.sentAgain(at: now)
        overdueSerial = nil
        for entry in unanswered.all {
            limit.sent(at: now)
            send(frame(entry.body, of: entry.trackable, serial: entry.serial))
        }
    }

    private func frame(_ body: UnansweredFrames.Body, of trackable: String, serial: Int64) -> ClientFrame {
        let channel = TrackedChannel.name(of: trackable)
        return switch body {
        case .message(let message): .message(channel: channel, serial: serial, message)
        case .presence(let action, let id, let data):
            .presence(channel: channel, serial: serial, action, id: id, data: data)
        }
    }

    mutating func answered(
        from serial: Int64, count: Int64
    ) -> (passedOver: [UnansweredFrames.Entry], named: [UnansweredFrames.Entry]) {
        unanswered.answered(from: serial, count: count)
    }

    mutating func forgetUnanswered() -> [UnansweredFrames.Entry] { unanswered.removeAll() }

    mutating func restart() -> [UnansweredFrames.Entry] {
        overdueSerial = nil
        return unanswered.restart()
    }

    /// - Parameter id: of a message; nothing for presence, which its channel follows itself.
    mutating func settle(_ entry: UnansweredFrames.Entry, _ outcome: ChannelClient.Outcome) {
        guard case .message(let message) = entry.body else { return }
        report(.settled(trackable: entry.trackable, message.name, id: message.id, outcome))
    }
}
