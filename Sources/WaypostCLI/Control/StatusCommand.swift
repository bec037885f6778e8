import ArgumentParser
import Configuration
import Glibc
import WaypostControl
import WaypostCore

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show state, health and counters of the running daemon.",
        discussion: """
            What it does now, its receiver, servers and queue, and what is wrong; --all prints everything.

            Exit status: 0 all is well, 1 something needs attention, 2 no daemon answers.
            """)

    @OptionGroup var daemon: DaemonOptions

    @Flag(name: .customLong("all"), help: "Print everything that there is to know.")
    var printsAll = false

    @Flag(name: .customLong("where"), help: "Also print where the asset is: not for a report that others read.")
    var saysWhere = false

    @Flag(help: "Print everything as one JSON object.")
    var json = false

    @Flag(help: "Print the metrics in the text format of Prometheus.")
    var prometheus = false

    func validate() throws {
        if json, prometheus { throw ValidationError("--json and --prometheus exclude each other.") }
        if saysWhere, json || prometheus || printsAll {
            throw ValidationError("--where belongs to the short form alone.")
        }
    }

    func run() throws {
        let (summary, reply) = try daemon.status(at: daemon.place())
        if prometheus {
            if let more = summary.endpointsMore {
                printError("waypost: \(more) more endpoints do not fit: see [metrics]")
            }
            printText(Exposition.prometheus.text(summary), terminator: "")
        } else if json {
            printJSON(String(decoding: reply, as: UTF8.self))
        } else {
            let isTerminal = isatty(STDOUT_FILENO) == 1
            let isColoured = isTerminal && getenv("NO_COLOR").map { $0.pointee == 0 } ?? true
            for line in try lines(summary) {
                let colour = isColoured ? Self.colour(of: line) : nil
                // What is copied from a file or a pipe stays on its line.
                let parts = isTerminal ? StatusPage.wrapped(line, columns: Terminal.columns) : [line]
                for part in parts { printLine(part, colour: colour) }
            }
        }
        try finishOutput()
        if summary.health != "ok" { throw ExitCode(1) }
    }
}

extension StatusCommand {
    private func lines(_ status: Status) throws -> [String] {
        if printsAll { return status.lines }
        let look = saysWhere ? try daemon.send(LookRequest()) : nil
        let now = UTCTime(milliseconds: Int64(time(nil)) * 1000)
        return StatusPage(status: status, look: look, now: now, local: LocalTime.words).lines
    }

    /// Red or green; nil = as it is.
    private static func colour(of line: String) -> String? {
        line.hasPrefix("problem") || line.hasSuffix(": degraded") ? "31" : line.hasSuffix(": ok") ? "32" : nil
    }
}

extension DaemonOptions {
    /// What the daemon says of itself, and what is wrong with its file, which it cannot know before it has read it again.
    /// - Returns: the status, and the reply with the same in it.
    func status(at place: (socket: NamedPath, problems: [ConfigurationProblem])) throws -> (Status, reply: [UInt8]) {
        let reply = try ask(StatusRequest(), at: place)
        var status: Status = try Self.read(reply)
        let mistakes = place.problems.filter { !$0.dependsOnReader }
        guard let mistake = mistakes.first, status.configuration == "current" else { return (status, reply) }
        let more = mistakes.count > 1 ? " and \(mistakes.count - 1) more" : ""
        let problem = "configuration: the file cannot be used any more: \(mistake)\(more)"
        status.health = "degraded"
        status.problems.append(problem)
        return (status, Self.degraded(reply, problem))
    }

    /// The reply with one problem more.
    private static func degraded(_ reply: [UInt8], _ problem: String) -> [UInt8] {
        guard let members = JSONReader.read(reply)?.members else { return reply }
        return JSONValue.object(
            members.map { member in
                switch member.name {
                case "health": .init("health", .string("degraded"))
                case "problems": .init("problems", .array((member.value.items ?? []) + [.string(problem)]))
                default: member
                }
            }
        ).bytes
    }
}

extension Status {
    /// More would push what is wrong off the page.
    private static let trackablesShown = 20

    fileprivate var lines: [String] {
        var lines = ["waypost \(version): \(health)"]
        lines.append(
            "receiver   \(source.name): \(source.state)\(source.reason.map { " (\($0))" } ?? ""), "
                + "\(source.sentences) sentences, \(source.fixes) fixes")
        if let gpsd = source.gpsd { lines.append("           \(gpsd.text)") }
        lines.append(
            "motion     \(motion.state)\(motion.since.map { " since \($0)" } ?? "")"
                + (motion.lastFix.map { ", last fix \($0)" } ?? ", no fix yet"))
        if let activity = motion.activityText { lines.append("activity   \(activity)") }
        if let power = power.text { lines.append("power      \(power)") }
        if let schedule = motion.schedule {
            let until = schedule.until.map { " until \($0)" } ?? ""
            lines.append("schedule   \(schedule.open ? "tracking" : "not tracking")\(until)")
        }
        if let boost = motion.boost { lines.append("boost      \(boost.until.map { "until \($0)" } ?? "on")") }
        lines.append(
            "track      \(motion.kept) kept, \(InWords.count(motion.trips, "trip")), "
                + "\(InWords.count(motion.stops, "stop")), "
                + "odometer \(Int(min(max(0, motion.odometer), 1e12))) m")
        if let rule = motion.rule {
            lines.append("rule       \(rule)\(motion.ruleBecause.map { " (\($0))" } ?? "")")
        }
        lines.append("engine     \(motion.engine.text)")
        let shown = motion.resolutions.entries.sorted { $0.name < $1.name }.prefix(Self.trackablesShown)
        for entry in shown { lines.append("trackable  \(entry.name): \(entry.value.text)") }
        let more = max(0, motion.trackables) - shown.count
        if more > 0 {
            lines.append("           and \(InWords.count(more, "more trackable")): see --json")
        }
        if let geofences = motion.geofences, geofences.fences > 0 { lines.append("geofences  \(geofences.text)") }
        for source in motion.geofences?.sources ?? [] { lines.append("           \(source.words)") }
        if let beacons { lines.append("beacons    \(beacons.text)") }
        for source in beacons?.sources ?? [] { lines.append("           \(source.words)") }
        let kept = queue.depth > waiting ? ", \(queue.depth) kept on disk and in memory" : ""
        lines.append("queue      \(InWords.count(waiting, "location waits", "locations wait"))\(kept)")
        if hasNoServer { lines.append("endpoint   \(Status.noServer)") }
        for endpoint in endpoints {
            lines += endpoint.lines.enumerated().map { ($0.offset == 0 ? "endpoint   " : "         ") + $0.element }
        }
        for channel in channels ?? [] { lines += channel.lines }
        if let remote { lines += remote.lines }
        for problem in problems { lines.append("problem    \(problem)") }
        return lines
    }
}

extension MotionStatus {
    /// `on foot (85 %)`; nil when unknown.
    var activityText: String? {
        activity.map { kind in
            let words = kind.split(separator: "_").joined(separator: " ")
            return activityConfidence.map { "\(words) (\($0) %)" } ?? words
        }
    }
}

extension ChannelStatus {
    /// `channel    live: connected`, and who watches.
    fileprivate var lines: [String] {
        let unread = unfit > 0 ? ", \(InWords.count(unfit, "location")) without an accuracy not shown" : ""
        var lines = ["channel    \(name): \(state)\(problem.map { ", \($0)" } ?? "")\(unread)"]
        for (id, watched) in trackables.entries.map({ ($0.name, $0.value) }) {
            let asked = watched.requests.entries.map { "\($0.name) asks for \($0.value.text)" }
            let who = ["\(watched.state), \(InWords.count(watched.viewers, "viewer"))"] + asked
            lines.append("           \(id): \(who.joined(separator: "; "))")
        }
        return lines
    }
}

extension GeofencesStatus {
    fileprivate var text: String {
        guard inside > 0 else { return "outside of \(fences == 1 ? "one geofence" : "all \(fences)")" }
        let more = inside - ids.count
        return "inside \(ids.joined(separator: ", "))\(more > 0 ? " and \(more) more" : "")"
    }
}

extension GPSDStatus {
    /// `gpsd 3.22 with /dev/ttyACM0 (u-blox)`, the one in use if there is one.
    fileprivate var text: String {
        let shown = devices.filter { device == nil || $0.path == device }
        let names = shown.map { "\($0.path)\($0.driver.map { " (\($0))" } ?? "")" }
        return "gpsd \(release) \(names.isEmpty ? "without a device" : "with \(names.joined(separator: ", "))")"
    }
}

extension PowerStatus {
    /// nil where nothing is known.
    fileprivate var text: String? {
        let parts = [
            battery.map { "battery \($0) %\(low ? " (low)" : "")" },
            charging.map { $0 ? "charging" : "not charging" },
            external.map { $0 ? "external power" : "no external power" },
        ].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }
}

extension BeaconStatus {
    fileprivate var text: String {
        let places =
            inside.isEmpty ? "in none of \(InWords.count(regions, "region"))" : "in " + inside.joined(separator: ", ")
        return "\(state)\(reason.map { " (\($0))" } ?? ""), \(places)"
    }
}
