import ControlProtocol
import Delivery
import JSON
import Positioning
import Tracking

// What people and programs on this host may say about resolutions, and about what decides them.
extension Pipeline {
    /// `{"do":"engine","set":{…}}` or `{"do":"engine","clear":true}`; neither only tells what is in force.
    func engineCommand(
        _ request: ControlRequest, at now: EventTime, _ writer: inout JSONWriter
    ) throws(ControlError) {
        if let wanted = request.set {
            guard request.clear != true else {
                throw ControlError("bad-request", "set and clear together", hint: "one of the two")
            }
            try carryOut(.engineSet(try Resolution(wanted)), at: now)
        } else if request.clear == true {
            try carryOut(.engineSet(nil), at: now)
        }
        tracker.snapshot.writeEngine(to: &writer)
    }

    /// `{"do":"subscriber","add":"ID","trackable":"T","resolution":{…}}` or `{"do":"subscriber","remove":"ID"}`.
    func subscriberCommand(
        _ request: ControlRequest, at now: EventTime, _ writer: inout JSONWriter
    ) throws(ControlError) {
        let member: String
        let action: SubscriberChange.Action
        switch (request.add, request.remove) {
        case (let id?, nil):
            member = id
            if let wanted = request.resolution { action = .add(try Resolution(wanted)) } else { action = .add(nil) }
        case (nil, let id?): (member, action) = (id, .remove)
        default:
            throw ControlError(
                "bad-request", "no subscriber", hint: #"name one: {"do":"subscriber","add":"ID"} or "remove""#)
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
        guard let entry = tracker.snapshot.trackables.first(where: { $0.id == trackable }) else { return }
        if action == .remove, before?.subscribers == entry.subscribers {
            throw ControlError("unknown-subscriber", "no subscriber \"\(member)\" of trackable \"\(trackable)\"")
        }
        writer.field("trackable", trackable)
        entry.write(to: &writer)
    }

    /// `{"do":"boost","resolution":{…},"seconds":600}` or `{"do":"boost","clear":true}`.
    func boostCommand(
        _ request: ControlRequest, at now: EventTime, _ writer: inout JSONWriter
    ) throws(ControlError) {
        switch (request.resolution, request.seconds, request.clear) {
        case (let wanted?, let seconds?, nil):
            guard (1...3600).contains(seconds) else {
                throw ControlError("bad-request", "a boost lasts from 1 to 3600 seconds")
            }
            let boost = Boost(resolution: try Resolution(wanted), duration: .seconds(seconds))
            try carryOut(.profileChanged(boost), at: now)
        case (nil, nil, true?):
            try carryOut(.profileChanged(nil), at: now)
        default:
            throw ControlError(
                "bad-request", "no boost", hint: #"{"do":"boost","resolution":{…},"seconds":600} or "clear":true"#)
        }
        tracker.snapshot.writeEngine(to: &writer)
    }

    /// `{"do":"power","external":true,"percent":80,"charging":true}`: of a supply that another program reads. A level is
    /// forgotten after ten minutes.
    func powerCommand(
        _ request: ControlRequest, at now: EventTime, _ writer: inout JSONWriter
    ) throws(ControlError) {
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
        writer.field("motion", tracker.snapshot.motion.rawValue)
    }

    private func trackable(_ id: String?) throws(ControlError) -> String {
        let ids = tracker.snapshot.trackables.map(\.id)
        if let id {
            guard ids.contains(id) else {
                throw ControlError(
                    "unknown-trackable", "no trackable \"\(id)\"",
                    hint: "there is: \(ids.prefix(20).joined(separator: ", "))")
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
    fileprivate init(_ wanted: ControlResolution) throws(ControlError) {
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

    /// The members of an object that is open.
    fileprivate func write(to writer: inout JSONWriter) {
        writer.field("priority", priority.word)
        writer.field("interval_ms", intervalMs)
        writer.field("displacement", displacement)
    }
}

extension TrackerSnapshot {
    /// What the receiver is asked for, and on whose word.
    func writeEngine(to writer: inout JSONWriter) {
        writer.key("engine")
        writer.beginObject()
        writer.field("mode", word: isEngineConstant ? "constant" : "dynamic")
        engine.write(to: &writer)
        writer.endObject()
    }
}

extension TrackerSnapshot.TrackableResolution {
    /// The members of an object that is open.
    func write(to writer: inout JSONWriter) {
        resolution.write(to: &writer)
        writer.field("subscribers", subscribers)
        writer.field("near", near)
        writer.field("battery_low", batteryLow)
    }
}
