import ArgumentParser
import FoundationEssentials

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Ask the running daemon how it is.",
        discussion: "Exit status: 0 all is well, 1 something needs a look, 2 no daemon answers.")

    @OptionGroup var daemon: DaemonOptions

    @Flag(help: "Everything, as one JSON object.")
    var json = false

    func run() throws {
        let reply = try daemon.ask(#"{"id":1,"do":"status"}"#)
        guard let summary = try? JSONDecoder().decode(StatusSummary.self, from: Data(reply)) else {
            throw fail("unexpected reply from the daemon", exitCode: 76)  // EX_PROTOCOL
        }
        if json { printJSON(String(decoding: reply, as: UTF8.self)) } else { summary.lines.forEach(printLine) }
        try finishOutput()
        if summary.health != "ok" { throw ExitCode(1) }
    }
}

/// The part of the reply that is shown to people.
private struct StatusSummary: Decodable {
    struct Motion: Decodable {
        var state: String
        var since: String?
        var lastFix: String?
        var odometer: Double
        var kept: Int
        var trips: Int
        var stops: Int
        var engine: EngineReply
        var trackables: Int
        var resolutions: [String: TrackableReply]
        var schedule: Schedule?
        var boost: Boost?
        var geofences: Geofences?

        enum CodingKeys: String, CodingKey {
            case state, since, odometer, kept, trips, stops, schedule, boost, engine, trackables, resolutions
            case geofences
            case lastFix = "last_fix"
        }
    }
    struct Schedule: Decodable {
        var open: Bool
        var until: String?
    }
    struct Geofences: Decodable {
        var fences: Int
        var inside: Int
        var ids: [String]

        var text: String {
            guard inside > 0 else { return "outside of \(fences == 1 ? "one geofence" : "all \(fences)")" }
            let more = inside - ids.count
            return "inside \(ids.joined(separator: ", "))\(more > 0 ? " and \(more) more" : "")"
        }
    }
    struct Boost: Decodable {
        var until: String?
    }
    struct Source: Decodable {
        var name: String
        var state: String
        var reason: String?
        var sentences: Int
        var fixes: Int
        var gpsd: GPSD?
    }
    struct GPSD: Decodable {
        struct Device: Decodable {
            var path: String
            var driver: String?
        }
        var release: String
        var device: String?
        var devices: [Device]

        /// `gpsd 3.22 with /dev/ttyACM0 (u-blox)`, the one in use if there is one.
        var text: String {
            let shown = devices.filter { device == nil || $0.path == device }
            let names = shown.map { "\($0.path)\($0.driver.map { " (\($0))" } ?? "")" }
            return "gpsd \(release) \(names.isEmpty ? "without a device" : "with \(names.joined(separator: ", "))")"
        }
    }
    struct Power: Decodable {
        var battery: Int?
        var charging: Bool?
        var external: Bool?
        var low: Bool

        /// nil where nothing is known.
        var text: String? {
            let parts = [
                battery.map { "battery \($0) %\(low ? " (low)" : "")" },
                charging.map { $0 ? "charging" : "not charging" },
                external.map { $0 ? "external power" : "no external power" },
            ].compactMap { $0 }
            return parts.isEmpty ? nil : parts.joined(separator: ", ")
        }
    }
    struct Queue: Decodable {
        var depth: Int

        enum CodingKeys: String, CodingKey { case depth = "queue_depth" }
    }
    var version: String
    var health: String
    var problems: [String]
    var motion: Motion
    var source: Source
    var power: Power
    var queue: Queue
    var endpoints: [EndpointReply]

    /// More would push what is wrong off the page.
    private static let trackablesShown = 20

    var lines: [String] {
        var lines = ["waypost \(version): \(health)"]
        lines.append(
            "receiver   \(source.name): \(source.state)\(source.reason.map { " (\($0))" } ?? ""), "
                + "\(source.sentences) sentences, \(source.fixes) fixes")
        if let gpsd = source.gpsd { lines.append("           \(gpsd.text)") }
        lines.append(
            "motion     \(motion.state)\(motion.since.map { " since \($0)" } ?? "")"
                + (motion.lastFix.map { ", last fix \($0)" } ?? ", no fix yet"))
        if let power = power.text { lines.append("power      \(power)") }
        if let schedule = motion.schedule {
            let until = schedule.until.map { " until \($0)" } ?? ""
            lines.append("schedule   \(schedule.open ? "tracking" : "not tracking")\(until)")
        }
        if let boost = motion.boost { lines.append("boost      \(boost.until.map { "until \($0)" } ?? "on")") }
        lines.append(
            "track      \(motion.kept) kept, \(motion.trips) trips, \(motion.stops) stops, "
                + "odometer \(Int(motion.odometer)) m")
        lines.append("engine     \(motion.engine.text)")
        let shown = motion.resolutions.sorted(by: { $0.key < $1.key }).prefix(Self.trackablesShown)
        for (trackable, entry) in shown {
            lines.append("trackable  \(trackable): \(entry.text)")
        }
        let more = motion.trackables - shown.count
        if more > 0 { lines.append("           and \(more) trackables more: see --json") }
        if let geofences = motion.geofences, geofences.fences > 0 { lines.append("geofences  \(geofences.text)") }
        lines.append("queue      \(queue.depth) rows")
        for endpoint in endpoints {
            lines += endpoint.lines.enumerated().map { ($0.offset == 0 ? "endpoint   " : "         ") + $0.element }
        }
        for problem in problems { lines.append("problem    \(problem)") }
        return lines
    }
}
