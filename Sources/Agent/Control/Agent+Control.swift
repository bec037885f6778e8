import ControlProtocol
import Delivery
import JSON
import Positioning
import Tracking

extension Agent {
    /// Answers a request of the control socket.
    func answer(
        _ request: ControlRequest, _ ticket: ControlTicket, _ writer: inout JSONWriter
    ) throws(ControlError) {
        switch request.do {
        case "endpoint" where request.action == "list":
            report(at: loop.now).writeEndpoints(after: request.after, to: &writer)
        case "endpoint", "quarantine": try orders.carryOut(request, ticket, at: loop.now, &writer)
        case "flush": try flushes.flush(request, ticket, at: loop.now)
        case "status": report(at: loop.now).write(to: &writer)
        case "pace":
            let pace: Pace = request.moving.map { $0 ? .moving : .stationary } ?? .auto
            try pipeline.carryOut(.paceRequested(pace), at: loop.now)
            writer.field("motion", pipeline.tracker.snapshot.motion.rawValue)
        case "movement":
            guard let moving = request.moving else {
                throw ControlError(
                    "bad-request", "no moving", hint: #"{"do":"movement","source":"gpio","moving":true}"#)
            }
            try pipeline.carryOut(
                .movementSourceChanged(source: request.source ?? "", moving: moving), at: loop.now)
            writer.field("motion", pipeline.tracker.snapshot.motion.rawValue)
        case "odometer":
            guard let metres = request.metres, metres.isFinite, (0...Odometer.metresMax).contains(metres) else {
                throw ControlError(
                    "bad-request", "no reading of an odometer", hint: "metres, from 0 to a hundred million km")
            }
            try pipeline.setOdometer(metres: metres, at: loop.now)
            writer.field("odometer", pipeline.tracker.snapshot.odometer, places: 1)
        case "power": try pipeline.powerCommand(request, at: loop.now, &writer)
        case "boost": try pipeline.boostCommand(request, at: loop.now, &writer)
        case "engine": try pipeline.engineCommand(request, at: loop.now, &writer)
        case "subscriber": try pipeline.subscriberCommand(request, at: loop.now, &writer)
        case "reload": try configuration.reloadCommand(at: loop.now, &writer)
        case "refresh": try pipeline.carryOut(.refreshRequested, at: loop.now)
        default:
            throw ControlError(
                "unknown-verb", "unknown verb \"\(request.do)\"",
                hint:
                    "this version knows: status, endpoint, quarantine, flush, pace, engine, subscriber, boost, refresh, "
                    + "movement, power, odometer, reload")
        }
    }
}
