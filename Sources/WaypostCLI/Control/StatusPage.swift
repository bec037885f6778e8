import Doctor
import WaypostControl
import WaypostCore

/// The short form of `waypost status`: what somebody wants to know of a vehicle that is well in at most eight lines, and below them
/// what is wrong.
///
/// Pure: replies and the time come in as arguments.
struct StatusPage {
    var status: Status
    /// Where the asset is; nil = that was not asked for.
    var look: Look?
    var now: UTCTime
    /// A time as whoever reads it writes it.
    var local: (UTCTime) -> String

    /// Servers that have a line each; of more, those that are well share one.
    private static let serversShown = 3

    var lines: [String] {
        var lines = ["waypost \(status.version): \(status.health)", motion]
        if let look { lines.append("where      \(place(look))") }
        lines.append("receiver   \(receiver)")
        lines += servers
        lines.append("queue      \(status.waiting == 0 ? "empty" : InWords.count(status.waiting, "location"))")
        for problem in status.problems {
            lines.append("problem    \(problem)")
            let endpoint = status.endpoints.first { problem.hasPrefix("\($0.name): ") }
            if let advice = endpoint?.advice { lines.append("           do: \(advice)") }
        }
        return lines
    }

    /// What is wider than a terminal goes on below its words.
    static func wrapped(_ line: String, columns: Int) -> [String] {
        let indent = 11
        guard line.count > columns, columns > 2 * indent else { return [line] }
        return Examination.wrapped(
            String(line.dropFirst(indent)), columns, first: String(line.prefix(indent)),
            further: String(repeating: " ", count: indent))
    }

    private var motion: String {
        let motion = status.motion
        let since = motion.since.flatMap { UTCTime.milliseconds(iso8601: $0).map(UTCTime.init(milliseconds:)) }
        let span =
            since.map { "since \(local($0)) (\(InWords.span(milliseconds: now.milliseconds - $0.milliseconds)))" } ?? ""
        var words =
            switch motion.state {
            case "stationary": "parked     \(span)"
            case "moving": "moving     \(span)"
            case "stopping": "halted     on a trip \(span)"
            case "waiting": "waiting    for a first position"
            default: "waiting    for positions that agree"
            }
        if motion.state == "moving", let activity = motion.activityText { words += ", \(activity)" }
        if let battery = status.power.battery { words += ", battery \(battery) %" }
        if let schedule = motion.schedule, !schedule.open {
            let until = schedule.until.flatMap { UTCTime.milliseconds(iso8601: $0).map(UTCTime.init(milliseconds:)) }
            words += ", not tracking" + (until.map { " until \(local($0))" } ?? "")
        }
        return words
    }

    private func place(_ look: Look) -> String {
        guard let fix = look.fix else { return "not known yet" }
        func degrees(_ value: Double) -> String {
            let scaled = Int((abs(value) * 1e6).rounded())
            let fraction = String(1_000_000 + scaled % 1_000_000).dropFirst()
            return "\(value < 0 ? "-" : "")\(scaled / 1_000_000).\(fraction)"
        }
        var words = "\(degrees(fix.latitude)), \(degrees(fix.longitude))"
        if let accuracy = fix.accuracy { words += " (accuracy \(InWords.accuracy(accuracy)))" }
        if let speed = fix.speed { words += ", \(InWords.speed(speed, in: status.displayUnits))" }
        return words
    }

    private var receiver: String {
        let source = status.source
        let isTold = source.reason.map { reason in status.problems.contains { $0.contains(reason) } } ?? false
        let reason = source.reason.map { isTold ? "" : " (\($0))" } ?? ""
        let fix =
            status.motion.lastFixAge.map { ", last fix \(InWords.span(seconds: $0)) ago" }
            ?? (status.motion.lastFix.flatMap { UTCTime.milliseconds(iso8601: $0).map(UTCTime.init(milliseconds:)) }.map
            { ", last fix \(local($0))" } ?? ", no fix yet")
        return "\(source.name): \(source.state)\(reason)\(fix)"
    }

    private var servers: [String] {
        if status.hasNoServer { return ["server     \(Status.noServer)"] }
        let own = status.endpoints.filter { $0.standsInFor == nil }
        let well = own.filter(\.isWell)
        let folds = own.count > Self.serversShown && well.count > 1
        var words = own.filter { !folds || !$0.isWell }.map { "\($0.name): \($0.shortWords)" }
        if folds {
            let last = well.compactMap(\.lastSuccessAge).max().map {
                ", last upload at most \(InWords.span(seconds: $0)) ago"
            }
            words.insert("\(well.count) of \(own.count) are well\(last ?? "")", at: 0)
        }
        return words.map { "server     \($0)" }
    }
}

extension Status {
    var hasNoServer: Bool { endpoints.isEmpty && endpointsMore ?? 0 == 0 && (channels ?? []).isEmpty }

    /// Locations that wait for a server: some that every server has may still be on disk.
    var waiting: Int { endpoints.map(\.waiting).max() ?? queue.depth }
}

extension EndpointStatus {
    fileprivate var isWell: Bool {
        state == "active" && held == nil && problem == nil && sentBy == nil
            && (lastSuccessAge != nil || contact == "reached")
    }

    /// `last upload 14 s ago, 12 locations wait`
    fileprivate var shortWords: String {
        var words: [String] = []
        if state != "active" { words.append("\(state)\(reason.map { " (\($0))" } ?? "")") }
        if let sentBy { words.append("cannot be reached, \(sentBy) stands in") }
        if let held { words.append(held) }
        if let lastSuccessAge {
            words.append("last upload \(InWords.span(seconds: lastSuccessAge)) ago")
        } else if contact == "reached", let contactAge {
            words.append("reached \(InWords.span(seconds: contactAge)) ago")
            words.append(requests ?? 0 > 0 ? "nothing accepted since the start" : "nothing sent since the start")
        } else {
            words.append(contact == "never" ? "not reached yet" : "nothing accepted since the start")
        }
        if waiting > 0 { words.append("\(InWords.count(waiting, "location waits", "locations wait"))") }
        if let quarantineDepth, quarantineDepth > 0 { words.append("\(quarantineDepth) in quarantine") }
        return words.joined(separator: ", ")
    }
}
