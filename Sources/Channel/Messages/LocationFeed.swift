import Profiles
import WaypostCore

/// When the locations of one trackable become messages of one name, one in flight at a time.
///
/// Its owner calls `next` when rows were queued, when a message was answered, when the channel works again, and at
/// `nextDeadline`; publishes what it gets; and reports what became of it. The cursor is the owner's to store: rows up to
/// it are done with.
package struct LocationFeed: Sendable {
    private struct Turn {
        /// nil = the last location again, for a viewer who has just come.
        var choice: LocationChoice?
        var message: ChannelMessage
        var passed: Int
        var isRepeated = false
        var isHalved = false
    }

    private enum State {
        case idle
        /// Leaves with the answer: to `idle`, to `waiting`, or back to itself where it is sent again.
        case inFlight(Turn)
        /// Leaves to `inFlight` with the next message after this instant.
        case waiting(until: EventTime)
    }

    /// The service keeps the last message this long for viewers who come later.
    package static let rewind = Duration.seconds(120)
    /// Where the channel does not take messages now.
    private static let pause = Duration.seconds(1)

    private let queue: String
    private let name: ChannelMessage.Name
    private let backoff: Backoff
    private var state = State.idle
    /// Number of the newest row that is done with.
    package private(set) var cursor: Int64
    /// Rows up to this one ride along only: as locations of their own they were refused.
    private var joined: Int64
    private var failures = 0
    /// The service has refused more as too large.
    private var skippedMax = ChannelMessage.skippedMax
    /// What viewers saw last; nil = nothing.
    package private(set) var last: ChannelFeature?
    private var lastPublished: EventTime?
    private var isWantedAgain = false
    private var repeats = 0

    /// Rows that were too many to ride along. Other endpoints still carry them.
    package private(set) var passed = 0
    /// Rows that say nothing of their accuracy.
    package private(set) var withoutAccuracy = 0
    /// Locations that even alone made no message that the service or viewers would take.
    package private(set) var dropped = 0

    /// - Parameters:
    ///   - queue: names the queue in the ids of messages, without a colon.
    ///   - lastKnown: published before the start; nil = none.
    ///   - lastPublished: when that was; nil = long ago.
    package init(
        queue: String, name: ChannelMessage.Name, cursor: Int64, lastKnown: ChannelFeature? = nil,
        lastPublished: EventTime? = nil,
        backoff: Backoff = Backoff()
    ) {
        self.queue = queue
        self.name = name
        self.cursor = cursor
        self.backoff = backoff
        joined = cursor
        last = lastKnown
        self.lastPublished = lastPublished
    }

    /// When `next` is wanted although nothing happens; nil = never.
    package var nextDeadline: EventTime? { if case .waiting(let until) = state { until } else { nil } }

    /// The id of the message that is not answered; nil = there is none.
    package var inFlight: String? { if case .inFlight(let turn) = state { turn.message.id } else { nil } }

    /// - Parameters:
    ///   - rows: of the trackable, in the order of the queue, the newest included. Those up to the cursor do not matter.
    ///   - bytesMax: what the service takes (`ChannelClient.messageBytesMax`).
    /// - Returns: what is to be published now; nil = nothing.
    package mutating func next(_ rows: [QueuedLocation], bytesMax: Int, at now: EventTime) -> ChannelMessage? {
        if case .inFlight = state { return nil }
        if case .waiting(let until) = state, now < until { return nil }
        state = .idle
        let open = rows.filter { $0.seq > cursor }.map(asRider)
        guard let choice = LocationChoice(open) else {
            passUnfit(open)
            return repeated(bytesMax: bytesMax)
        }
        let message = ChannelMessage(
            id: id(choice.head), name: name, feature: choice.feature, skipped: choice.skipped.suffix(skippedMax),
            bytesMax: bytesMax)
        guard let message else {
            drop(choice, passed: choice.passed + choice.skipped.count)
            return nil
        }
        let tooMany = choice.skipped.count - message.skippedCount
        state = .inFlight(Turn(choice: choice, message: message, passed: choice.passed + tooMany))
        return message
    }

    private func asRider(_ row: QueuedLocation) -> QueuedLocation {
        guard row.seq <= joined else { return row }
        var row = row
        row.location.published = false
        return row
    }

    private func id(_ seq: Int64) -> String {
        // Both names share a channel, and so its memory of ids.
        "\(queue)-\(seq)" + (name == .raw ? "-raw" : "")
    }

    /// The oldest rows, if they can ride in no message either, would be looked at for ever.
    private mutating func passUnfit(_ rows: [QueuedLocation]) {
        let unfit = rows.prefix { ChannelFeature($0.location) == nil }
        withoutAccuracy += unfit.count
        cursor = unfit.last?.seq ?? cursor
    }

    private mutating func drop(_ choice: LocationChoice, passed more: Int) {
        dropped += 1
        isDone(choice, passed: more)
    }

    private mutating func isDone(_ choice: LocationChoice, passed more: Int) {
        cursor = max(cursor, choice.head)
        passed += more
        withoutAccuracy += choice.withoutAccuracy
        state = .idle
    }

    private mutating func repeated(bytesMax: Int) -> ChannelMessage? {
        guard isWantedAgain, let last else { return nil }
        isWantedAgain = false
        repeats += 1
        // An id of its own: the service would take the message for a resend.
        let message = ChannelMessage(
            id: "\(id(cursor))-again-\(repeats)", name: name, feature: last, skipped: [], bytesMax: bytesMax)
        guard let message else { return nil }
        state = .inFlight(Turn(choice: nil, message: message, passed: 0))
        return message
    }
}

// What became of a message, and who came.
extension LocationFeed {
    /// The service has it.
    package mutating func acknowledged(at now: EventTime) {
        guard case .inFlight(let turn) = state else { return }
        state = .idle
        failures = 0
        lastPublished = now
        isWantedAgain = false
        guard let choice = turn.choice else { return }
        last = choice.feature
        isDone(choice, passed: turn.passed)
    }

    /// - Parameter jitter: 0 ≤ jitter < 1.
    /// - Returns: what is to be published again now, under the same id; nil = the location rides along with the next.
    package mutating func refused(_ error: ChannelError, jitter: Double, at now: EventTime) -> ChannelMessage? {
        guard case .inFlight(var turn) = state else { return nil }
        if error.isTooLarge { return halved(&turn, jitter: jitter, at: now) }
        if error.isRetriable, !error.isRateLimit, !turn.isRepeated {
            turn.isRepeated = true
            state = .inFlight(turn)
            return turn.message
        }
        ridesAlong(turn, jitter: jitter, at: now)
        return nil
    }

    /// It was not sent, or its connection is gone for good: the next message is formed anew.
    package mutating func unsent(at now: EventTime) {
        guard case .inFlight(let turn) = state else { return }
        if turn.choice == nil { isWantedAgain = true }
        state = .waiting(until: now + Self.pause)
    }

    /// A viewer who comes later than the service keeps the last message would see nothing before the next one.
    package mutating func viewerArrived(at now: EventTime) {
        if lastPublished.map({ now >= $0 + Self.rewind }) ?? true { isWantedAgain = true }
    }

    private mutating func halved(_ turn: inout Turn, jitter: Double, at now: EventTime) -> ChannelMessage? {
        guard let choice = turn.choice, turn.message.skippedCount > 0 else {
            if let choice = turn.choice { drop(choice, passed: turn.passed) } else { state = .idle }
            return nil
        }
        skippedMax = turn.message.skippedCount / 2
        let smaller = ChannelMessage(
            id: turn.message.id, name: name, feature: choice.feature, skipped: choice.skipped.suffix(skippedMax),
            bytesMax: .max)
        guard let smaller, !turn.isHalved else {
            ridesAlong(turn, jitter: jitter, at: now)
            return nil
        }
        turn.passed += turn.message.skippedCount - smaller.skippedCount
        turn.message = smaller
        turn.isHalved = true
        state = .inFlight(turn)
        return smaller
    }

    private mutating func ridesAlong(_ turn: Turn, jitter: Double, at now: EventTime) {
        if let choice = turn.choice { joined = max(joined, choice.head) } else { isWantedAgain = true }
        failures += 1
        state = .waiting(until: now + backoff.delay(failures: failures, jitter: jitter))
    }
}
