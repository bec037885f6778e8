import Positioning

/// Which of several ways the batches of one cursor take: the endpoint itself (0), or one that stands in for it.
struct RouteChoice: Sendable {
    let count: Int
    private(set) var current: Int
    /// Attempts in a row that did not reach the server.
    private var misses = 0
    /// Ways that were left since a server was last reached.
    private var leftWays = 0
    /// When the endpoint itself is tried again.
    private var tryFirstAt: EventTime
    private var triesFirst = false
    /// The one that stood in before the endpoint itself was tried.
    private var previous = 0
    /// Before when the server of each way wants no request.
    private var rests: [EventTime]

    private static let missesMax = 5

    init(count: Int, route: Int, at now: EventTime) {
        self.count = max(1, count)
        current = (0..<self.count).contains(route) ? route : 0
        rests = [EventTime](repeating: .min, count: self.count)
        tryFirstAt = now + DeliverySchedule.probeInterval
    }

    /// Each way was tried, and none leads anywhere: it is not the server that is away.
    var allMissed: Bool { leftWays >= count }

    func rests(of route: Int) -> EventTime { rests[route] }

    /// Before when no batch is wanted while nothing is in flight: the endpoint itself may take over before that.
    var restsAtBoundary: EventTime {
        current == 0 ? rests[0] : min(rests[current], max(tryFirstAt, rests[0]))
    }

    /// The server of a way, nil = the present one, wants no request before this.
    mutating func rest(until instant: EventTime, of route: Int? = nil) {
        rests[route ?? current] = max(rests[route ?? current], instant)
    }

    /// A batch that was formed for this way goes out.
    mutating func take(_ route: Int, at now: EventTime) {
        guard route != current, rests.indices.contains(route) else { return }
        current = route
        misses = 0
        triesFirst = false
        tryFirstAt = now + DeliverySchedule.probeInterval
    }

    mutating func reached() {
        misses = 0
        leftWays = 0
        triesFirst = false
    }

    /// - Returns: whether another way is to be taken, for which all that is in flight is formed anew.
    mutating func missed(_ failure: TransportFailure, jitter: Double, at now: EventTime) -> Bool {
        switch failure {
        case .resolve, .connect, .timeout: misses += 1
        default: reached()
        }
        guard count > 1, misses >= (triesFirst ? 1 : Self.missesMax) else { return false }
        current = triesFirst ? previous : (current + 1) % count
        if current != 0, triesFirst || current == 1 { tryFirstAt = now + DeliverySchedule.probeDelay(jitter) }
        triesFirst = false
        misses = 0
        leftWays += 1
        return true
    }

    /// There is another link: each way may lead somewhere again.
    mutating func linkChanged() { leftWays = 0 }

    /// Nothing is in flight: the endpoint itself may take over.
    mutating func batchBoundaryReached(at now: EventTime) {
        guard current != 0, now >= max(tryFirstAt, rests[0]) else { return }
        previous = current
        current = 0
        misses = 0
        triesFirst = true
    }
}
