import WaypostCore

/// When a server is asked for its document of settings: now and then, and when an answer announces one.
struct DocumentPoll {
    /// Between two questions: the answer to each batch may announce a document.
    private static let pause = Duration.seconds(60)

    private let period: Duration
    /// When it is asked next; nil = never, since documents come by themselves.
    private(set) var next: EventTime?
    private var isUnderWay = false
    /// When an announcement may be followed again.
    private var mayFollowAt = EventTime.zero
    /// Questions in a row that were not answered.
    private var failures = 0
    /// The version that was announced last: of all, when the last question left, and when the last one left that was
    /// answered.
    private var announced: Int64 = 0
    private var askedFor: Int64 = 0
    private var answeredFor: Int64 = 0

    /// - Parameter period: between two questions that nothing announced.
    init(every period: Duration) { self.period = period }

    mutating func schedule(at instant: EventTime) { next = instant }

    /// The next question leaves no later, where any does.
    mutating func hurry(by instant: EventTime) { if let next { self.next = min(next, instant) } }

    /// The server has answered something else.
    /// - Parameters:
    ///   - version: that it announced; nil = none.
    ///   - isWanted: whether a document of this version would be judged.
    /// - Returns: whether to ask now.
    mutating func heard(_ version: Int64?, at now: EventTime, isWanted: (Int64) -> Bool) -> Bool {
        announced = version ?? announced
        guard announced != answeredFor, isWanted(announced) else { return false }
        guard mayFollowAt > now else { return true }
        hurry(by: mayFollowAt)
        return false
    }

    /// - Returns: whether a question may leave: none is under way.
    mutating func begin(at now: EventTime) -> Bool {
        guard next != nil, !isUnderWay else { return false }
        isUnderWay = true
        askedFor = announced
        // A server that announces and does not give is asked ever more rarely.
        mayFollowAt = now + Self.pause.doubled(failures, atMost: period)
        return true
    }

    mutating func ended(isAnswered: Bool) {
        isUnderWay = false
        if isAnswered { (answeredFor, failures) = (askedFor, 0) } else { failures += 1 }
    }
}
