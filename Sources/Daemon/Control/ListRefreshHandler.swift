import Places
import WaypostControl
import WaypostCore
import WaypostHost

/// Handles `fence-refresh`: asks servers for their lists, and answers once they have.
final class ListRefreshHandler {
    /// A client that waits for servers.
    private final class Waiter {
        let ticket: ControlTicket
        let until: EventTime
        var sources: [FenceRefreshRequest.Reply.Source]
        /// In the same order.
        let lists: [any FetchedSource]
        /// How many have not answered.
        var open: Int

        init(_ ticket: ControlTicket, until: EventTime, _ lists: [any FetchedSource]) {
            (self.ticket, self.until, self.lists, open) = (ticket, until, lists, lists.count)
            sources = lists.map { list in
                var source = FenceRefreshRequest.Reply.Source()
                (source.name, source.kind, source.outcome) = (list.config.name, list.config.kind, "waiting")
                return source
            }
        }
    }

    private let places: PlaceLists
    private var waiters: [Waiter] = []
    /// Each is a request to a server.
    private var budget = TokenBucket(burst: 10, refill: .seconds(6))
    private var alarm: EventLoop.Alarm?

    init(places: PlaceLists, loop: EventLoop) {
        self.places = places
        alarm = loop.alarm { [unowned self] now in answer(at: now) }
    }

    /// `{"do":"fence-refresh","source":"venue"}`.
    func refresh(
        _ request: FenceRefreshRequest, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> any ControlMessage {
        let lists = places.fetched.filter { request.source == nil || $0.config.name == request.source }
        guard !lists.isEmpty else { throw none(request.source) }
        if let wait = budget.take(at: now) {
            throw .busy(for: wait, "too many requests for lists: at most ten a minute")
        }
        let waiter = Waiter(ticket, until: now + ControlTicket.timeout, lists)
        ticket.postpone()
        waiters.append(waiter)
        for (index, list) in lists.enumerated() {
            let delay = list.refresh(at: now) { [weak self] ending in self?.ended(ending, waiter, index) }
            waiter.sources[index].delay = delay?.inSeconds
        }
        answer(at: now)
        return Acknowledgement()
    }

    /// Without waiting for the servers.
    func refreshAll(at now: EventTime) throws(ControlError) {
        guard !places.fetched.isEmpty else { throw none(nil) }
        if let wait = budget.take(at: now) {
            throw .busy(for: wait, "too many requests for lists: at most ten a minute")
        }
        for list in places.fetched { _ = list.refresh(at: now) { _ in } }
    }

    private func none(_ source: String?) -> ControlError {
        let names = places.fetched.map(\.config.name).joined(separator: ", ")
        guard source != nil, !names.isEmpty else {
            return ControlError(
                "none", "no server lists geofences or beacon regions",
                hint: "configure one as [[geofences.source]] or [[beacons.source]]")
        }
        return ControlError("unknown-source", "no source of a list has this name", hint: "one of \(names)")
    }

    private func ended(_ ending: FetchEnding, _ waiter: Waiter, _ index: Int) {
        switch ending {
        case .unchanged: waiter.sources[index].outcome = "unchanged"
        case .taken: waiter.sources[index].outcome = "received"
        case .failed(let problem):
            waiter.sources[index].outcome = "failed"
            waiter.sources[index].problem = StatusReport.shortened(problem)
        }
        waiter.open -= 1
        if waiter.open == 0 { finish(waiter) }
        answer(at: .zero)
    }

    /// Those whose time is over learn what is known.
    private func answer(at now: EventTime) {
        waiters.removeAll { $0.ticket.isAbandoned }
        // A server that asks to be left alone will not answer in time.
        for waiter in waiters where waiter.until <= now || waiter.sources.allSatisfy({ $0.delay != nil }) {
            finish(waiter)
        }
        alarm?.deadline = waiters.map(\.until).min()
    }

    private func finish(_ waiter: Waiter) {
        waiters.removeAll { $0 === waiter }
        var reply = FenceRefreshRequest.Reply()
        reply.sources = waiter.sources
        for (index, list) in waiter.lists.enumerated() {
            if list is FetchedList<BeaconRegion> {
                reply.sources[index].regions = list.count
            } else {
                reply.sources[index].fences = list.count
            }
        }
        waiter.ticket.finish(.success(reply))
    }
}
