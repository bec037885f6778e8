import Delivery
import Logging
import Outbox
import Positioning
import Tracking

/// What the daemon says to people: one line for each start, stop, motion change, receiver state and upload problem, and a
/// summary an hour. Never a line per fix or per upload above debug. Coordinates only at debug with `log.positions`.
///
/// Each kind of event has a MESSAGE_ID of its own, so that `journalctl MESSAGE_ID=…` finds it in any wording.
public struct AgentLog {
    /// 32 hex digits a kind.
    private enum MessageID {
        static let started = "b3a1c0de5f6a4a0f8c2d1e4b7a905101"
        static let stopping = "b3a1c0de5f6a4a0f8c2d1e4b7a905102"
        static let motion = "b3a1c0de5f6a4a0f8c2d1e4b7a905103"
        static let source = "b3a1c0de5f6a4a0f8c2d1e4b7a905104"
        static let upload = "b3a1c0de5f6a4a0f8c2d1e4b7a905105"
        static let queue = "b3a1c0de5f6a4a0f8c2d1e4b7a905106"
        static let summary = "b3a1c0de5f6a4a0f8c2d1e4b7a905107"
        static let configuration = "b3a1c0de5f6a4a0f8c2d1e4b7a905108"
    }

    private var logger: Logger
    /// Whether coordinates may appear, at debug.
    private let positions: Bool

    public init(logger: Logger, positions: Bool) {
        self.logger = logger
        self.positions = positions
    }

    private func say(_ level: Logger.Level, _ id: String, _ message: String, _ fields: [String: String] = [:]) {
        var metadata: Logger.Metadata = ["message_id": .string(id)]
        for (key, value) in fields { metadata[key] = .string(value) }
        logger.log(level: level, "\(message)", metadata: metadata)
    }

    func started(version: String, source: String, endpoints: [String], waiting: Int) {
        say(
            .notice, MessageID.started,
            "waypost \(version) started: reads \(source), uploads to "
                + (endpoints.isEmpty ? "nobody" : endpoints.joined(separator: ", "))
                + (waiting > 0 ? ", \(waiting) locations wait from before" : ""),
            ["version": version, "source": source, "waiting": String(waiting)])
    }

    func stopping(why: String) {
        say(.notice, MessageID.stopping, "stopping: \(why)", ["reason": why])
    }

    func stopped(waiting: Int) {
        say(
            .notice, MessageID.stopping,
            waiting == 0 ? "stopped, queue empty" : "stopped, \(waiting) locations wait on disk",
            ["waiting": String(waiting)])
    }

    func lost(_ count: Int, because reason: String?) {
        say(
            .error, MessageID.queue,
            "queue: \(count) locations could not be stored and are lost: \(reason ?? "the disk did not answer in time")",
            ["lost": String(count), "state": "failed"])
    }

    func hoursChanged(open: Bool, until: UTCTime?) {
        let until = until.map { " until \($0.iso8601)" } ?? ""
        logger.info("schedule: \(open ? "tracking" : "not tracking")\(until)")
    }

    func motionChanged(_ change: MotionChange) {
        let state = change.moving ? "moving" : "stationary"
        let since = change.since.map { " since \($0.iso8601)" } ?? ""
        var numbers = "evidence \(metres(change.evidence.evidence)), distance \(metres(change.evidence.distance))"
        var fields = [
            "state": state, "reason": change.reason.rawValue, "evidence_m": metres(change.evidence.evidence),
            "distance_m": metres(change.evidence.distance), "since": change.since?.iso8601 ?? "",
        ]
        if let speed = change.evidence.speed {
            let tenths = Scaled.integer(speed, places: 1) ?? 0
            fields["speed_mps"] = "\(tenths / 10).\(tenths % 10)"
            numbers += ", \(tenths / 10).\(tenths % 10) m/s"
        }
        if let accuracy = change.evidence.accuracy {
            fields["accuracy_m"] = metres(accuracy)
            numbers += ", accuracy \(metres(accuracy))"
        }
        say(.notice, MessageID.motion, "\(state)\(since) (\(change.reason.rawValue): \(numbers))", fields)
        if positions {
            logger.debug("at \(change.coordinate.latitude) \(change.coordinate.longitude)")
        }
    }

    /// - Parameter expected: it is what the receiver was asked for, and happens many times a day.
    /// - Parameter lines: what may be said of it: a plug with a bad contact does not fill the journal.
    func sourceChanged(
        _ name: String, _ state: SourceState, expected: Bool = false, lines: inout LineBudget, at now: EventTime
    ) {
        let (usual, words, word): (Logger.Level, String, String) =
            switch state {
            case .opening: (.info, "opening", "opening")
            case .receiving: (.notice, "receiving", "receiving")
            case .silent: (.warning, "silent: the line is open, but nothing arrives", "silent")
            case .unreadable:
                (
                    .warning, "unreadable: bytes arrive, but no sentence (wrong baud rate or a binary protocol)",
                    "unreadable"
                )
            case .lost(let reason): (.warning, "lost: \(reason)", "lost")
            case .ended: (.notice, "end of input", "ended")
            }
        let fields = ["source": name, "state": word]
        if expected && (state == .opening || state == .receiving) {
            return say(.debug, MessageID.source, "receiver \(name): \(words)", fields)
        }
        switch lines.spend(at: now) {
        case .tell(let untold):
            let more = untold > 0 ? " (\(untold) changes before it were not told)" : ""
            say(usual, MessageID.source, "receiver \(name): \(words)\(more)", fields)
        case .withhold:
            say(.debug, MessageID.source, "receiver \(name): \(words)", fields)
        }
    }

    /// - Parameter isAlarm: somebody has to look at it: nothing is sent to a peer that may be the wrong one.
    func uploadProblem(endpoint: String, _ text: String, failures: Int, isAlarm: Bool = false) {
        say(
            isAlarm ? .error : .warning, MessageID.upload, "upload to \(endpoint): \(text)",
            ["endpoint": endpoint, "failures": String(failures), "state": "failing"])
    }

    func uploadRecovered(endpoint: String, failures: Int) {
        say(
            .notice, MessageID.upload, "upload to \(endpoint) works again after \(failures) failed attempts",
            ["endpoint": endpoint, "failures": String(failures), "state": "ok"])
    }

    /// - Parameter reason: why it is held; nil = it is not any more.
    func linkHeld(endpoint: String, _ reason: String?) {
        say(
            .notice, MessageID.upload,
            "upload to \(endpoint): \(reason ?? "the way out is no longer metered")",
            ["endpoint": endpoint, "state": reason == nil ? "ok" : "held"])
    }

    /// - Parameter row: nil for several.
    func quarantined(endpoint: String, _ count: Int, row: Int64?, _ reason: String) {
        let what = row.map { "location \($0)" } ?? "\(count) locations"
        say(
            .warning, MessageID.upload,
            "upload to \(endpoint): \(what) set aside: \(reason); waypost quarantine list shows what is there",
            ["endpoint": endpoint, "quarantined": String(count), "reason": reason])
    }

    func collision(endpoint: String, _ text: String) {
        say(
            .error, MessageID.upload, "upload to \(endpoint): asset id taken: \(text)",
            ["endpoint": endpoint, "state": "taken"])
    }

    func routeChanged(endpoint: String, to route: String) {
        say(
            .notice, MessageID.upload, "upload to \(endpoint): goes to \(route) now",
            ["endpoint": endpoint, "route": route])
    }

    func uploaded(endpoint: String, batch: String, count: Int) {
        logger.debug("batch \(batch) of \(count) accepted", metadata: ["endpoint": .string(endpoint)])
    }

    func queueProblem(_ text: String, waiting: Int) {
        say(
            .error, MessageID.queue, "queue: \(text); \(waiting) locations are held in memory",
            ["ram_ring_depth": String(waiting), "state": "degraded"])
    }

    func queueRecovered() {
        say(.notice, MessageID.queue, "queue: written to disk again", ["state": "ok"])
    }

    func queueSetAside(_ recovery: Recovery) {
        let copy = recovery.copy ?? "?"
        say(
            .error, MessageID.queue,
            "queue: \(recovery.reason ?? "damaged"); set aside as \(copy), which is worth keeping and reporting; "
                + "a new one is in use, and what can be read is brought back",
            ["copy": copy, "state": "degraded"])
    }

    func queueSalvaged(_ recovery: Recovery) {
        say(
            .notice, MessageID.queue, "queue: \(recovery.salvaged) locations were brought back from the damaged copy",
            ["salvaged": String(recovery.salvaged), "salvage_inversions": String(recovery.inversions)])
    }

    func queueDropped(_ dropped: DropCounts) {
        let counts = [
            ("dropped_oldest", dropped.oldest), ("dropped_newest", dropped.newest), ("thinned", dropped.thinned),
            ("expired", dropped.expired), ("events_dropped", dropped.events),
        ].filter { $0.1 > 0 }
        say(
            .warning, MessageID.queue,
            "queue: its limits were reached: " + counts.map { "\($0.0) \($0.1)" }.joined(separator: ", "),
            Dictionary(uniqueKeysWithValues: counts.map { ($0.0, String($0.1)) }))
    }

    func warning(_ text: String) {
        say(.warning, MessageID.configuration, text)
    }

    func receiverNotice(_ text: String) {
        say(.warning, MessageID.source, text)
    }

    func summary(_ text: String, fields: [String: String]) {
        say(.info, MessageID.summary, text, fields)
    }

    private func metres(_ value: Double) -> String { "\(Int(value.rounded())) m" }
}
