import ArgumentParser
import Configuration
import Daemon
import Glibc
import WaypostControl
import WaypostCore

struct EndpointCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "endpoint", abstract: "Show the endpoints; test, resume, bind or drop one.",
        discussion: """
            A paused or stopped endpoint continues after 'resume'. One whose device or asset changed while rows waited, \
            or the address of a server that had accepted some (rebind), or whose asset another device took over (taken), \
            continues after 'bind', which keeps the waiting rows, or after 'drop', which deletes them. Without a daemon the \
            command changes the queue itself.
            """,
        subcommands: [List.self, Test.self, Bind.self, Resume.self, Drop.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "Show the state of each endpoint, and what to do about it.",
            discussion:
                "Exit status: 0 all is well, 1 an endpoint needs attention. Without a daemon it shows what the queue knows."
        )

        @Flag(help: "Print an object of JSON for each, as in endpoints of status --json.")
        var json = false

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            var needsAttention = false
            var isFirst = true
            var after: String?
            while true {
                let page = try daemon.order(EndpointRequest("list", after: after))
                if isFirst, page.endpoints?.isEmpty ?? true { printError(Status.noServer) }
                isFirst = false
                for endpoint in page.endpoints ?? [] {
                    if json { printJSON(endpoint.json) } else { endpoint.lines.forEach(printLine) }
                    needsAttention = needsAttention || endpoint.state != "active" || endpoint.problem != nil
                }
                guard page.endpointsMore ?? 0 > 0, let last = page.endpoints?.last else { break }
                after = last.name
            }
            try finishOutput()
            if needsAttention { throw ExitCode(1) }
        }
    }

    struct Test: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "test", abstract: "Send one request to a server, and explain the answer.",
            discussion: """
                A running daemon sends it over its own connection, at most once in 10 s; without one this command does, as user \
                waypost, and a broker sees another client id. It stores nothing, unless the profile has no request for that and \
                --store is given: then a test location is sent, whose id is that of no other. \
                Exit status: 0 all is well, 1 it is not, 77 not permitted.
                """)

        @Argument(help: "The endpoint; not needed where there is one.")
        var name: String?

        @Flag(help: "Have the server store a test location: at the last fix, or at --at.")
        var store = false

        @Option(help: "Where the test location is: LAT,LON in degrees.")
        var at: Place?

        @Flag(help: "Print one object of JSON.")
        var json = false

        @Flag(help: .hidden)
        var alone = false

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let reply = try test()
            if json { printJSON(reply.json) } else { reply.lines.forEach(printLine) }
            if let change = Self.change(since: reply, daemon.config) { printError("note: \(change)") }
            try finishOutput()
            if !reply.isWell { throw ExitCode(1) }
        }

        /// What the file says now where the daemon has tested something else; nil = the same, or that cannot be seen.
        private static func change(since reply: EndpointTestReply, _ path: String) -> String? {
            guard let digest = reply.digest else { return nil }
            let what = "the running daemon tested \(reply.address ?? "what it read before")"
            let then = "sudo systemctl restart waypost, then test again"
            do throws(ConfigurationProblems) {
                let loaded = try AgentConfig.load(path: path, environment: ConfigurationFile.environmentOfDaemon)
                guard let now = loaded.config.endpoints.first(where: { $0.settings.name == reply.endpoint }) else {
                    return "\(what), and \(path) has no endpoint \(reply.endpoint) any more: \(then)"
                }
                guard now.digest != digest else { return nil }
                let address = BaseURL.masked(now.settings.baseURL)
                let difference = address == reply.address ? "other credentials or another profile" : address
                return "\(what); \(path) has changed since and has \(difference) now: \(then)"
            } catch {
                let mistakes = error.problems.filter { !$0.dependsOnReader }
                guard !mistakes.isEmpty, !Denial.forbidsReading(path), access(path, F_OK) == 0 else { return nil }
                return "\(what); \(path) has a mistake now: waypost check"
            }
        }

        private func test() throws -> EndpointTestReply {
            var request = EndpointRequest("test", name)
            request.store = store ? true : nil
            (request.latitude, request.longitude) = (at?.coordinate.latitude, at?.coordinate.longitude)
            if !alone, let reply = try daemon.sendIfRunning(request) { return reply.test ?? EndpointTestReply() }
            let loaded = try ConfigurationFile.load(daemon.config).config
            let config: EndpointConfig
            do throws(ControlError) {
                let settings = try EndpointTest.chosen(name, of: loaded.endpoints.map(\.settings))
                guard let found = loaded.endpoints.first(where: { $0.settings.name == settings.name }) else {
                    return EndpointTestReply()
                }
                config = found
            } catch { throw fail(error.message + (error.hint.map { " (\($0))" } ?? ""), exitCode: 1) }
            try ServiceUser.assume()
            var test = EndpointTest()
            (test.stores, test.place) = (store, at?.coordinate)
            return test.runAlone(
                config, environment: ServiceUser.environment, stateDirectory: loaded.outbox.directory)
        }
    }

    /// A place as people write it.
    struct Place: ExpressibleByArgument {
        let coordinate: Coordinate

        init?(argument: String) {
            let parts = argument.split(separator: ",").compactMap { Double($0.filter { $0 != " " }) }
            guard parts.count == 2, let coordinate = Coordinate(latitude: parts[0], longitude: parts[1]) else {
                return nil
            }
            self.coordinate = coordinate
        }
    }

    struct Bind: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "bind", abstract: "Use the present address, device and asset for the rows that wait.",
            discussion: """
                Rows of another device or asset need --force: on_collision says whether they are sent \
                under the new name (keep), put into quarantine, or deleted (clear).
                """)

        @Argument(help: "The endpoint.")
        var name: String

        @Flag(help: "Also if rows of another device or asset wait.")
        var force = false

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let reply = try daemon.order(EndpointRequest("bind", name, force: force))
            printLine("\(name): bound, \(reply.words)")
            try finishOutput()
        }
    }

    struct Resume: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resume", abstract: "End a pause or a stop: try again now.",
            discussion: "A pause that the server asked for with Retry-After is respected; the reply says until when.")

        @Argument(help: "The endpoint.")
        var name: String

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let reply = try daemon.order(EndpointRequest("resume", name))
            printLine("\(name): resumed\(reply.postponement)")
            try finishOutput()
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "drop",
            abstract: "Delete the rows that wait for the old binding, and continue with the new one."
        )

        @Argument(help: "The endpoint.")
        var name: String

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            let reply = try daemon.order(EndpointRequest("drop", name))
            printLine("\(name): dropped, \(reply.words)")
            try finishOutput()
        }
    }
}

extension EndpointStatus {
    /// `main: active, 12 waiting (oldest 40 s), 700 accepted, last 2 s ago`, and below it what is wrong and what helps.
    var lines: [String] {
        if let standsInFor { return ["\(name): stands in for \(standsInFor)"] }
        var first = "\(name): \(state)\(reason.map { " (\($0))" } ?? ""), \(waiting) waiting"
        if waiting > 0, let oldestAge { first += " (oldest \(InWords.span(seconds: oldestAge)))" }
        if let accepted { first += ", \(accepted) accepted" }
        if let lastSuccessAge { first += ", last \(InWords.span(seconds: lastSuccessAge)) ago" }
        if let quarantineDepth, quarantineDepth > 0 { first += ", \(quarantineDepth) in quarantine" }
        if let quarantineOverflow, quarantineOverflow > 0 {
            first += ", \(quarantineOverflow) dropped from the full quarantine"
        }
        if let nextAttempt, nextAttempt > 0 { first += ", next try in \(InWords.span(seconds: nextAttempt))" }
        var lines = [first]
        if let held { lines.append("  " + held) }
        if let sentBy { lines.append("  cannot be reached: \(sentBy) stands in") }
        if let problem { lines.append("  problem: " + problem) }
        if let advice { lines.append("  do: " + advice) }
        return lines
    }
}

extension EndpointTestReply {
    /// `traccar: the server accepts connections: traccar.lan:5055 (12 ms)`, and below it what a test with --store would do.
    var lines: [String] {
        let time = milliseconds.map { " (\(Int(max(1, $0.rounded()))) ms)" } ?? ""
        var lines = ["\(endpoint): \(isWell ? "" : "failed: ")\(words)\(isWell ? time : "")"]
        if let address { lines.append("  address: \(address)") }
        if isWell, let profile {
            lines.append(
                "  profile \(profile) has no request that stores nothing, so this shows only that the server is there")
            lines.append("  a test location shows the rest: waypost endpoint test \(endpoint) --store")
            if let wouldStore { lines.append("  it would be sent as: \(wouldStore)") }
        } else if isWell, sent == "connection" {
            lines.append(
                "  whether it takes locations shows the first one, or: waypost endpoint test \(endpoint) --store")
        }
        return lines
    }
}

extension OrderReply {
    /// `3 rows`
    var count: String { InWords.count(rows ?? 0, "location") }

    /// `3 rows (seq 7 to 9)`
    var words: String {
        guard let firstSeq, let lastSeq else { return count }
        return count + (firstSeq == lastSeq ? " (seq \(firstSeq))" : " (seq \(firstSeq) to \(lastSeq))")
    }

    /// `; next try in 114 s: the server has asked for that`, empty where nothing delays it.
    fileprivate var postponement: String {
        guard let because else { return "" }
        let next = nextAttempt.map { "next try in \(Int(min(max(0, $0), 1e6).rounded(.up))) s: " }
        return "; \(next ?? "")\(because)"
    }
}
