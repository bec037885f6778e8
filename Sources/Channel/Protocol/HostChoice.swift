/// Which host is tried next: the first one, then some of the others in random order.
struct HostChoice: Sendable {
    private static let fallbacksMax = 3

    private let primary: String
    private let fallbacks: [String]
    private var untried: [String] = []
    private var triedCount = 0
    private(set) var current: String

    init(primary: String, fallbacks: [String]) {
        self.primary = primary
        self.fallbacks = fallbacks
        untried = fallbacks
        current = primary
    }

    /// A new round begins.
    mutating func restart() {
        current = primary
        untried = fallbacks
        triedCount = 0
    }

    /// The current one did not answer.
    ///
    /// - Returns: whether there is another one in this round.
    mutating func failed(jitter: Double) -> Bool {
        guard !untried.isEmpty, triedCount < Self.fallbacksMax else { return false }
        triedCount += 1
        let index = min(untried.count - 1, Int(max(0, min(jitter, 1)) * Double(untried.count)))
        current = untried.remove(at: index)
        return true
    }
}
