import Configuration
import Delivery
import JSON
import NMEA
import Outbox
import Positioning
import Replay
import Sensors
import Tracking
import Uplink

/// The daemon's health and counters at one instant, for `waypost status`, the service manager and the hourly summary.
struct StatusReport {
    /// The one word for all of it.
    enum Health: String {
        /// Everything works, or waits for nothing but time.
        case ok
        /// Something needs a look; nothing is lost.
        case degraded
    }

    /// Fewer fixes in a row that are not believed are what tunnels and cold starts make.
    private static let unbelievedMin = 60

    let now: EventTime
    let startedAt: EventTime
    let wakeups: Int
    let isClockSynchronised: Bool
    let pipeline: Pipeline
    let recorder: Recorder
    let deliveries: [EndpointDelivery]
    let sent: HTTPUplink.Counters
    /// What power supplies said last, by name; nil = they are not read.
    let supplies: [(name: String, words: String)]?
    /// Why the configuration in the file is not the one in force; nil = it is, or it was not read since the start.
    let configurationProblem: String?

    var problems: [String] {
        var problems: [String] = []
        switch pipeline.sourceState {
        case .receiving, .ended: break
        // A line that is closed on purpose is no problem.
        case _ where pipeline.receiverSleep != nil: break
        case .opening: problems.append("receiver: opening")
        case .silent: problems.append("receiver: silent")
        case .unreadable: problems.append("receiver: bytes but no sentence")
        case .lost(let reason): problems.append("receiver: \(reason)")
        }
        if let unbelieved = pipeline.reception.unbelieved, unbelieved.fixes >= Self.unbelievedMin {
            problems.append(
                "receiver: none of the last \(unbelieved.fixes) fixes was believed: \(unbelieved.reason.advice)")
        }
        if let configurationProblem { problems.append(configurationProblem) }
        if let remark = pipeline.source.remark { problems.append("receiver: \(remark)") }
        if let error = recorder.lastError { problems.append(error.description) }
        for delivery in deliveries {
            if let problem = delivery.lastProblem { problems.append("\(delivery.settings.name): \(problem)") }
            if delivery.schedule.state != .active || delivery.lastProblem != nil, let advice = advice(delivery) {
                problems.append("\(delivery.settings.name): \(delivery.schedule.state.word): \(advice)")
            }
        }
        return problems
    }

    /// `until 2026-03-01T08:00:00.000Z`; nil when the receiver is awake.
    private var sleep: String? {
        switch pipeline.receiverSleep {
        case nil: nil
        case .released: "until waypost pace moving"
        case .until(let until):
            if let time = pipeline.tracker.utc(at: until) {
                "until \(time.iso8601)"
            } else {
                "for another \(ReplayStory.span(Int64(max(0, until.seconds(since: now)) * 1000)))"
            }
        }
    }

    var health: Health { problems.isEmpty ? .ok : .degraded }

    private var waiting: Int { deliveries.map(\.waiting).max() ?? recorder.depth }

    /// `moving, last fix 1 s ago, 12 waiting, last upload 40 s ago`
    var line: String {
        let snapshot = pipeline.tracker.snapshot
        var parts = [snapshot.motion.rawValue]
        if !snapshot.inHours { parts.append("outside the schedule") }
        parts.append(pipeline.reception.lastFixAt.map { "last fix \(age($0)) ago" } ?? "no fix yet")
        if let sleep { parts.append("receiver asleep \(sleep)") }
        parts.append("\(waiting) waiting")
        if let last = deliveries.compactMap(\.lastSuccess).max() { parts.append("last upload \(age(last)) ago") }
        return (parts + problems).joined(separator: ", ")
    }

    var summary: String {
        let tracked = pipeline.tracker.counters
        return "\(line); \(pipeline.source.counters.fixes) fixes, \(tracked.records) kept, "
            + "\(deliveries.map(\.counters.accepted).reduce(0, +)) accepted, "
            + "\(sent.bytesSent) bytes sent since start"
    }

    var fields: [String: String] {
        [
            "fixes": String(pipeline.source.counters.fixes), "kept": String(pipeline.tracker.counters.records),
            "queue_depth": String(waiting), "bytes_sent": String(sent.bytesSent),
            "trips": String(pipeline.tracker.counters.trips),
        ]
    }

    private func age(_ then: EventTime) -> String { ReplayStory.span(Int64(now.seconds(since: then) * 1000)) }

    private func seconds(_ then: EventTime?) -> Double? { then.map { now.seconds(since: $0) } }

    /// The members of the reply to `status`.
    func write(to writer: inout JSONWriter) {
        writer.field("version", AgentVersion.current)
        writer.field("health", health.rawValue)
        writer.field("line", line)
        writer.key("problems")
        writer.beginArray()
        for problem in problems.prefix(Self.problemsMax) { writer.value(Self.shortened(problem)) }
        writer.endArray()
        writer.field("uptime_s", seconds(startedAt), places: 1)
        writer.field("wakeups", wakeups)
        writer.field("repeated_on_fresh_connection", sent.repeatedOnFreshConnection)
        motion(&writer)
        source(&writer)
        power(&writer)
        queue(&writer)
        writeEndpoints(to: &writer)
    }

    private static let problemsMax = 20
    /// Names of many trackables would fill the frame: they get what is left below this size.
    private static let trackablesBytesMax = 28_000

    private func motion(_ writer: inout JSONWriter) {
        let snapshot = pipeline.tracker.snapshot
        let counters = pipeline.tracker.counters
        writer.key("motion")
        writer.beginObject()
        writer.field("state", snapshot.motion.rawValue)
        writer.field("since", snapshot.since?.iso8601)
        writer.field("last_fix", snapshot.lastFixTime?.iso8601)
        writer.field("last_fix_age_s", seconds(pipeline.reception.lastFixAt), places: 1)
        writer.field("odometer", snapshot.odometer, places: 1)
        writer.field("gap_metres", snapshot.gapMetres, places: 1)
        writer.field("trips", counters.trips)
        writer.field("stops", counters.stops)
        writer.field("gaps", counters.gaps)
        writer.field("admitted", counters.admitted)
        writer.key("rejected")
        writer.beginObject()
        for reason in FixFilter.Rejection.allCases where counters.rejected(reason) > 0 {
            writer.key(reason.rawValue)
            writer.value(Int64(counters.rejected(reason)))
        }
        writer.endObject()
        writer.field("kept", counters.records)
        writer.field("subscribers_refused", counters.subscribersRefused)
        snapshot.writeEngine(to: &writer)
        geofences(snapshot, counters, &writer)
        writer.field("trackables", snapshot.trackables.count)
        writer.key("resolutions")
        writer.beginObject()
        for trackable in snapshot.trackables where writer.bytes.count < Self.trackablesBytesMax {
            writer.key(trackable.id)
            writer.beginObject()
            trackable.write(to: &writer)
            writer.endObject()
        }
        writer.endObject()
        if let boost = snapshot.boost {
            writer.key("boost")
            writer.beginObject()
            writer.field("interval_ms", boost.intervalMs)
            writer.field("displacement", boost.displacement)
            writer.field("until", snapshot.boostUntil?.iso8601)
            writer.endObject()
        }
        if let schedule = pipeline.schedule {
            writer.key("schedule")
            writer.beginObject()
            writer.field("open", snapshot.inHours)
            writer.field("until", schedule.until?.iso8601)
            writer.endObject()
        }
        writer.endObject()
    }

    /// Names of many fences would fill the frame.
    private static let insideMax = 32

    private func geofences(
        _ snapshot: TrackerSnapshot, _ counters: TrackerCounters, _ writer: inout JSONWriter
    ) {
        writer.key("geofences")
        writer.beginObject()
        writer.field("fences", snapshot.fences)
        writer.field("inside", snapshot.inside.count)
        writer.key("ids")
        writer.beginArray()
        for id in snapshot.inside.prefix(Self.insideMax) { writer.value(id) }
        writer.endArray()
        writer.field("crossings", counters.records(.geofence))
        writer.field("refused", snapshot.fencesRefused)
        writer.field("stays_untold", snapshot.staysUnrecorded)
        writer.endObject()
    }

    private func source(_ writer: inout JSONWriter) {
        let counters = pipeline.source.counters
        writer.key("source")
        writer.beginObject()
        writer.field("name", pipeline.source.name)
        switch pipeline.sourceState {
        case _ where sleep != nil:
            writer.field("state", word: "asleep")
            writer.field("reason", sleep)
        case .opening: writer.field("state", word: "opening")
        case .receiving: writer.field("state", word: "receiving")
        case .silent: writer.field("state", word: "silent")
        case .unreadable: writer.field("state", word: "unreadable")
        case .lost(let reason):
            writer.field("state", word: "lost")
            writer.field("reason", reason)
        case .ended: writer.field("state", word: "ended")
        }
        if let rate = pipeline.source.rate {
            writer.key("rate")
            writer.beginObject()
            writer.field("wanted_ms", rate.wanted)
            writer.field("measured_ms", rate.measured)
            writer.field("honoured", rate.isHonoured)
            writer.endObject()
        }
        writer.field("last_epoch_age_s", seconds(pipeline.reception.lastEpochAt), places: 1)
        writer.field("bytes", counters.bytes)
        writer.field("sentences", counters.sentences)
        writer.field("fixes", counters.fixes)
        writer.field("void_epochs", counters.voidEpochs)
        writer.field("checksum_errors", counters.checksumErrors)
        writer.field("too_long", counters.tooLong)
        writer.field("bad_bytes", counters.badBytes)
        writer.field("bad_fields", counters.badFields)
        writer.field("late", counters.late)
        writer.field("dateless", counters.dateless)
        (pipeline.source as? GPSDSource)?.write(to: &writer)
        writer.endObject()
    }

    private func queue(_ writer: inout JSONWriter) {
        writer.key("queue")
        writer.beginObject()
        writer.field("queue_depth", recorder.depth)
        writer.field("ram_ring_depth", recorder.held)
        writer.field("ram_ring_dropped", recorder.ringDropped)
        writer.field("sent_from_ram", recorder.sentFromRAM)
        writer.field("queue_bytes", recorder.bytesOnDisk)
        writer.field("commits", recorder.counters.commits)
        writer.field("commit_latency_s", recorder.counters.slowestCommit, places: 3)
        writer.field("commit_failed", recorder.counters.commitsFailed)
        writer.field("dropped_oldest", recorder.counters.dropped.oldest)
        writer.field("dropped_newest", recorder.counters.dropped.newest)
        writer.field("thinned", recorder.counters.dropped.thinned)
        writer.field("expired", recorder.counters.dropped.expired)
        writer.field("events_dropped", recorder.counters.dropped.events)
        writer.field("corrupt_recovered", recorder.recovery.corruptRecovered)
        writer.field("salvaged", recorder.recovery.salvaged)
        writer.field("salvage_inversions", recorder.recovery.inversions)
        writer.field("last_seq", recorder.latest.lastSeq)
        writer.field("clock_untrusted", isClockSynchronised ? 0 : 1)
        writer.field("disk_error", recorder.lastError?.description)
        writer.endObject()
    }
}

extension FixFilter.Rejection {
    /// What is wrong with a receiver all of whose fixes are refused for this reason, and what to do.
    fileprivate var advice: String {
        switch self {
        case .position: "they name no place on earth: give the antenna a view of the sky"
        case .simulated: "the receiver calls them simulated: set allow_simulated in [tracking] if that is meant"
        case .dateless: "the receiver gives no date: let it send RMC or ZDA sentences"
        case .duplicate: "they are all the same: start the receiver again"
        case .age: "their time does not go on: start the receiver again"
        case .accuracy:
            "they are less accurate than accuracy_limit in [tracking]: give the antenna a view of the sky, or raise it"
        case .impliedSpeed: "they leap faster than speed_limit in [tracking]: look for interference, or raise it"
        }
    }
}
