import Network
import Protocols
import WaypostControl
import WaypostCore
import WaypostHost

/// Handles `endpoint` with the action `test`.
final class EndpointTestHandler {
    private let pipeline: Pipeline
    private let deliveries: [EndpointDelivery]
    private let uplink: any Uplink
    private let loop: EventLoop
    private var budget = TokenBucket(burst: 1, refill: .seconds(10))

    init(pipeline: Pipeline, deliveries: [EndpointDelivery], uplink: any Uplink, loop: EventLoop) {
        (self.pipeline, self.deliveries, self.uplink, self.loop) = (pipeline, deliveries, uplink, loop)
    }

    /// `{"do":"endpoint","action":"test","endpoint":"main","store":true}`.
    func test(_ request: EndpointRequest, _ ticket: ControlTicket, at now: EventTime) throws(ControlError) -> OrderReply
    {
        try ticket.requireOwner()
        let settings = try OperatorOrders.configured(
            request.endpoint, deliveries.flatMap { $0.routes.map(\.settings) })
        let routes = deliveries.flatMap(\.routes)
        guard let route = routes.first(where: { $0.settings.name == settings.name }) else { return OrderReply() }
        if let wait = budget.take(at: now) { throw .busy(for: wait, "another test was less than 10 s ago") }
        var test = EndpointTest()
        test.stores = request.store == true
        test.newest = pipeline.tracker.newestLocation
        if let latitude = request.latitude, let longitude = request.longitude {
            guard let place = Coordinate(latitude: latitude, longitude: longitude) else {
                throw ControlError(
                    "bad-request", "lat or lon is out of range", hint: "degrees, -90 to 90 and -180 to 180")
            }
            test.place = place
        }
        ticket.postpone()
        test.run(over: route, isOwnProcess: false, uplink: uplink, loop: loop) { [deliveries, loop] result, outcome in
            if let outcome {
                deliveries.first { $0.settings.name == settings.name }?.tested(
                    outcome, isWell: result.isWell, at: loop.now)
            }
            var reply = OrderReply()
            reply.test = result
            ticket.finish(.success(reply))
        }
        return OrderReply()
    }
}
