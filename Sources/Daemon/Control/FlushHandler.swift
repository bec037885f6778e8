import Protocols
import Queue
import WaypostControl
import WaypostCore
import WaypostHost

/// Handles `flush`: everything goes to disk, and out without waiting for a window.
final class FlushHandler {
    /// A client that waits for the uploads of a flush.
    private struct Waiter {
        var ticket: ControlTicket
        var until: EventTime
        var goals: [Goal]
        var panic: RequestBudget.Panic?
    }

    private struct Goal {
        var delivery: EndpointDelivery
        var acceptedBefore: Int

        /// Everything was sent, or what is left will not go out soon.
        func isSettled(at now: EventTime) -> Bool {
            let schedule = delivery.schedule
            // What is in a commit that forms a batch is counted as waiting but not as in flight.
            if schedule.isForming { return false }
            if delivery.waiting == 0 || delivery.awaitsOperator || !delivery.maySend(at: now) { return true }
            // A flush does not end a pause.
            if case .paused = schedule.state { return true }
            if let next = schedule.nextAttemptAt { return next > now }
            guard schedule.inFlight == 0, case .wait = schedule.next(at: now) else { return false }
            // Rows recorded since wait for a window of their own.
            return true
        }
    }

    private let pipeline: Pipeline
    private let recorder: Recorder
    private let deliveries: [EndpointDelivery]
    private let uplink: any Uplink
    private let loop: EventLoop
    private var waiters: [Waiter] = []
    private var alarm: EventLoop.Alarm?

    init(
        pipeline: Pipeline, recorder: Recorder, deliveries: [EndpointDelivery], uplink: any Uplink, loop: EventLoop
    ) {
        self.pipeline = pipeline
        self.recorder = recorder
        self.deliveries = deliveries
        self.uplink = uplink
        self.loop = loop
        alarm = loop.alarm { [unowned self] now in uploadEnded(at: now) }
    }

    /// `{"do":"flush","commit":true,"panic":true}`.
    func flush(
        _ request: FlushRequest, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> any ControlMessage {
        let panic = request.panic == true ? try pipeline.panic(at: now) : nil
        let goals = deliveries.map {
            Goal(delivery: $0, acceptedBefore: $0.counters.accepted)
        }
        pipeline.handle(.flushRequested, at: now)
        for delivery in deliveries { delivery.flush(byOperator: true, at: now) }
        ticket.postpone()
        recorder.commit(at: now) { [unowned self] in
            // The system-sleep hook sends this.
            if request.commit == true { uplink.closeIdleConnections(at: loop.now) }
            if let error = recorder.lastError {
                return ticket.finish(
                    .failure(ControlError("disk", error.description, hint: "the locations are held in memory")))
            }
            if request.commit == true {
                var reply = Self.reply(panic)
                reply.waiting = recorder.latest.rows
                return ticket.finish(.success(reply))
            }
            waiters.removeAll { $0.ticket.isAbandoned }
            waiters.append(Waiter(ticket: ticket, until: now + ControlTicket.timeout, goals: goals, panic: panic))
            uploadEnded(at: loop.now)
        }
        return Acknowledgement()
    }

    /// An attempt ended: answers the clients whose flush is done.
    func uploadEnded(at now: EventTime) {
        guard !waiters.isEmpty else { return }
        let done = waiters.filter { waiter in
            waiter.until <= now || waiter.goals.allSatisfy { $0.isSettled(at: now) }
        }
        waiters.removeAll { waiter in done.contains { $0.ticket === waiter.ticket } }
        alarm?.deadline = waiters.map(\.until).min()
        for waiter in done {
            var reply = Self.reply(waiter.panic)
            reply.endpoints = waiter.goals.map { Self.status(of: $0, at: now) }
            waiter.ticket.finish(.success(reply))
        }
    }

    private static func reply(_ panic: RequestBudget.Panic?) -> FlushRequest.Reply {
        var reply = FlushRequest.Reply()
        reply.merged = panic == .merged ? true : nil
        return reply
    }

    private static func status(of goal: Goal, at now: EventTime) -> FlushRequest.Reply.Endpoint {
        var status = FlushRequest.Reply.Endpoint()
        status.name = goal.delivery.settings.name
        status.accepted = goal.delivery.counters.accepted - goal.acceptedBefore
        status.waiting = goal.delivery.waiting
        status.contact = goal.delivery.contact.state.progress.rawValue
        status.contactAge = goal.delivery.contact.state.since.map { now.seconds(since: $0) }
        status.problem = problem(of: goal.delivery)
        return status
    }

    private static func problem(of delivery: EndpointDelivery) -> String? {
        if let problem = delivery.lastProblem ?? delivery.link.holdReason { return StatusReport.shortened(problem) }
        return delivery.schedule.state == .active ? nil : delivery.schedule.state.word
    }
}
