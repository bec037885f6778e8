import Protocols
import WaypostCore

/// Which of several routes the batches of one cursor use: the endpoint itself (0), or a backup.
struct RouteChoice: Sendable {
    let count: Int
    private(set) var current: Int
    /// Attempts in a row that did not reach the server.
    private var misses = 0
    /// Routes that were abandoned since a server was last reached.
    private var abandoned = 0
    /// When the endpoint itself is tried again.
    private var tryFirstAt: EventTime
    private var triesFirst = false
    /// The backup in use before the endpoint itself was tried.
    private var previous = 0
    /// The time before which the server of each route wants no request.
    private var rests: [EventTime]
    /// What is in flight has to be formed again for another route.
    private(set) var isChanging = false

    private static let missesMax = 5

    init(count: Int, route: Int, at now: EventTime) {
        self.count = max(1, count)
        current = (0..<self.count).contains(route) ? route : 0
        rests = [EventTime](repeating: .min, count: self.count)
        tryFirstAt = now + PauseDelay.longest
    }

    /// No route works, so the servers are not the cause.
    var allMissed: Bool { abandoned >= count }

    func rests(of route: Int) -> EventTime { rests[route] }

    /// The time before which no batch is wanted while nothing is in flight: the endpoint itself may take over before that.
    var restsAtBoundary: EventTime {
        current == 0 ? rests[0] : min(rests[current], max(tryFirstAt, rests[0]))
    }

    /// The server of a route, nil = the current one, wants no request before this.
    mutating func rest(until instant: EventTime, of route: Int? = nil) {
        rests[route ?? current] = max(rests[route ?? current], instant)
    }

    /// A batch that was formed for this route goes out.
    mutating func use(_ route: Int, at now: EventTime) {
        guard route != current, rests.indices.contains(route) else { return }
        current = route
        misses = 0
        triesFirst = false
        tryFirstAt = now + PauseDelay.longest
    }

    mutating func reached() {
        misses = 0
        abandoned = 0
        triesFirst = false
    }

    /// - Returns: whether another route is used from now on, for which all that is in flight is formed again.
    mutating func missed(_ failure: TransportFailure, jitter: Double, at now: EventTime) -> Bool {
        switch failure {
        case .resolve, .connect, .unreachable, .timeout: misses += 1
        // It says nothing about the server.
        case .moved: break
        case .tls, .clock, .closedWithoutReply, .broken, .credential: reached()
        }
        guard count > 1, misses >= (triesFirst ? 1 : Self.missesMax) else { return false }
        current = triesFirst ? previous : (current + 1) % count
        if current != 0, triesFirst || current == 1 { tryFirstAt = now + PauseDelay.spread(PauseDelay.longest, jitter) }
        triesFirst = false
        misses = 0
        abandoned += 1
        isChanging = true
        return true
    }

    /// What was in flight is being formed again.
    mutating func changed() { isChanging = false }

    /// There is another link: each route may work again.
    mutating func linkChanged() { abandoned = 0 }

    /// Nothing is in flight: the endpoint itself may take over.
    mutating func batchBoundaryReached(at now: EventTime) {
        guard current != 0, now >= max(tryFirstAt, rests[0]) else { return }
        previous = current
        current = 0
        misses = 0
        triesFirst = true
    }
}

extension RouteChoice {
    /// What holds between two calls.
    func checkInvariants() {
        invariant((0..<count).contains(current), "route \(current) of \(count)")
        invariant(rests.count == count, "\(rests.count) rests for \(count) routes")
        invariant(misses >= 0 && (count == 1 || misses <= Self.missesMax), "\(misses) misses")
        invariant(abandoned >= 0, "\(abandoned) routes were left")
        invariant((0..<count).contains(previous), "route \(previous) of \(count) was in use before")
        invariant(count > 1 || current == 0 && !isChanging, "the only route changes")
    }
}
