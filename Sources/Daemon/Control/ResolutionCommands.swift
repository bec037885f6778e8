import WaypostControl
import WaypostCore
import WaypostTracking

// Handlers of the verbs that change resolutions, or what decides them.
extension Pipeline {
    /// With neither `set` nor `clear` nothing changes.
    func engineCommand(_ request: EngineRequest, at now: EventTime) throws(ControlError) -> EngineReply {
        if let wanted = request.set {
            guard request.clear != true else {
                throw ControlError("bad-request", "set and clear exclude each other", hint: "one of the two")
            }
            try carryOut(.engineSet(try Resolution(wanted)), at: now)
        } else if request.clear == true {
            try carryOut(.engineSet(nil), at: now)
        }
        return EngineReply(tracker.snapshot.engineStatus)
    }

    func subscriberCommand(
        _ request: SubscriberRequest, at now: EventTime
    ) throws(ControlError) -> SubscriberRequest.Reply {
        let member: String
        let action: SubscriberChange.Action
        switch (request.add, request.remove) {
        case (let id?, nil):
            member = id
            if let wanted = request.resolution { action = .add(try Resolution(wanted)) } else { action = .add(nil) }
        case (nil, let id?): (member, action) = (id, .remove)
        default:
            throw ControlError(
                "bad-request", "either add or remove is required",
                hint: #"name one: {"do":"subscriber","add":"ID"} or "remove""#)
        }
        guard (1...128).contains(member.utf8.count) else {
            throw ControlError("bad-request", "the id of a subscriber has 1 to 128 bytes")
        }
        let trackable = try trackable(request.trackable)
        let refused = tracker.counters.subscribersRefused
        let before = tracker.snapshot.trackables.first { $0.id == trackable }
        try carryOut(
            .subscriberChanged(SubscriberChange(trackable: trackable, member: member, action: action)), at: now)
        if tracker.counters.subscribersRefused > refused {
            throw ControlError(
                "too-many-subscribers", "trackable \"\(trackable)\" has as many subscribers as it may have",
                hint: "remove one first")
        }
        guard let entry = tracker.snapshot.trackables.first(where: { $0.id == trackable }),
            action != .remove || before?.subscribers != entry.subscribers
        else {
            throw ControlError("unknown-subscriber", "no subscriber \"\(member)\" of trackable \"\(trackable)\"")
        }
        var reply = SubscriberRequest.Reply()
        reply.trackable = trackable
        reply.state = entry.status
        return reply
    }

    func boostCommand(_ request: BoostRequest, at now: EventTime) throws(ControlError) -> EngineReply {
        switch (request.resolution, request.seconds, request.clear) {
        case (let wanted?, let seconds?, nil):
            guard (1...3600).contains(seconds) else {
                throw ControlError("bad-request", "a boost lasts from 1 to 3600 seconds")
            }
            let boost = Boost(resolution: try Resolution(wanted), duration: .seconds(seconds))
            try carryOut(.boostChanged(boost), at: now)
        case (nil, nil, true?):
            try carryOut(.boostChanged(nil), at: now)
        default:
            throw ControlError(
                "bad-request", "send resolution with seconds, or clear",
                hint: #"{"do":"boost","resolution":{…},"seconds":600} or "clear":true"#)
        }
        return EngineReply(tracker.snapshot.engineStatus)
    }

    func powerCommand(_ request: PowerRequest, at now: EventTime) throws(ControlError) -> MotionReply {
        guard request.external != nil || request.percent != nil else {
            throw ControlError(
                "bad-request", "neither external nor percent", hint: #"{"do":"power","external":true,"percent":80}"#)
        }
        var events: [TrackerEvent] = []
        if let percent = request.percent {
            guard (0...100).contains(percent) else { throw ControlError("bad-request", "percent is from 0 to 100") }
            events.append(.batteryChanged(percent: percent, charging: request.charging))
        }
        if let external = request.external { events.append(.externalPowerChanged(external)) }
        try carryOut(events, at: now)
        return MotionReply(tracker.snapshot.motion.rawValue)
    }

    private func trackable(_ id: String?) throws(ControlError) -> String {
        let ids = tracker.snapshot.trackables.map(\.id)
        if let id {
            guard ids.contains(id) else {
                throw ControlError(
                    "unknown-trackable", "no trackable \"\(id)\"",
                    hint: "known: \(ids.prefix(20).joined(separator: ", "))")
            }
            return id
        }
        guard let only = ids.first, ids.count == 1 else {
            throw ControlError(
                "trackable-missing", "several trackables, and none is named",
                hint: "name one of: \(ids.prefix(20).joined(separator: ", "))")
        }
        return only
    }
}

extension Resolution {
    fileprivate init(_ wanted: ResolutionValue) throws(ControlError) {
        guard let priority = AccuracyPriority(word: wanted.priority) else {
            throw ControlError(
                "bad-request", "unknown priority \"\(wanted.priority.cut(toBytes: 40))\"",
                hint: AccuracyPriority.allCases.map(\.word).joined(separator: ", "))
        }
        guard (0...86_400_000).contains(wanted.intervalMs) else {
            throw ControlError("bad-request", "the interval is from 0 to 86400000 ms")
        }
        guard (0...1e6).contains(wanted.displacement) else {
            throw ControlError("bad-request", "the displacement is from 0 to 1000000 m")
        }
        self.init(priority: priority, intervalMs: wanted.intervalMs, displacement: wanted.displacement)
    }

    var value: ResolutionValue {
        ResolutionValue(priority: priority.word, intervalMs: intervalMs, displacement: displacement)
    }
}

extension TrackerSnapshot {
    var engineStatus: EngineStatus {
        var status = EngineStatus()
        status.mode = isEngineConstant ? "constant" : "dynamic"
        status.resolution = engine.value
        return status
    }
}

extension TrackerSnapshot.TrackableResolution {
    var status: TrackableStatus {
        var status = TrackableStatus()
        status.resolution = resolution.value
        status.subscribers = subscribers
        status.near = near
        status.batteryLow = batteryLow
        return status
    }
}
