import ControlProtocol
import EventLoop
import Positioning

/// Handles `fence-refresh`: asks servers for their lists, and answers once they have.
final class FenceRefreshHandler {
    /// A client that waits for servers.
    private final class Waiter {
        let ticket: ControlTicket
        let until: EventTime
        var sources: [FenceRefreshRequest.Reply.Source]
        /// How many have not answered.
        var open: Int

        init(_ ticket: ControlTicket, until: EventTime, sources: [FenceRefreshRequest.Reply.Source]) {
            (self.ticket, self.until, self.sources, open) = (ticket, until, sources, sources.count)
        }
    }

    private let fences: FenceSources
    private var waiters: [Waiter] = []
    /// Each is a request to a server.
    private var budget = TokenBucket(burst: 10, refill: .seconds(6))
    private var alarm: EventLoop.Alarm?

    init(fences: FenceSources, loop: EventLoop) {
        self.fences = fences
        alarm = loop.alarm { [unowned self] now in answer(at: now) }
    }

    /// `{"do":"fence-refresh","source":"venue"}`.
    func refresh(
        _ request: FenceRefreshRequest, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> any ControlMessage {
        let lists = fences.fetched.filter { request.source == nil || $0.config.name == request.source }
        guard !lists.isEmpty else { throw Self.none(request.source, fences) }
        if let wait = budget.take(at: now) {
            throw .busy(for: wait, "too many requests for lists: at most ten a minute")
        }
        let waiter = Waiter(
            ticket, until: now + ControlTicket.timeout,
            sources: lists.map { list in
                var source = FenceRefreshRequest.Reply.Source()
                source.name = list.config.name
                source.outcome = "waiting"
                return source
            })
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
        guard !fences.fetched.isEmpty else { throw Self.none(nil, fences) }
        if let wait = budget.take(at: now) {
            throw .busy(for: wait, "too many requests for lists: at most ten a minute")
        }
        for list in fences.fetched { _ = list.refresh(at: now) { _ in } }
    }

    private static func none(_ source: String?, _ fences: FenceSources) -> ControlError {
        let names = fences.fetched.map(\.config.name).joined(separator: ", ")
        guard source != nil, !names.isEmpty else {
            return ControlError(
                "none", "no server lists geofences", hint: "configure one as [[geofences.source]]")
        }
        return ControlError("unknown-source", "no source of geofences has this name", hint: "one of \(names)")
    }

    private func ended(_ ending: FetchedList.Ending, _ waiter: Waiter, _ index: Int) {
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
        for index in reply.sources.indices {
            reply.sources[index].fences = fences.count(of: reply.sources[index].name)
        }
        waiter.ticket.finish(.success(reply))
    }
}
