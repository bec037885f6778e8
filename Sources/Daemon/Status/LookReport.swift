import WaypostControl
import WaypostCore
import WaypostTracking

/// The reply to `look`: where the asset is, and the evidence of what tracking decides.
struct LookReport {
    let now: EventTime
    let pipeline: Pipeline

    func look(_ request: LookRequest) -> Look {
        let (tracked, snapshot) = (pipeline.tracker.look, pipeline.tracker.snapshot)
        // The present of tracking, which is not the boot clock's with a file.
        let present = pipeline.trackingTime(now)
        var look = Look()
        look.fix = fix(tracked, present)
        if let refused = pipeline.reception.unbelieved {
            look.refused = refused.fixes
            look.refusedReason = refused.reason.rawValue
        }
        look.motion = motion(tracked, present)
        look.motion.state = snapshot.motion.rawValue
        look.engineBecause = snapshot.engineBecause
        look.published = tracked.published.map { published in
            var look = PublishedLook()
            look.trackable = published.id
            look.resolution = published.resolution.value
            look.because = published.because
            return look
        }
        look.decisions = pipeline.decisions.entries(after: request.after).reversed().map(decision)
        return look
    }

    private func fix(_ tracked: TrackerLook, _ present: EventTime) -> FixLook? {
        guard let fix = tracked.fix, let time = fix.time, let at = tracked.fixAt else { return nil }
        var look = FixLook()
        look.time = time.iso8601
        look.age = max(0, present.seconds(since: at))
        look.latitude = fix.coordinate.latitude
        look.longitude = fix.coordinate.longitude
        look.held = tracked.heldPlace == nil ? nil : true
        look.altitude = fix.altitudeMSL
        look.accuracy = fix.horizontalAccuracy
        look.speed = fix.speed
        look.course = fix.course
        look.hdop = fix.hdop
        look.satellites = fix.satellitesUsed
        look.quality = fix.quality.word
        return look
    }

    private func motion(_ tracked: TrackerLook, _ present: EventTime) -> MotionLook {
        let (evidence, outlook) = (tracked.evidence, tracked.outlook)
        var look = MotionLook()
        look.evidence = evidence.evidence
        look.evidenceNeeded = outlook.evidenceNeeded
        look.distance = outlook.radius == nil ? nil : evidence.distance
        look.radius = outlook.radius
        look.speed = evidence.speed
        look.stillSpeed = outlook.stillSpeed
        look.stands = outlook.standsSince.map { max(0, present.seconds(since: $0)) }
        look.parksIn = outlook.parksAt.map { max(0, $0.seconds(since: present)) }
        look.parksBecause = outlook.parksAt == nil ? nil : outlook.parksBecause?.rawValue
        return look
    }

    private func decision(_ entry: DecisionLog.Entry) -> DecisionLook {
        var look = DecisionLook()
        look.number = entry.number
        look.time = entry.time?.iso8601
        look.age = max(0, now.seconds(since: entry.at))
        look.kind = entry.kind
        look.what = entry.what
        look.reason = entry.reason
        guard let change = entry.motion else { return look }
        look.since = change.since?.iso8601
        look.evidence = change.evidence.evidence
        look.distance = change.evidence.distance
        look.speed = change.evidence.speed
        look.accuracy = change.evidence.accuracy
        return look
    }
}

extension TrackerSnapshot {
    fileprivate var engineBecause: String {
        if boost != nil { return "boost" }
        if isEngineConstant { return "constant location engine" }
        return trackables.count == 1 ? "as published" : "the finest of what is published"
    }
}

extension TrackerLook.Published {
    /// `rule 2, 3 subscribers; while parked not more often than the heartbeat`
    fileprivate var because: String {
        if isBoosted { return "boost" }
        var parts: [String] = []
        if let rule { parts.append("rule \(rule + 1)") }
        if near { parts.append("near the destination") }
        if subscribers > 0 { parts.append(subscribers == 1 ? "a subscriber" : "\(subscribers) subscribers") }
        if batteryLow { parts.append("battery low") }
        let decided = parts.isEmpty ? "default" : parts.joined(separator: ", ")
        return isCapped ? "\(decided); while parked not more often than the heartbeat" : decided
    }
}
