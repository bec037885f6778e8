import ArgumentParser
import Daemon
import WaypostControl
import WaypostCore

struct GeofencesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "geofences", abstract: "Fetch the geofences and beacon regions that servers list.",
        discussion: "'waypost status' shows which lists are in force and how old they are.",
        subcommands: [Refresh.self])

    struct Refresh: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "refresh",
            abstract: "Ask the servers of [[geofences.source]] and [[beacons.source]] for their lists now.",
            discussion: """
                Waits until each server has answered, for at most 30 s. A list that is not wholly valid changes nothing, and a \
                pause that a server asked for with Retry-After is respected. Exit status: 0 every list is that of its server, \
                1 one could not be fetched, 2 no daemon answers.
                """)

        @Argument(help: "The sources of this name; all of them without it.")
        var name: String?

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let reply = try daemon.send(
                FenceRefreshRequest(source: name), timeoutSeconds: ControlClient.longestSeconds)
            for source in reply.sources { printLine(source.words) }
            try finishOutput()
            if reply.sources.contains(where: { !["unchanged", "received"].contains($0.outcome) }) { throw ExitCode(1) }
        }
    }
}

extension FenceRefreshRequest.Reply.Source {
    /// `venue: received, 12 geofences`
    fileprivate var words: String {
        let list = InWords.list(fences, regions)
        let why =
            switch (problem, delay) {
            case (let problem?, _): ": \(problem)"
            case (nil, let delay?): ": the server asked to wait another \(InWords.span(seconds: delay))"
            case (nil, nil): outcome == "waiting" ? ": no answer yet" : ""
            }
        return "\(kind == "beacons" ? "beacons " : "")\(name): \(outcome), \(list)\(why)"
    }
}

extension InWords {
    /// `12 geofences`
    fileprivate static func list(_ fences: Int?, _ regions: Int?) -> String {
        fences.map { count($0, "geofence") } ?? regions.map { count($0, "beacon region") } ?? "no list yet"
    }
}

extension ListSourceStatus {
    /// `venue: 12 geofences, 40 s old, asked again in 5 h`
    var words: String {
        var parts = [InWords.list(fences, regions)]
        if let age { parts.append("\(InWords.span(seconds: age)) old") }
        parts.append(nextFetch.map { "asked again in \(InWords.span(seconds: $0))" } ?? "being asked")
        if let problem { parts.append("last failure: \(problem)") }
        return "\(name): \(parts.joined(separator: ", "))"
    }
}
