import ControlProtocol
import Positioning
import Tracking

extension Agent {
    /// Answers a request of the control socket.
    func answer(_ request: RequestFrame, _ ticket: ControlTicket) throws(ControlError) -> any ControlMessage {
        guard let verb = Verb(rawValue: request.verb) else { throw .unknownVerb(request.verb) }
        let now = loop.now
        switch verb {
        case .help: return try Help(request.read())
        case .endpoint:
            let list: EndpointRequest = try request.read()
            guard list.action == "list" else { return try orders.carryOut(request, ticket, at: now) }
            var reply = OrderReply()
            reply.endpoints = report(at: now).endpoints(after: list.after)
            return reply
        case .quarantine: return try orders.carryOut(request, ticket, at: now)
        case .flush: return try flushes.flush(request.read(), ticket, at: now)
        case .status: return report(at: now).status
        case .look: return LookReport(now: now, pipeline: pipeline).look(try request.read())
        case .pace: return try pace(request.read(), at: now)
        case .movement: return try movement(request.read(), at: now)
        case .odometer: return try odometer(request.read(), at: now)
        case .power: return try pipeline.powerCommand(request.read(), at: now)
        case .boost: return try pipeline.boostCommand(request.read(), at: now)
        case .engine: return try pipeline.engineCommand(request.read(), at: now)
        case .subscriber: return try pipeline.subscriberCommand(request.read(), at: now)
        case .reload: return try configuration.reloadCommand(ticket, at: now)
        case .fenceRefresh: return try listRefreshes.refresh(request.read(), ticket, at: now)
        case .remote: return try remote(request.read(), ticket, at: now)
        case .refresh:
            try pipeline.carryOut(.refreshRequested, at: now)
            return Acknowledgement()
        }
    }

    private func remote(
        _ request: RemoteRequest, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> RemoteStatus {
        guard let remote else {
            throw ControlError(
                "off", "the configuration allows nothing from afar", hint: "[remote] allow and commands turn it on")
        }
        let action = request.action ?? "show"
        if action != "show" { try ticket.requireOwner() }
        switch action {
        case "show": break
        case "clear": remote.settings.clear(at: now)
        case "forget": remote.settings.forget(acceptsOlder: request.acceptsOlder ?? false, at: now)
        default: throw ControlError("bad-request", "action is none of show, clear, forget", hint: #"{"do":"remote"}"#)
        }
        // After the others the keys change as soon as that is stored.
        return remote.status(withKeys: action == "show", at: now)
    }

    private func pace(_ request: PaceRequest, at now: EventTime) throws(ControlError) -> MotionReply {
        let pace: Pace = request.moving.map { $0 ? .moving : .stationary } ?? .auto
        try pipeline.carryOut(.paceRequested(pace), at: now)
        return MotionReply(pipeline.tracker.snapshot.motion.rawValue)
    }

    private func movement(_ request: MovementRequest, at now: EventTime) throws(ControlError) -> MotionReply {
        guard let moving = request.moving else {
            throw ControlError(
                "bad-request", "moving is missing", hint: #"{"do":"movement","source":"gpio","moving":true}"#)
        }
        try pipeline.carryOut(.movementSourceChanged(source: request.source ?? "", moving: moving), at: now)
        return MotionReply(pipeline.tracker.snapshot.motion.rawValue)
    }

    private func odometer(
        _ request: OdometerRequest, at now: EventTime
    ) throws(ControlError) -> OdometerRequest.Reply {
        guard let metres = request.metres, metres.isFinite, (0...Odometer.metresMax).contains(metres) else {
            throw ControlError(
                "bad-request", "metres is missing or out of range", hint: "0 to 1e11")
        }
        try pipeline.setOdometer(metres: metres, at: now)
        var reply = OdometerRequest.Reply()
        reply.odometer = pipeline.tracker.snapshot.odometer
        return reply
    }
}
