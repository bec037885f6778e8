import WaypostControl
import WaypostCore
import WaypostTracking

extension Agent {
    /// Answers a request of the control socket.
    func answer(_ request: RequestFrame, _ ticket: ControlTicket) throws(ControlError) -> any ControlMessage {
        guard let verb = Verb(rawValue: request.verb) else { throw .unknownVerb(request.verb) }
        let now = loop.now
        switch verb {
        case .help: return try Help(request.read())
        case .endpoint:
            let list: EndpointRequest = try request.read()
            if list.action == "test" { return try tests.test(list, ticket, at: now) }
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
        case .odometer: return try odometer(request.read(), ticket, at: now)
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
    ) throws(ControlError) -> any ControlMessage {
        guard let remote else {
            throw ControlError(
                "off", "the configuration allows nothing from afar", hint: "[remote] allow and commands turn it on")
        }
        let action = request.action ?? "show"
        if action == "show" { return remote.status(withKeys: true, at: now) }
        try ticket.requireOwner()
        let done = { [loop] (failure: String?) in
            guard let failure else { return ticket.finish(.success(remote.status(withKeys: false, at: loop.now))) }
            ticket.finish(
                .failure(
                    .notStored("the file alone is in force now", "a restart brings the settings back", failure)))
        }
        switch action {
        case "clear": remote.settings.clear(at: now, done)
        case "forget": remote.settings.forget(acceptsOlder: request.acceptsOlder ?? false, at: now, done)
        default: throw ControlError("bad-request", "action is none of show, clear, forget", hint: #"{"do":"remote"}"#)
        }
        ticket.postpone()
        return Acknowledgement()
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
        _ request: OdometerRequest, _ ticket: ControlTicket, at now: EventTime
    ) throws(ControlError) -> any ControlMessage {
        guard let metres = request.metres, metres.isFinite, (0...Odometer.metresMax).contains(metres) else {
            throw ControlError(
                "bad-request", "metres is missing or out of range", hint: "0 to 1e11")
        }
        try pipeline.setOdometer(metres: metres, at: now) { [pipeline] failure in
            var reply = OdometerRequest.Reply()
            reply.odometer = pipeline.tracker.snapshot.odometer
            guard let failure else { return ticket.finish(.success(reply)) }
            ticket.finish(
                .failure(
                    .notStored(
                        "the odometer is \(Int(reply.odometer)) m now", "a restart loses that", failure.description)))
        }
        ticket.postpone()
        return Acknowledgement()
    }
}

extension ControlError {
    /// Something is done, and will not outlive the process before the disk takes it.
    /// - Parameters:
    ///   - done: what is in force.
    ///   - loss: what a restart does to it until then.
    ///   - failure: of the disk.
    fileprivate static func notStored(_ done: String, _ loss: String, _ failure: String) -> ControlError {
        ControlError(
            "disk", "\(done), but it could not be stored, and \(loss): \(failure)",
            hint: "the daemon tries to store it again, once a minute or more often")
    }
}
