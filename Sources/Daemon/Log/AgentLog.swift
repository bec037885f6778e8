import Logging
import Places
import Queue
import WaypostCore
import WaypostTracking

/// The daemon's log for people: one line for each start, stop, motion change, receiver state and upload problem, and a summary
/// an hour. Never a line per fix or per upload above debug. Coordinates only at debug with `log.positions`.
///
/// Each kind of event has a MESSAGE_ID of its own, so that `journalctl MESSAGE_ID=…` finds it in any wording.
package struct AgentLog {
    /// What is logged. All copies of the log share it.
    private final class Verbosity {
        var level: Logger.Level
        /// Whether coordinates may appear, at debug.
        var positions: Bool

        init(level: Logger.Level, positions: Bool) {
            self.level = level
            self.positions = positions
        }
    }

    private let logger: Logger
    private let verbosity: Verbosity

    package init(logger: Logger, positions: Bool) {
        verbosity = Verbosity(level: logger.logLevel, positions: positions)
        var logger = logger
        logger.logLevel = .trace
        self.logger = logger
    }

    /// From now on, for all copies.
    func set(level: Logger.Level, positions: Bool) {
        verbosity.level = level
        verbosity.positions = positions
    }

    private func log(
        _ level: Logger.Level, _ id: MessageID?, _ message: String, _ fields: [String: String] = [:],
        trackables: [String] = []
    ) {
        guard level >= verbosity.level else { return }
        var metadata: Logger.Metadata = fields.mapValues { .string($0) }
        if let id { metadata["message_id"] = .string(id.rawValue) }
        if !trackables.isEmpty { metadata["trackable"] = .array(trackables.map { .string($0) }) }
        logger.log(level: level, "\(message)", metadata: metadata)
    }

    /// - Parameter endpoints: by name; live channels too.
    func started(version: String, source: String, endpoints: [String], waiting: Int) {
        log(
            .notice, .started,
            "waypost \(version) started: reading \(source), "
                + (endpoints.isEmpty
                    ? "no server is configured yet, drives are stored on this device until `sudo waypost init` sets one up"
                    : "uploading to \(endpoints.joined(separator: ", "))")
                + (waiting > 0 ? ", \(locations(waiting)) queued from before" : ""),
            ["version": version, "source": source, "waiting": String(waiting)])
    }

    func startupFailed(_ error: StartupError) {
        log(.critical, .refused, "\(error)", ["status": String(error.exitCode)])
    }

    func stopping(why: String) {
        log(.notice, .stopping, "stopping: \(why)", ["reason": why])
    }

    func stopped(waiting: Int) {
        log(
            .notice, .stopping,
            waiting == 0
                ? "stopped, queue empty" : "stopped, \(locations(waiting)) queued on disk for the next start",
            ["waiting": String(waiting)])
    }

    func lost(_ count: Int, because reason: String?) {
        log(
            .error, .queue,
            "queue: lost \(locations(count)) that could not be stored: \(reason ?? "the disk did not answer in time")",
            ["lost": String(count), "state": "failed"])
    }

    func hoursChanged(open: Bool, until: UTCTime?) {
        let words = until.map { " until \($0.iso8601)" } ?? ""
        log(
            .info, .schedule, "schedule: \(open ? "tracking" : "not tracking")\(words)",
            ["state": open ? "open" : "closed", "until": until?.iso8601 ?? ""])
    }

    /// - Parameter trackables: whose motion it is.
    func motionChanged(_ change: MotionChange, of trackables: [String]) {
        let state = change.moving ? "moving" : "stationary"
        let since = change.since.map { " since \($0.iso8601)" } ?? ""
        var numbers = "evidence \(metres(change.evidence.evidence)) m, distance \(metres(change.evidence.distance)) m"
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
            numbers += ", accuracy \(metres(accuracy)) m"
        }
        log(
            .notice, .motion, "\(state)\(since) (\(change.reason.rawValue): \(numbers))", fields,
            trackables: trackables)
        if verbosity.positions {
            log(.debug, nil, "at \(change.coordinate.latitude) \(change.coordinate.longitude)")
        }
    }

    /// - Parameters:
    ///   - unreadable: words for bytes that are no sentences.
    ///   - silenceCause: what to look at where nothing arrives.
    ///   - expected: it is what the receiver was asked for, and happens many times a day.
    ///   - lines: how many may be logged: a plug with a bad contact does not fill the journal.
    func sourceChanged(
        _ name: String, _ state: SourceState, unreadable: String, silenceCause: String?, expected: Bool = false,
        lines: inout LineBudget,
        at now: EventTime
    ) {
        let (usual, words, word): (Logger.Level, String, String) =
            switch state {
            case .opening: (.info, "opening", "opening")
            case .receiving: (.notice, "receiving", "receiving")
            case .silent:
                (
                    .warning,
                    "silent: the line is open, but nothing arrives" + (silenceCause.map { "; \($0)" } ?? ""), "silent"
                )
            case .unreadable:
                (.warning, "unreadable: \(unreadable)", "unreadable")
            case .lost(let reason): (.warning, "lost: \(reason)", "lost")
            case .ended: (.notice, "end of input", "ended")
            }
        let fields = ["source": name, "state": word]
        if expected && (state == .opening || state == .receiving) {
            return log(.debug, .source, "receiver \(name): \(words)", fields)
        }
        switch lines.spend(at: now) {
        case .write(let withheld):
            log(usual, .source, "receiver \(name): \(words)\(Self.more(withheld))", fields)
        case .withhold:
            log(.debug, .source, "receiver \(name): \(words)", fields)
        }
    }

    /// - Parameter isAlarm: a person has to look at it: nothing is sent to a peer that may be the wrong one.
    func uploadProblem(endpoint: String, _ text: String, failures: Int, isAlarm: Bool = false) {
        log(
            isAlarm ? .error : .warning, .upload, "upload to \(endpoint): \(text)",
            ["endpoint": endpoint, "failures": String(failures), "state": "failing"])
    }

    /// Before anything was sent to it.
    func reached(endpoint: String) {
        log(
            .info, .upload, "server of \(endpoint) reached, nothing sent since the start",
            ["endpoint": endpoint, "state": "ok"])
    }

    func uploadRecovered(endpoint: String, failures: Int) {
        log(
            .notice, .upload,
            "upload to \(endpoint) works again"
                + (failures > 0 ? " after \(InWords.count(failures, "failed attempt"))" : ""),
            ["endpoint": endpoint, "failures": String(failures), "state": "ok"])
    }

    /// - Parameter reason: why it is held; nil = it is not any more.
    func linkHeld(endpoint: String, _ reason: String?) {
        log(
            .notice, .upload,
            "upload to \(endpoint): \(reason ?? "its route is no longer metered, uploads go on")",
            ["endpoint": endpoint, "state": reason == nil ? "ok" : "held"])
    }

    /// - Parameter row: nil for several.
    func quarantined(endpoint: String, _ count: Int, row: Int64?, _ reason: String) {
        let what = row.map { "location \($0)" } ?? "\(count) locations"
        log(
            .warning, .quarantine,
            "upload to \(endpoint): \(what) quarantined: \(reason); `waypost quarantine list` shows what is there",
            ["endpoint": endpoint, "quarantined": String(count), "reason": reason])
    }

    /// Something is the matter with an endpoint that goes on.
    func remark(endpoint: String, _ text: String) {
        log(.warning, .upload, "upload to \(endpoint): \(text)", ["endpoint": endpoint, "state": "ok"])
    }

    func collision(endpoint: String, _ text: String) {
        log(
            .error, .upload, "upload to \(endpoint): another device reports this asset: \(text)",
            ["endpoint": endpoint, "state": "taken"])
    }

    func routeChanged(endpoint: String, to route: String) {
        log(
            .notice, .upload, "upload to \(endpoint): sent to \(route) from now on",
            ["endpoint": endpoint, "route": route])
    }

    func uploaded(endpoint: String, batch: String, count: Int) {
        log(.debug, nil, "batch \(batch) of \(count) accepted", ["endpoint": endpoint])
    }

    func queueProblem(_ text: String, waiting: Int) {
        log(
            .error, .queue, "queue: \(text); \(locations(waiting)) held in memory",
            ["ram_ring_depth": String(waiting), "state": "degraded"])
    }

    /// Rows on disk could not be read for ten minutes.
    func queueUnreadable(_ path: String) {
        log(
            .error, .queue,
            "queue: \(path) cannot be read; newer locations are sent, those on disk follow when they can be read",
            ["state": "degraded"])
    }

    func queueRecovered() {
        log(.notice, .queue, "queue: written to disk again", ["state": "ok"])
    }

    func queueSetAside(_ recovery: Recovery) {
        let copy = recovery.copy ?? "?"
        log(
            .error, .queue,
            "queue: \(recovery.reason ?? "damaged"); moved to \(copy); "
                + "a new queue is in use, and what can be read of the old one is restored",
            ["copy": copy, "state": "degraded"])
    }

    /// - Parameter words: what another program has done to the files of the queue.
    func queueReplaced(_ words: String) { log(.error, .queue, "queue: \(words)", ["state": "degraded"]) }

    func keptForRemoved(endpoint: String, _ rows: Int) {
        log(
            .warning, .queue,
            "endpoint \(endpoint) is no longer configured: \(locations(rows)), and all that are recorded later, are kept "
                + "for it while the queue has space, or until `waypost queue forget \(endpoint)` deletes them",
            ["endpoint": endpoint, "waiting": String(rows)])
    }

    func moved(_ depth: EndpointDepth) {
        guard depth.isMoved else { return }
        let rows = depth.waiting + depth.inFlight
        log(
            .notice, .queue,
            "endpoint \(depth.endpoint): base_url has changed, and the server at the old address had accepted nothing: what "
                + "waited for it goes to the new address (\(locations(rows)))",
            ["endpoint": depth.endpoint, "waiting": String(rows)])
    }

    func queueSalvaged(_ recovery: Recovery) {
        log(
            .notice, .queue, "queue: restored \(locations(recovery.salvaged)) from the damaged copy",
            ["salvaged": String(recovery.salvaged), "salvage_inversions": String(recovery.inversions)])
    }

    /// Rows were not found in a damaged copy.
    func queueMisses(_ recovery: Recovery) {
        if let words = recovery.missingWords { log(.error, .queue, words, ["missing": String(recovery.missing)]) }
    }

    /// Rows of a damaged queue were given up.
    func queueLost(_ recovery: Recovery) {
        guard let words = recovery.lostWords else { return }
        log(.error, .queue, words, ["lost_rows": String(recovery.lostRows)])
    }

    /// - Parameter total: rows since the start, these included.
    func queueDropped(_ dropped: DropCounts, total: Int) {
        let parts = dropped.parts
        let isMore = total > parts.reduce(0) { $0 + $1.count }
        log(
            .warning, .queue,
            "queue: its limits were reached, and locations were removed: "
                + parts.map { "\($0.count) \($0.words)" }.joined(separator: ", ")
                + (isMore ? "; \(total) since the start" : ""),
            Dictionary(uniqueKeysWithValues: parts.map { ($0.field, String($0.count)) }))
    }

    /// - Parameter arrive: by requests; false = not any more.
    func channelByRequests(_ name: String, _ arrive: Bool, lines: inout LineBudget, at now: EventTime) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(
            .info, .upload,
            "channel \(name): " + (arrive ? "no connection, publishing by requests" : "no more publishing by requests")
                + Self.more(withheld),
            ["channel": name, "state": arrive ? "by-requests" : "connection"])
    }

    /// - Parameters:
    ///   - problem: what the service says is wrong; nil = nothing.
    ///   - lines: how many may be logged: a service may end each connection at once.
    func channelChanged(
        _ name: String, _ state: String, _ problem: String?, lines: inout LineBudget, at now: EventTime
    ) {
        let level: Logger.Level =
            switch state {
            // What has failed is told as a problem.
            case "connected", "suspended": .info
            // The reason of an end is news.
            case "disconnected" where problem != nil: .info
            default: .debug
            }
        var more = ""
        if level > .debug {
            guard case .write(let withheld) = lines.spend(at: now) else { return }
            more = Self.more(withheld)
        }
        log(
            level, .upload,
            "channel \(name): \(state)" + (problem.map { ": \($0)" } ?? "") + more,
            ["channel": name, "state": state])
    }

    func channelProblem(_ name: String, _ problem: String, lines: inout LineBudget, at now: EventTime) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(.warning, .upload, "channel \(name): \(problem)\(Self.more(withheld))", ["channel": name])
    }

    /// - Parameter subject: what was wrong.
    func channelProblemEnded(_ name: String, _ subject: String, lines: inout LineBudget, at now: EventTime) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(
            .notice, .upload, "channel \(name): nothing is wrong any more with \(subject)\(Self.more(withheld))",
            ["channel": name])
    }

    /// - Parameter count: of the fences of the list.
    /// - Parameters:
    ///   - list: its kind and name.
    ///   - noun: what it lists.
    func listReceived(_ list: String, _ count: Int, _ noun: String, _ change: ListChange) {
        log(
            change.isEmpty ? .debug : .notice, .places,
            "\(list): \(InWords.count(count, noun)): \(change.added) added, \(change.gone) gone, \(change.changed) changed",
            [
                "list": list, "state": "received", "count": String(count),
                "added": String(change.added), "gone": String(change.gone), "changed": String(change.changed),
            ])
    }

    /// - Parameters:
    ///   - list: its kind and name.
    ///   - next: seconds until the next attempt.
    ///   - hasList: one that came before is in force.
    func listNotFetched(_ list: String, _ problem: String, next: Double, hasList: Bool) {
        log(
            .warning, .places,
            "\(list): \(problem); \(hasList ? "the list of before stays in force" : "there is no list yet"), next attempt in "
                + InWords.span(seconds: next),
            ["list": list, "state": "failed", "reason": problem])
    }

    /// - Parameter turn: how long it was being received.
    func listGaveWay(_ list: String, after turn: Duration) {
        log(
            .info, .places,
            "\(list): the server did not send it within \(InWords.span(seconds: turn.inSeconds)), and other lists wait: it is asked "
                + "for again after them",
            ["list": list, "state": "waiting"])
    }

    func listFetchedAgain(_ list: String) {
        log(.notice, .places, "\(list): the server answers again", ["list": list, "state": "received"])
    }

    func keptListUnusable(_ list: String, _ problem: String) {
        log(
            .warning, .places, "\(list): the list that was kept cannot be used: \(problem)",
            ["list": list, "state": "unusable", "reason": problem])
    }

    func listNotKept(_ list: String, _ problem: String) {
        log(
            .warning, .places, "\(list): the list cannot be kept for the next start: \(problem)",
            ["list": list, "state": "not-kept", "reason": problem])
    }

    /// - Parameter lines: how many may be logged: a viewer may come and go many times a second.
    func ruleChanged(
        to rule: LocationSampler.Rule, because reason: LocationSampler.RuleReason, lines: inout LineBudget,
        at now: EventTime
    ) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(
            .info, .configuration,
            "locations are kept by the rule \(rule.rawValue) from now on: \(reason.words)\(Self.more(withheld))",
            ["rule": rule.rawValue, "reason": reason.words])
    }

    func warning(_ text: String) {
        log(.warning, .configuration, text)
    }

    /// - Parameters:
    ///   - live: keys that took effect.
    ///   - atRestart: keys that did not.
    ///   - withheld: reloads before this one that said the same and were not logged.
    func reloaded(live: [String], atRestart: [String], withheld: Int) {
        let now =
            live.isEmpty ? "nothing changed that takes effect now" : "in effect now: \(live.joined(separator: ", "))"
        let later = atRestart.isEmpty ? "" : "; after a restart: \(atRestart.joined(separator: ", "))"
        log(
            atRestart.isEmpty ? .notice : .warning, .configuration,
            "configuration reloaded; \(now)\(later)\(earlier(withheld))",
            ["state": "reloaded", "live": live.joined(separator: ","), "restart": atRestart.joined(separator: ",")])
    }

    private func earlier(_ withheld: Int) -> String {
        withheld > 0 ? " (\(withheld) reloads before this one said the same and were not logged)" : ""
    }

    /// - Parameters:
    ///   - problems: one line each.
    ///   - withheld: as above.
    func reloadRefused(_ problems: [String], withheld: Int) {
        for problem in problems.prefix(20) {
            log(.error, .configuration, "configuration refused: \(problem)", ["state": "refused"])
        }
        log(
            .error, .configuration,
            "configuration refused (\(InWords.count(problems.count, "problem"))), "
                + "the previous one stays in force\(earlier(withheld))", ["state": "refused"])
    }

    /// - Parameter clamped: keys that became an end of their range.
    func remoteApplied(version: Int64, clamped: [String]) {
        let limits = clamped.isEmpty ? "" : "; at the end of their range: \(clamped.joined(separator: ", "))"
        log(
            .notice, .remoteApplied, "settings from afar: version \(version) is in force, on trial\(limits)",
            ["remote_version": String(version), "clamped": clamped.joined(separator: ",")])
    }

    /// - Parameter problems: one line each.
    func remoteRejected(version: Int64, _ problems: [String]) {
        let more = problems.count > 1 ? " and \(problems.count - 1) more" : ""
        log(
            .warning, .remoteRejected,
            "settings from afar: version \(version) is rejected: \(problems.first ?? "")\(more)",
            ["remote_version": String(version), "reason": problems.first ?? ""])
    }

    /// - Parameter former: nil = the file alone.
    func remoteReverted(version: Int64, to former: Int64?, because reason: String) {
        let back = former.map { "version \($0)" } ?? "the file"
        log(
            .warning, .remoteReverted,
            "settings from afar: version \(version) is taken back, \(back) is in force: \(reason)",
            ["remote_version": String(version), "reason": reason, "state": former.map { String($0) } ?? "file"])
    }

    func commandEnded(_ id: String, _ verb: String, _ outcome: String) {
        log(
            .notice, .remoteCommand, "command from afar: \(verb) (\(id)): \(outcome)",
            ["remote_command": verb, "state": outcome])
    }

    func commandRefused(_ id: String, _ code: String, _ reason: String) {
        log(
            .notice, .remoteCommand, "command from afar: \(id) was not carried out: \(code), \(reason)",
            ["remote_command": id, "state": code])
    }

    /// The daemon started with the last good configuration.
    /// - Parameter problems: of the one in the file.
    func lastGoodInForce(_ problems: [String]) {
        for problem in problems.prefix(20) {
            log(.warning, .configuration, "configuration refused: \(problem)", ["state": "last-good"])
        }
        log(
            .warning, .configuration,
            "configuration refused (\(InWords.count(problems.count, "problem"))), running on the "
                + "last good one; `waypost check` reports the same, and `waypost reload` reads the mended file",
            ["state": "last-good"])
    }

    func notKept(_ reason: String) {
        log(
            .info, .configuration,
            "no backup of this configuration is kept, which is harmless when started by hand: \(reason)")
    }

    /// Metrics cannot be served or written; tried again every minute.
    func metricsProblem(_ text: String) {
        log(.warning, .configuration, "metrics: \(text); tried again every minute", ["state": "failing"])
    }

    func supplyChanged(_ name: String, _ words: String, isProblem: Bool) {
        log(
            isProblem ? .warning : .info, .power, "power supply \(name): \(words)",
            ["supply": name, "state": isProblem ? "unreadable" : words == "gone" ? "gone" : "ok"])
    }

    /// - Parameter problem: why no beacon is looked for at the moment; nil = they are.
    func beaconsChanged(_ problem: String?, lines: inout LineBudget, at now: EventTime) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(
            .info, .source,
            "beacons: " + (problem.map { "not scanning: \($0); tried again" } ?? "scanning") + Self.more(withheld),
            ["state": problem == nil ? "scanning" : "waiting"])
    }

    /// Of lines before this one; empty where none was withheld.
    private static func more(_ withheld: Int) -> String {
        withheld > 0 ? " (\(withheld) changes before this one were not logged)" : ""
    }

    /// - Parameter reason: as in the record: `power-on`, `power-off`, `moved-without-power`.
    func powerChanged(_ reason: String?, _ power: PowerState) {
        let words =
            switch reason {
            case "power-on": "external power is back"
            case "power-off": "external power is gone"
            default: reason ?? "changed"
            }
        let level = power.batteryPercent.map { "battery at \($0) %" } ?? "battery unknown"
        logPower(reason == "power-on" ? .notice : .warning, "\(words), \(level)", reason, power)
    }

    func batteryLow(_ power: PowerState) {
        let level = power.batteryPercent.map { ", \($0) %" } ?? ""
        logPower(.warning, "the battery is low\(level)", "battery-low", power)
    }

    private func logPower(_ level: Logger.Level, _ words: String, _ reason: String?, _ power: PowerState) {
        log(
            level, .power, "power: \(words)",
            ["reason": reason ?? "", "battery": power.batteryPercent.map(String.init) ?? ""])
    }

    func receiverNotice(_ text: String, lines: inout LineBudget, at now: EventTime) {
        guard case .write(let withheld) = lines.spend(at: now) else { return }
        log(.warning, .source, text + Self.more(withheld))
    }

    func summary(_ text: String, fields: [String: String]) {
        log(.info, .summary, text, fields)
    }

    private func metres(_ value: Double) -> String { String(InWords.whole(value)) }

    /// `1 location`, `2 locations`
    private func locations(_ count: Int) -> String { InWords.count(count, "location") }
}

extension DropCounts {
    /// Those that are not 0, in fields of the journal and for people: `1200 of the oldest, 3 events`.
    var parts: [(field: String, count: Int, words: String)] {
        [
            ("dropped_oldest", oldest, "of the oldest"), ("dropped_newest", newest, "that came last"),
            ("thinned", thinned, "thinned out"), ("expired", expired, "too old"),
            ("events_dropped", events, events == 1 ? "event" : "events"),
        ]
        .filter { $0.1 > 0 }
    }
}

extension Recovery {
    /// What was not found so far, with the cure; nil = nothing.
    var missingWords: String? {
        guard let first = incomplete.first else { return nil }
        let rows = missing > 0 ? "\(InWords.count(missing, "location"))" : "some locations"
        return "queue: \(rows) of a damaged queue may not have been found: \(first)"
            + (incomplete.count > 1 ? " and \(InWords.count(incomplete.count - 1, "other copy", "other copies"))" : "")
            + " is read again from time to time; check power supply and card, `dmesg` reports failing ones"
    }

    /// What is lost, with the cure; nil = nothing within the last week, or it is not known when.
    ///
    /// - Parameters:
    ///   - age: since this process gave some of it up, by the boot clock; nil = an earlier one did.
    ///   - trusted: see `TrustedTime`.
    func recentLossWords(after age: Duration?, trusted: UTCTime?) -> String? {
        let dated = lostAt.flatMap { lost in trusted.map { Duration.milliseconds($0.milliseconds - lost.milliseconds) }
        }
        guard let age = age ?? dated, age < .seconds(7 * 86_400) else { return nil }
        return lostWords
    }

    /// What is lost, with the cure; nil = nothing.
    var lostWords: String? {
        guard lostRows > 0 else { return nil }
        return "queue: \(InWords.count(lostRows, "location")) of a damaged queue could not be brought back: "
            + "check power supply and card; `dmesg` reports failing ones"
    }
}
