import WaypostCore

/// The way to the service by single requests, for networks that let no WebSocket through. Messages arrive by it, and it is
/// asked who watches; nobody can be present by it.
struct RequestRoute: Sendable {
    private struct Question {
        let host: String
        let trackable: String
        /// nil = who watches.
        let message: ChannelMessage?
    }

    /// What an answer says.
    enum Answer {
        case present(trackable: String, [PresenceItem], unreadItems: Int)
        /// The service does not say who is there.
        case unseen(trackable: String, ChannelError)
        case settled(ChannelMessage, trackable: String, ChannelClient.Outcome)
    }

    /// How often it is asked who watches.
    static let pollEvery = Duration.seconds(30)
    /// The service has 200 on a channel at most: there is no second page.
    private static let membersMax = 1000

    private var hosts: HostChoice
    private var questions: [Int: Question] = [:]
    private var lastNumber = 0
    /// When it was asked last who watches; nil = it is asked at once.
    private var askedAt: EventTime?
    /// The service was reached by it.
    private(set) var isOpen = false

    init(_ settings: ChannelClient.Settings) {
        hosts = HostChoice(primary: settings.host, fallbacks: settings.fallbackHosts)
    }

    /// When `poll` is wanted; nil = with the next attempt to connect, which wakes the host anyway.
    var nextDeadline: EventTime? { isOpen ? askedAt.map { $0 + Self.pollEvery } : nil }

    /// - Returns: messages that are not answered.
    mutating func end() -> [(message: ChannelMessage, trackable: String)] {
        defer { questions = [:] }
        askedAt = nil
        isOpen = false
        hosts.restart()
        return questions.sorted { $0.key < $1.key }.compactMap {
            guard let message = $0.value.message else { return nil }
            return (message, $0.value.trackable)
        }
    }

    func isCarrying(_ name: ChannelMessage.Name, of trackable: String) -> Bool {
        questions.values.contains { $0.trackable == trackable && $0.message?.name == name }
    }

    private func isAsking(_ trackable: String) -> Bool {
        questions.values.contains { $0.trackable == trackable && $0.message == nil }
    }

    /// Asks who watches, when it is time: there is no connection, and none is to be expected soon.
    ///
    /// - Parameter credential: nil = nothing can be asked now.
    mutating func poll(
        _ trackables: [String], _ credential: ChannelCredential?, _ line: inout ChannelLine, at now: EventTime
    ) {
        // Attempts to connect are up to 30 s apart.
        let gap = isOpen ? Self.pollEvery : Self.pollEvery / 2
        guard askedAt.map({ $0 + gap <= now }) ?? true else { return }
        askedAt = now
        guard let credential else { return }
        for trackable in trackables where !isAsking(trackable) {
            ask("/presence?limit=\(Self.membersMax)", of: trackable, posting: nil, credential, &line)
        }
    }

    mutating func publish(
        _ message: ChannelMessage, of trackable: String, _ credential: ChannelCredential, _ line: inout ChannelLine,
        at now: EventTime
    ) {
        line.limited(at: now)
        ask("/messages", of: trackable, posting: message, credential, &line)
    }

    private mutating func ask(
        _ what: String, of trackable: String, posting message: ChannelMessage?, _ credential: ChannelCredential,
        _ line: inout ChannelLine
    ) {
        lastNumber += 1
        questions[lastNumber] = Question(host: hosts.current, trackable: trackable, message: message)
        var body: [UInt8]?
        if let message {
            var writer = JSONWriter(reserving: message.data.utf8.count + 100)
            message.write(to: &writer)
            body = writer.bytes
        }
        let channel = String(percentEncoding: TrackedChannel.name(of: trackable).utf8)
        line.report(
            .request(
                ServiceRequest(
                    number: lastNumber, host: hosts.current, credential: credential,
                    target: "/channels/\(channel)\(what)", body: body)))
    }

    /// - Parameters:
    ///   - status: of HTTP; nil = the service was not reached.
    ///   - jitter: 0 ≤ jitter < 1.
    /// - Returns: nil for an answer that nobody waits for.
    mutating func answered(
        _ number: Int, status: Int?, _ body: [UInt8], jitter: Double
    ) -> Answer? {
        guard let question = questions.removeValue(forKey: number) else { return nil }
        let value = JSONReader.read(body, bytesMax: ServiceRequest.answerBytesMax)
        let isCut = body.count >= ServiceRequest.answerBytesMax
        let error = isCut ? Self.tooLong : Self.error(status, value)
        if let error, error.isUnreached {
            missed(question.host, jitter: jitter)
        } else {
            isOpen = true
            hosts.restart()
        }
        if let message = question.message {
            return .settled(message, trackable: question.trackable, error.map { .refused($0) } ?? .taken)
        }
        if let error { return .unseen(trackable: question.trackable, error) }
        let items = value?.items ?? []
        let read = items.enumerated().compactMap { PresenceItem($0.element, outer: .null, index: $0.offset) }
        return .present(trackable: question.trackable, read, unreadItems: items.count - read.count)
    }

    /// Another host may answer, and is asked at once.
    private mutating func missed(_ host: String, jitter: Double) {
        isOpen = false
        guard host == hosts.current else { return }
        if hosts.failed(jitter: jitter) { askedAt = nil } else { hosts.restart() }
    }

    /// The service was reached, but who is present is not known.
    private static let tooLong = ChannelError(
        statusCode: 413, message: "the list of viewers is longer than \(ServiceRequest.answerBytesMax) bytes")

    /// nil = the service did what it was asked. What is no JSON is of somebody in between.
    private static func error(_ status: Int?, _ value: JSONValue?) -> ChannelError? {
        guard let status, let value, value.items != nil || value.members != nil else { return .unanswered }
        guard !(200...299).contains(status) else { return nil }
        return ChannelError(value["error"]) ?? ChannelError(statusCode: status, message: "HTTP \(status)")
    }
}

extension ChannelError {
    /// Another host of the service may do it.
    fileprivate var isUnreached: Bool { statusCode == 0 || (500...504).contains(statusCode) }
}
