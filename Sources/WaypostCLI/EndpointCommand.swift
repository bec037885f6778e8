import Agent
import ArgumentParser

struct Endpoint: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "endpoint", abstract: "Show the endpoints, and set one going again.",
        discussion: """
            A paused or stopped endpoint goes on after 'resume'. One whose address, device or asset changed while rows \
            waited (rebind), or whose asset another device took (taken), goes on after 'bind', which keeps the waiting \
            rows, or after 'drop', which gives them up. Without a daemon the queue is changed itself.
            """,
        subcommands: [List.self, Bind.self, Resume.self, Drop.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "State of each endpoint, and what to do about it.",
            discussion:
                "Exit status: 0 all is well, 1 an endpoint needs a look. Without a daemon it tells what the queue knows."
        )

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            var needsLook = false
            var after: String?
            while true {
                let page: EndpointPage = try DaemonReply.read(
                    daemon.order(OrderLine("endpoint", "list", [("after", after.map(OrderLine.Value.text))])))
                for endpoint in page.endpoints {
                    endpoint.lines.forEach(printLine)
                    needsLook = needsLook || endpoint.state != "active" || endpoint.problem != nil
                }
                guard page.more ?? 0 > 0, let last = page.endpoints.last else { break }
                after = last.name
            }
            try finishOutput()
            if needsLook { throw ExitCode(1) }
        }
    }

    struct Bind: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "bind", abstract: "Take the present address, device and asset for the rows that wait.",
            discussion: """
                Rows of another device or asset are taken with --force only: on_collision says whether they are sent \
                under the new name (keep), put into quarantine, or deleted (clear).
                """)

        @Argument(help: "The endpoint.")
        var name: String

        @Flag(help: "Also where rows of another device or asset wait.")
        var force = false

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let line = OrderLine("endpoint", "bind", [("endpoint", .text(name)), ("force", .flag(force))])
            let answer: OrderAnswer = try DaemonReply.read(daemon.order(line))
            printLine("\(name): bound, \(answer.words)")
            try finishOutput()
        }
    }

    struct Resume: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resume", abstract: "End a pause or a stop: try again now.",
            discussion: "What the server has asked for by Retry-After holds all the same; the answer says until when.")

        @Argument(help: "The endpoint.")
        var name: String

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let answer: OrderAnswer = try DaemonReply.read(
                daemon.order(OrderLine("endpoint", "resume", [("endpoint", .text(name))])))
            printLine("\(name): resumed\(answer.postponement)")
            try finishOutput()
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "drop", abstract: "Give up the rows that wait for the old binding, and go on with the new one."
        )

        @Argument(help: "The endpoint.")
        var name: String

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let answer: OrderAnswer = try DaemonReply.read(
                daemon.order(OrderLine("endpoint", "drop", [("endpoint", .text(name))])))
            printLine("\(name): dropped, \(answer.words)")
            try finishOutput()
        }
    }
}

/// A part of the reply to `endpoint list`.
private struct EndpointPage: Decodable {
    var endpoints: [EndpointReply]
    var more: Int?

    enum CodingKeys: String, CodingKey {
        case endpoints
        case more = "endpoints_more"
    }
}

/// How an endpoint is, in a reply of the daemon.
struct EndpointReply: Decodable {
    var name: String
    var state: String
    var reason: String?
    var held: String?
    /// The spare that stands in for it now.
    var sentBy: String?
    /// The endpoint that it is a spare of.
    var standsInFor: String?
    var waiting: Int
    /// nil where no daemon runs.
    var acked: Int?
    var quarantined: Int?
    /// Rows that a full quarantine has given up since the start.
    var quarantineOverflow: Int?
    var oldestAge: Double?
    var lastSuccessAge: Double?
    var nextAttempt: Double?
    var problem: String?
    var advice: String?

    enum CodingKeys: String, CodingKey {
        case name, state, reason, held, waiting, acked, problem, advice
        case sentBy = "sent_by"
        case standsInFor = "stands_in_for"
        case quarantined = "quarantine_depth"
        case quarantineOverflow = "quarantine_overflow"
        case oldestAge = "queue_oldest_age_s"
        case lastSuccessAge = "last_success_age_s"
        case nextAttempt = "next_attempt_s"
    }

    /// `main: active, 12 waiting (oldest 40 s), 700 accepted, last 2 s ago`, and below it what is wrong and what helps.
    var lines: [String] {
        if let standsInFor { return ["\(name): stands in for \(standsInFor)"] }
        var first = "\(name): \(state)\(reason.map { " (\($0))" } ?? ""), \(waiting) waiting"
        if waiting > 0, let oldestAge { first += " (oldest \(Self.span(oldestAge)))" }
        if let acked { first += ", \(acked) accepted" }
        if let lastSuccessAge { first += ", last \(Self.span(lastSuccessAge)) ago" }
        if let quarantined, quarantined > 0 { first += ", \(quarantined) in quarantine" }
        if let quarantineOverflow, quarantineOverflow > 0 {
            first += ", \(quarantineOverflow) given up by the full quarantine"
        }
        if let nextAttempt, nextAttempt > 0 { first += ", next try in \(Self.span(nextAttempt))" }
        var lines = [first]
        if let held { lines.append("  " + held) }
        if let sentBy { lines.append("  cannot be reached: \(sentBy) stands in") }
        if let problem { lines.append("  problem: " + problem) }
        if let advice { lines.append("  do: " + advice) }
        return lines
    }

    /// `40 s`, `12 min`, `3 h`, `5 d`
    private static func span(_ seconds: Double) -> String {
        switch max(0, seconds) {
        case ..<120: "\(Int(seconds.rounded())) s"
        case ..<7200: "\(Int((seconds / 60).rounded())) min"
        case ..<172_800: "\(Int((seconds / 3600).rounded())) h"
        case let long: "\(Int(min(long / 86_400, 1e6).rounded())) d"
        }
    }
}
