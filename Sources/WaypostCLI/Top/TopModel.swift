import WaypostControl
import WaypostCore

/// What `waypost top` knows: the last replies, what follows from several of them, and what the user pressed.
///
/// Pure: replies, keys and time come in as arguments.
struct TopModel {
    /// What has to be done about a key.
    enum Order {
        case quit
        case flush
    }

    /// No daemon answers.
    struct Absence: Equatable {
        var since: UTCTime
        var problem: String
    }

    private struct Count {
        /// Monotonic seconds.
        var at: Double
        var fixes: Int
        var kept: Int
    }

    /// One a second for as many columns as a line may have.
    private static let speedsMax = 240
    /// Rates are over ten seconds.
    private static let countsMax = 11
    /// Seconds without a fix after which that is worth a word.
    private static let fixAgeMax = 5.0
    private static let endpointsOfAPage = 10
    private static let decisionsMax = 20
    /// Seconds for which an answer to the user stands on the last line.
    private static let messageSeconds = 15.0

    private(set) var status: Status?
    private(set) var look: Look?
    /// m/s, one for each poll, the newest last; nil = none was known.
    private(set) var speeds: [Double?] = []
    private(set) var absence: Absence?
    /// The newest first.
    private(set) var decisions: [DecisionLook] = []
    private(set) var isPaused = false
    private(set) var showsAllEndpoints = false
    /// How many endpoints the user has scrolled past.
    private(set) var endpointsAbove = 0
    /// A flush is to be confirmed.
    private(set) var asksForFlush = false
    private var counts: [Count] = []
    private var messageShown: (text: String, at: Double)?

    /// For the user, instead of the keys.
    func message(at seconds: Double) -> String? {
        if asksForFlush { return "flush: write to disk and send everything now?  y yes  n no" }
        return messageShown.flatMap { seconds - $0.at < Self.messageSeconds ? $0.text : nil }
    }

    mutating func show(_ message: String, at seconds: Double) { messageShown = (message, seconds) }

    /// - Parameters:
    ///   - look: nil = the daemon does not know the verb.
    ///   - seconds: monotonic.
    mutating func answered(_ status: Status, _ look: Look?, at seconds: Double) {
        let count = Count(at: seconds, fixes: Self.judged(status.motion), kept: status.motion.kept)
        // It has been started again: its counters begin at zero.
        if let last = counts.last, count.fixes < last.fixes || count.kept < last.kept { counts = [] }
        counts.append(count)
        if counts.count > Self.countsMax { counts.removeFirst() }
        self.status = status
        self.look = look
        speeds.append(presentFix?.speed)
        if speeds.count > Self.speedsMax { speeds.removeFirst() }
        scroll(by: 0)
        decisions = Array(((look?.decisions ?? []) + decisions).prefix(Self.decisionsMax))
        if absence != nil { show("the daemon answers again", at: seconds) }
        absence = nil
    }

    /// The last fix, unless it is too old to say how things are now.
    var presentFix: FixLook? { look?.fix.flatMap { isPresent($0.age) ? $0 : nil } }

    /// - Parameter age: of a fix, in seconds.
    func isPresent(_ age: Double) -> Bool {
        // A receiver that is asked for few gives few.
        age <= max(Self.fixAgeMax, 2 * Double(status?.source.rate?.measured ?? 0) / 1000)
    }

    private mutating func scroll(by endpoints: Int) {
        endpointsAbove = max(0, min(endpointsAbove + endpoints, (status?.endpoints.count ?? 0) - 1))
    }

    /// Fixes that reached tracking. The receiver's own count runs ahead where a file is the source.
    private static func judged(_ motion: MotionStatus) -> Int {
        motion.rejected.entries.reduce(motion.admitted) { $0 &+ $1.value }
    }

    /// A new connection: what the daemon counts may have begun anew, and it says everything again.
    mutating func connected() { decisions = [] }

    /// The newest decision that is known, for the next request.
    var lastDecision: Int? { decisions.first?.number }

    mutating func failed(_ problem: String, at now: UTCTime) {
        absence = Absence(since: absence?.since ?? now, problem: problem)
        counts = []
    }

    mutating func pressed(_ key: Terminal.Key) -> Order? {
        if asksForFlush {
            asksForFlush = false
            return key == .character("y") ? .flush : nil
        }
        messageShown = nil
        switch key {
        case .character("q"): return .quit
        case .character("p"), .character(" "): isPaused.toggle()
        case .character("e"):
            showsAllEndpoints.toggle()
            endpointsAbove = 0
        case .character("f"): asksForFlush = true
        case .up: scroll(by: -1)
        case .down: scroll(by: 1)
        case .pageUp: scroll(by: -Self.endpointsOfAPage)
        case .pageDown: scroll(by: Self.endpointsOfAPage)
        case .character: break
        }
        return nil
    }

    /// Fixes a second; nil until two replies are known.
    var fixRate: Double? { rate(\.fixes) }
    /// Locations kept a second.
    var keptRate: Double? { rate(\.kept) }

    private func rate(_ count: KeyPath<Count, Int>) -> Double? {
        guard let first = counts.first, let last = counts.last, last.at > first.at else { return nil }
        return (Double(last[keyPath: count]) - Double(first[keyPath: count])) / (last.at - first.at)
    }
}
