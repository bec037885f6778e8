import Synchronization

/// Passes the events of the intake to the pages that are open. Requests do not wait for a page: each page takes what it
/// has not seen when it is ready, and one that was away too long starts again with the whole state.
final class LiveFeed: Sendable {
    /// Pages that may be open at once.
    static let readersMax = 32
    static let historyBytes = 8 << 20

    typealias Chunk = (bytes: [UInt8], end: LiveHistory.Position)

    private struct State {
        let run: String
        /// UTC in milliseconds.
        let started: Int64
        var history: LiveHistory
        var devices = LiveDevices()
        /// Settings and commands of devices that have any, as events, by the name that is shown.
        var remotes: [String: [UInt8]] = [:]
        /// What `/stats` says, as JSON.
        var counters: [UInt8]
        var readers = 0
        /// Those that know all there is.
        var waiting: [(LiveHistory.Position, CheckedContinuation<Chunk, Never>)] = []

        /// Nil when there is nothing to say yet.
        func chunk(after position: LiveHistory.Position?, at now: Int64) -> Chunk? {
            if let position, history.knows(position) { return history.events(after: position) }
            let beginning = history.beginning
            let data = LiveEvents.reset(
                run: run, started: started, at: now, devices: devices, remotes: remotes, counters: counters)
            // A second is short for a person, and long for a collector that restarts.
            return (Array("retry: 1000\n".utf8) + LiveHistory.event("reset", data, at: beginning), beginning)
        }

        /// Who waits no longer, now that there is something to say.
        mutating func takeWaiting(at now: Int64) -> [(CheckedContinuation<Chunk, Never>, Chunk?)] {
            defer { waiting = [] }
            return waiting.map { ($1, chunk(after: $0, at: now)) }
        }
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - run: distinguishes this life of the collector from others; letters and digits.
    ///   - counters: of a collector to which nothing has come, as JSON.
    ///   - historyBytes: of the events that a page which comes back can still get.
    ///   - now: the wall clock, UTC in milliseconds.
    init(
        run: String, counters: String, historyBytes: Int = LiveFeed.historyBytes,
        now: @escaping @Sendable () -> Int64
    ) {
        self.now = now
        state = Mutex(
            State(
                run: run, started: now(), history: LiveHistory(run: run, bytesMax: historyBytes),
                counters: LiveEvents.line(counters)))
    }

    /// A request was answered.
    func received(_ request: LiveRequest, counters: String) {
        let counters = LiveEvents.line(counters)
        let at = now()
        let woken = state.withLock { state in
            state.counters = counters
            let total = state.devices.received(request, at: at)
            for part in LiveEvents.rows(request, at: at) { state.history.append("rows", part) }
            state.history.append("request", LiveEvents.request(request, at: at, total: total, counters: counters))
            return state.takeWaiting(at: at)
        }
        for case (let waiter, let chunk?) in woken { waiter.resume(returning: chunk) }
    }

    /// The settings or the commands of a device are others than before.
    func changed(_ remote: LiveRemote) {
        let at = now()
        let event = LiveEvents.remote(remote, at: at)
        let woken = state.withLock { state in
            state.remotes[remote.device] = event
            state.history.append("remote", event)
            return state.takeWaiting(at: at)
        }
        for case (let waiter, let chunk?) in woken { waiter.resume(returning: chunk) }
    }

    /// Shows pages that have heard nothing that the collector is alive. Writing is also how a closed page is noticed.
    func beat() {
        let beat = LiveHistory.event("beat", LiveEvents.beat(now()), at: nil)
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for (position, waiter) in waiting { waiter.resume(returning: (beat, position)) }
    }

    /// - Parameter id: what the page says it has seen last; nil or unknown: it starts with the whole state.
    /// - Returns: nil when there are too many already.
    func reader(after id: String?) -> LiveReader? {
        let isAdmitted = state.withLock { state in
            guard state.readers < Self.readersMax else { return false }
            state.readers += 1
            return true
        }
        return isAdmitted ? LiveReader(feed: self, position: id.flatMap(LiveHistory.Position.init)) : nil
    }

    fileprivate func readerLeft() { state.withLock { $0.readers -= 1 } }

    /// Waits until there is something to say.
    fileprivate func next(after position: LiveHistory.Position?) async -> Chunk {
        let at = now()
        return await withCheckedContinuation { continuation in
            let ready: Chunk? = state.withLock { state in
                if let chunk = state.chunk(after: position, at: at) { return chunk }
                if let position { state.waiting.append((position, continuation)) }
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }
}

/// The place of one open page in the feed.
final class LiveReader: Sendable {
    private let feed: LiveFeed
    private let position: Mutex<LiveHistory.Position?>

    fileprivate init(feed: LiveFeed, position: LiveHistory.Position?) {
        self.feed = feed
        self.position = Mutex(position)
    }

    deinit { feed.readerLeft() }

    func next() async -> [UInt8] {
        let chunk = await feed.next(after: position.withLock { $0 })
        position.withLock { $0 = chunk.end }
        return chunk.bytes
    }
}
