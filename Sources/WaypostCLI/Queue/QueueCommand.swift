import ArgumentParser
import Daemon
import Inspect
import WaypostControl
import WaypostHost

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Show what waits to be uploaded.",
        discussion: """
            Reads the file of the queue beside a running daemon, or without one. What a daemon has recorded in the last \
            seconds (commit_window) is in its memory: 'waypost status' and 'waypost endpoint list' count that too. Rows stay on \
            disk for a while after every server has them. Only forget changes anything.

              waypost queue                  how much waits, for which endpoint, since when
              waypost queue list --count 20  the oldest rows
              waypost queue export -o queue.gpx --format gpx
                                             all rows, for another program
              waypost queue verify           every page and every count
              waypost queue forget spare     what waits for an endpoint that is no longer configured
            """,
        subcommands: [Show.self, List.self, Export.self, Verify.self, Forget.self], defaultSubcommand: Show.self)

    struct Options: ParsableArguments {
        @Option(help: "The configuration that names the queue.", completion: .file(extensions: ["toml"]))
        var config = ConfigurationFile.standardPath

        @Option(help: "The queue itself, instead of the one in the configuration.", completion: .file())
        var path: String?

        /// Does something with the path of the queue, as its owner.
        func acting<Result>(_ work: (String) throws -> Result) throws -> Result { try acting(on: queue(), work) }

        func queue() throws -> NamedPath {
            if let path { NamedPath(path: path) } else { try ConfigurationFile.queue(config) }
        }

        /// The same, with a queue that is known.
        func acting<Result>(on queue: NamedPath, _ work: (String) throws -> Result) throws -> Result {
            do { return try queue.acting { try work(queue.path) } } catch let error as QueueReport.Failure {
                throw fail(error, exitCode: error.exitCode)
            } catch let error as SystemError {
                throw fail(error)
            }
        }

        /// Prints what `lines` takes from the queue.
        func report(
            asJSON: Bool = false, _ lines: (QueueReport) throws(QueueReport.Failure) -> [String]
        ) throws {
            let (found, damage) = try acting {
                let queue = try QueueReport(path: $0)
                return (try lines(queue), queue.damage)
            }
            for line in found {
                if asJSON { printJSON(line) } else { printLine(line) }
            }
            try finishOutput()
            if let damage { throw fail(damage, exitCode: damage.exitCode) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show how many rows wait, the oldest and the newest.")

        @OptionGroup var options: Options

        @Flag(help: "Print one object of JSON.")
        var json = false

        func run() throws {
            let json = json
            try options.report(asJSON: json) { (queue) throws(QueueReport.Failure) in
                let summary = try queue.summary()
                return json ? [summary.json] : summary.lines
            }
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Export all rows for another program.",
            discussion: """
                jsonl has the complete records. gpx, geojson and kml have trips as tracks and stops as waypoints; csv has a \
                line per location. A file is created with mode 0600, since it contains positions. Of a damaged queue, what can \
                be read is exported, and the exit status is 65.
                """)

        @OptionGroup var options: Options

        @Option(help: "jsonl, gpx, geojson, csv or kml; without it by the end of --output, else jsonl.")
        var format: QueueExport.Format?

        @Option(
            name: .shortAndLong, help: "The file to write, whole or not at all; - is standard output.",
            completion: .file())
        var output: String?

        private func form() throws -> QueueExport.Format {
            try format ?? formatByName(of: output, QueueExport.Format.init(rawValue:)) ?? .jsonl
        }

        func validate() throws { _ = try form() }

        func run() throws {
            let format = try form()
            let queue = try options.queue()
            let file = try outputFile(output, insteadOf: queueFiles(queue.path) + [options.config])
            let damage = try options.acting(on: queue) {
                let export = try QueueExport(path: $0)
                try export.write(format, to: file.descriptor, folder: temporaryFolder())
                return export.damage
            }
            // Not as the owner of the queue, who may not write here.
            do throws(SystemError) { try file.commit() } catch { throw fail(error) }
            if let damage { throw fail(damage, exitCode: damage.exitCode) }
        }
    }

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify", abstract: "Check every page and every count of the queue.",
            discussion: "Exit status: 0 the queue is intact, 1 it is damaged; the output says where.")

        @OptionGroup var options: Options

        func run() throws {
            let problems = try options.acting { path in
                do throws(QueueReport.Failure) { return try QueueReport(path: path).problems() } catch {
                    guard error.isDamage else { throw error }
                    return [error.description]
                }
            }
            for line in problems.isEmpty ? ["sound"] : problems { printLine(line) }
            try finishOutput()
            guard problems.isEmpty else {
                printError(
                    "waypost: the queue is damaged; when the daemon finds the damage, it sets the file aside and restores what can be read"
                )
                throw ExitCode(1)
            }
        }
    }

    struct Forget: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "forget", abstract: "Delete what waits for an endpoint that is no longer configured.",
            discussion:
                "Rows that another endpoint needs are kept. Without a daemon the command changes the queue itself.")

        @Argument(help: "Its name.")
        var endpoint: String

        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            printLine("\(endpoint): forgotten, \(try daemon.order(EndpointRequest("forget", endpoint)).words)")
            try finishOutput()
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List rows as JSON Lines, oldest first.")

        @OptionGroup var options: Options

        @Option(help: "Maximum number of rows.")
        var count = 50

        @Flag(help: "The newest rows instead of the oldest.")
        var newest = false

        func validate() throws {
            if !(1...1_000_000).contains(count) { throw ValidationError("--count takes 1…1000000.") }
        }

        func run() throws {
            let (count, newest) = (count, newest)
            try options.report(asJSON: true) { (queue) throws(QueueReport.Failure) in
                try queue.rows(count, newest: newest)
            }
        }
    }
}

/// The files of a queue, none of which a command may replace, and what the daemon keeps beside them.
func queueFiles(_ path: String) -> [String] {
    let folder = path.parentDirectory
    return ["", "-wal", "-shm", "-journal", "-lock"].map { path + $0 }
        + ["remote.state", "remote.version", "last-good.conf"].map { "\(folder)/\($0)" }
}

extension QueueExport.Format: ExpressibleByArgument {}
