import WaypostControl
import WaypostCore

@testable import WaypostCLI

/// Values as a daemon gives them, for pages that are compared line by line.
enum TopFixture {
    /// 2026-03-02T07:29:47Z
    static let now = UTCTime(milliseconds: 1_772_436_587_000)

    static func status(problems: [String] = [], endpoints: [EndpointStatus] = [endpoint("main")]) -> Status {
        var status = Status()
        status.version = "1.0.0"
        status.health = problems.isEmpty ? "ok" : "degraded"
        status.problems = problems
        status.uptime = 11_520
        status.source.name = "serial /dev/ttyACM0"
        status.source.state = "receiving"
        status.source.fixes = 11_500
        status.motion.state = "moving"
        status.motion.since = "2026-03-02T07:12:05.000Z"
        status.motion.lastFixAge = 0.3
        status.motion.admitted = 11_498
        status.motion.kept = 724
        status.motion.rule = "track-error"
        status.motion.trips = 3
        status.motion.stops = 2
        status.motion.odometer = 48_213
        status.motion.engine.mode = "dynamic"
        status.motion.engine.resolution = ResolutionValue(priority: "high", intervalMs: 1000, displacement: 5)
        status.queue.depth = 12
        status.queue.bytes = 98_304
        status.queue.held = 2
        status.queue.commitLatency = 0.012
        status.endpoints = endpoints
        return status
    }

    static func endpoint(_ name: String, waiting: Int = 12, problem: String? = nil, failures: Int = 0) -> EndpointStatus
    {
        var endpoint = EndpointStatus()
        endpoint.name = name
        endpoint.state = "active"
        endpoint.waiting = waiting
        endpoint.oldestAge = 40
        endpoint.accepted = 712
        endpoint.lastSuccessAge = 4
        endpoint.bytesPerFix = 81.4
        endpoint.problem = problem
        endpoint.consecutiveFailures = failures
        endpoint.nextAttempt = failures > 0 ? 42.2 : nil
        return endpoint
    }

    static func look(_ motion: MotionLook = moving) -> Look {
        var look = Look()
        var fix = FixLook()
        fix.time = "2026-03-02T07:29:47.000Z"
        fix.latitude = 52.520008
        fix.longitude = 13.404954
        fix.accuracy = 2.4
        fix.speed = 13.4
        fix.course = 47.3
        fix.hdop = 0.9
        fix.satellites = 11
        fix.quality = "gps"
        look.fix = fix
        look.motion = motion
        look.engineBecause = "as published"
        var published = PublishedLook()
        published.trackable = "van"
        published.resolution = ResolutionValue(priority: "high", intervalMs: 1000, displacement: 5)
        published.because = "rule 2, a subscriber"
        look.published = [published]
        look.decisions = [
            decision(4, "07:12:31", "motion", "departed", "speed", since: "07:12:05"),
            decision(3, "06:58:10", "motion", "parked", "stop-timeout", since: "06:53:10"),
            decision(2, "06:51:02", "geofence", "enter depot", "crossing"),
            decision(1, "06:40:00", "receiver", "asked for high, every 1 s or 5 m", nil),
        ]
        return look
    }

    static var moving: MotionLook {
        var motion = MotionLook()
        motion.state = "moving"
        motion.evidence = 180
        motion.speed = 13.3
        motion.stillSpeed = 0.5
        return motion
    }

    static var stopping: MotionLook {
        var motion = MotionLook()
        motion.state = "stopping"
        motion.evidence = 1.2
        motion.evidenceNeeded = 8
        motion.distance = 3.1
        motion.radius = 25
        motion.stands = 110
        motion.parksIn = 190
        motion.parksBecause = "stop-timeout"
        return motion
    }

    private static func decision(
        _ number: Int, _ time: String, _ kind: String, _ what: String, _ reason: String?, since: String? = nil
    ) -> DecisionLook {
        var decision = DecisionLook()
        decision.number = number
        decision.time = "2026-03-02T\(time).000Z"
        decision.kind = kind
        decision.what = what
        decision.reason = reason
        guard let since else { return decision }
        decision.since = "2026-03-02T\(since).000Z"
        decision.evidence = 18.2
        decision.distance = 31
        decision.speed = 4.2
        decision.accuracy = 2.5
        return decision
    }

    /// After ten polls of a receiver at 1 Hz that speeds up.
    static func model(_ status: Status = status(), _ look: Look? = look()) -> TopModel {
        var model = TopModel()
        for second in 0...10 {
            var (status, look) = (status, look)
            if second > 0 { look?.decisions = [] }
            status.motion.admitted -= 10 - second
            if let speed = look?.fix?.speed { look?.fix?.speed = speed - Double(10 - second) }
            model.answered(status, look, at: Double(second))
        }
        return model
    }

    static func page(
        _ model: TopModel, _ columns: Int, _ rows: Int?, isASCII: Bool = false
    ) -> [String] {
        TopPage(model: model, columns: columns, rows: rows, isASCII: isASCII, now: now, seconds: 10).lines.map(
            \.trimmedText)
    }
}
