import Queue
import WaypostControl
import WaypostCore
import WaypostHost

/// Handles `endpoint` and `quarantine`: passes the orders to the recorder, and answers when they are on disk.
final class OrderHandler {
    private let recorder: Recorder
    private let deliveries: [EndpointDelivery]
    private let loop: EventLoop

    init(recorder: Recorder, deliveries: [EndpointDelivery], loop: EventLoop) {
        self.recorder = recorder
        self.loop = loop
        self.deliveries = deliveries
    }

    /// `{"do":"endpoint","action":"bind","endpoint":"main","force":true}`,
    /// `{"do":"quarantine","action":"retry","endpoint":"main","ids":[7,8]}`.
    ///
    /// The reply to a resume gives the next attempt, if it is not at once: `"next_attempt_s":114.0,"because":"…"`.
    func carryOut(
        _ request: RequestFrame, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> OrderReply {
        var reply = OrderReply()
        let orders = try OperatorOrders(
            request, endpoints: deliveries.flatMap { $0.routes.map(\.settings) }, depths: depths)
        if orders.needsOwner { try ticket.requireOwner() }
        if let name = orders.resumes {
            guard let delivery = deliveries.first(where: { $0.settings.name == name }) else { return reply }
            delivery.resumed(at: now)
            guard let postponement = delivery.postponement(at: now) else { return reply }
            reply.nextAttempt = postponement.seconds
            reply.because = postponement.reason
            return reply
        }
        if let name = orders.rebinds, recorder.latest.recovery.isSalvaging,
            depths.contains(where: { $0.endpoint == name && $0.boundTo != nil })
        {
            // The queue would refuse it, but only after the server has bound the asset.
            throw ControlError(
                "busy", "locations of the old binding are still being brought back from a damaged queue",
                hint: "try again once the journal says that they were brought back")
        }
        ticket.postpone()
        guard orders.asksServer, let delivery = deliveries.first(where: { $0.settings.name == orders.rebinds }) else {
            hand(orders, ticket)
            return reply
        }
        delivery.bind(at: now) { [unowned self] problem in
            guard let problem else { return hand(orders, ticket) }
            ticket.finish(
                .failure(
                    ControlError(
                        "not-bound", "the server did not bind \"\(delivery.settings.name)\": \(problem)",
                        hint: "nothing has changed; the same order tries again")))
        }
        return reply
    }

    private func hand(_ orders: OperatorOrders, _ ticket: ControlTicket) {
        var results: [OrderResult] = []
        for order in orders.queue {
            recorder.order(order, at: loop.now) { [unowned self] result in
                results.append(result)
                guard results.count == orders.queue.count else { return }
                ended(orders, results)
                do throws(ControlError) {
                    ticket.finish(.success(try OperatorOrders.reply(results)))
                } catch {
                    ticket.finish(.failure(error))
                }
            }
        }
    }

    /// A state that has just changed reaches the disk a moment later.
    private var depths: [EndpointDepth] {
        recorder.latest.depths.map { depth in
            var depth = depth
            if let delivery = deliveries.first(where: { $0.settings.name == depth.endpoint }) {
                depth.state = delivery.schedule.state
            }
            return depth
        }
    }

    private func ended(_ orders: OperatorOrders, _ results: [OrderResult]) {
        guard let name = orders.rebinds, let delivery = deliveries.first(where: { $0.settings.name == name }) else {
            return
        }
        guard case .done = results.last, let depth = recorder.latest.depths.first(where: { $0.endpoint == name }) else {
            // A drop asks the server nothing: a bind under way belongs to another order.
            if orders.asksServer { delivery.orderRefused() }
            return
        }
        delivery.rebound(depth)
    }
}
