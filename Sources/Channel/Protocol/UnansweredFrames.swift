import WaypostCore

/// Numbered frames that the service has not answered, in the order of sending.
struct UnansweredFrames: Sendable {
    enum Body: Hashable, Sendable {
        case message(ChannelMessage)
        case presence(PresenceAction, id: String?, data: String)
    }

    struct Entry: Hashable, Sendable {
        var serial: Int64
        var trackable: String
        var body: Body
        /// When it was sent last.
        var sentAt: EventTime
        /// It was refused for the token once already, which has been renewed.
        var isAfterRenewal = false
    }

    /// Beyond it the service answers nothing, and all would be sent again for ever.
    private static let countMax = 1000

    private var entries: ArraySlice<Entry> = []
    private var nextSerial: Int64 = 0

    var all: [Entry] { Array(entries) }

    var areTooMany: Bool { entries.count > Self.countMax }

    /// The service answers in order: all others wait for this one.
    var oldest: Entry? { entries.first }

    /// - Returns: its number.
    mutating func append(
        _ body: Body, of trackable: String, isAfterRenewal: Bool = false, at now: EventTime
    ) -> Int64 {
        defer { nextSerial += 1 }
        entries.append(
            Entry(
                serial: nextSerial, trackable: trackable, body: body, sentAt: now, isAfterRenewal: isAfterRenewal))
        return nextSerial
    }

    /// All of them go out once more.
    mutating func sentAgain(at now: EventTime) {
        for index in entries.indices { entries[index].sentAt = now }
    }

    /// Those that an answer names, and before them those that the service passed over: it answers in order.
    mutating func answered(from serial: Int64, count: Int64) -> (passedOver: [Entry], named: [Entry]) {
        let passedOver = Array(entries.prefix { $0.serial < serial })
        let (end, overflow) = serial.addingReportingOverflow(count)
        let named = Array(entries.dropFirst(passedOver.count).prefix { overflow || $0.serial < end })
        entries = entries.dropFirst(passedOver.count + named.count)
        invariant(
            zip(entries, entries.dropFirst()).allSatisfy { $0.serial < $1.serial }, "unanswered frames are in no order")
        invariant(entries.last.map { $0.serial < nextSerial } ?? true, "a frame has a number that was not given")
        invariant(nextSerial >= 0, "the next frame is \(nextSerial)")
        return (passedOver, named)
    }

    /// - Returns: all of them, which will never be answered.
    mutating func removeAll() -> [Entry] {
        defer { entries = [] }
        return Array(entries)
    }

    /// Another connection counts from 0.
    mutating func restart() -> [Entry] {
        nextSerial = 0
        return removeAll()
    }
}
