import Profiles
import WaypostCore

/// The server of a fleet: how long it takes to answer, and what.
struct FleetServer {
    enum Trouble {
        case refuses
        case silent
        case answers(status: Int, after: Duration?)
    }

    struct Answer {
        var at: EventTime
        var verdict: Verdict
        /// The connection can be used again.
        var keepsConnection: Bool
    }

    private let trouble: (kind: Trouble, from: EventTime, to: EventTime)?
    /// Seconds that each request costs it.
    private let cost: Double
    /// When it has answered all that it took.
    private var busyUntil = EventTime.zero

    /// Longest wait for its turn, in seconds.
    private static let patience = 10.0

    init(capacity: Double?, trouble: (kind: Trouble, from: EventTime, to: EventTime)? = nil) {
        cost = capacity.map { 1 / max($0, 0.001) } ?? 0
        self.trouble = trouble
    }

    /// Whether it accepts connections.
    func listens(at now: EventTime) -> Bool {
        guard let trouble, now >= trouble.from, now < trouble.to else { return true }
        if case .answers = trouble.kind { return true }
        return false
    }

    /// - Parameters:
    ///   - latency: of the network and an idle server, in seconds.
    ///   - timeout: when the device gives up.
    mutating func answer(latency: Double, timeout: Duration, at now: EventTime) -> Answer {
        if let trouble, now >= trouble.from, now < trouble.to {
            switch trouble.kind {
            case .refuses:
                return Answer(
                    at: now.later(latency), verdict: .retry(.transport(.connect("refused")), after: nil),
                    keepsConnection: false)
            case .silent:
                return Answer(
                    at: now + timeout, verdict: .retry(.transport(.timeout("no answer")), after: nil),
                    keepsConnection: false)
            case .answers(let status, let after):
                return Answer(
                    at: now.later(latency), verdict: .retry(.status(status), after: after), keepsConnection: true)
            }
        }
        let wait = max(0, busyUntil.seconds(since: now))
        guard wait <= Self.patience else {
            return Answer(at: now.later(latency), verdict: .retry(.status(503), after: nil), keepsConnection: true)
        }
        busyUntil = max(busyUntil, now).later(cost)
        return Answer(at: now.later(latency + wait + cost), verdict: .accepted, keepsConnection: true)
    }
}

extension EventTime {
    func later(_ seconds: Double) -> EventTime { advanced(byNanoseconds: Int64(seconds * 1e9)) }
}
