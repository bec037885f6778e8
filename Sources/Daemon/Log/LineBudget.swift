import WaypostCore

/// How many lines of one kind the log takes. What is withheld is counted.
struct LineBudget {
    enum Verdict: Hashable {
        /// - Parameter withheld: how many were withheld since the last one.
        case write(withheld: Int)
        case withhold
    }

    private var lines: TokenBucket
    private var withheld = 0

    /// A dozen at once, then one a minute.
    init() { lines = TokenBucket(burst: 12, refill: .seconds(60)) }

    private init(_ lines: TokenBucket) { self.lines = lines }

    /// Five at once, then one in ten minutes: for what somebody else can bring about as often as they like.
    static var ofOthers: LineBudget { LineBudget(TokenBucket(burst: 5, refill: .seconds(600))) }

    mutating func spend(at now: EventTime) -> Verdict {
        guard lines.take(at: now) == nil else {
            withheld += 1
            return .withhold
        }
        defer { withheld = 0 }
        return .write(withheld: withheld)
    }
}
