import Agent
import ArgumentParser

struct Queue: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what waits to be uploaded.",
        discussion: """
            Reads the queue beside a running daemon, or without one. It changes nothing.

              waypost queue                  how much waits, for whom, since when
              waypost queue list --count 20  the oldest rows
            """,
        subcommands: [Show.self, List.self], defaultSubcommand: Show.self)

    struct Options: ParsableArguments {
        @Option(help: "The configuration that names the queue.", completion: .file(extensions: ["toml"]))
        var config = ConfigurationFile.standardPath

        @Option(help: "The queue itself, instead of the one in the configuration.", completion: .file())
        var path: String?

        /// Prints what `lines` takes from the queue.
        func show(_ lines: (QueueReport) throws(QueueReport.Failure) -> [String]) throws {
            let path = try path ?? ConfigurationFile.load(config).config.outbox.settings.path
            do throws(QueueReport.Failure) {
                for line in try lines(QueueReport(path: path)) { print(line) }
            } catch {
                throw fail(error, exitCode: error.exitCode)
            }
            try finishOutput()
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Depth, oldest and newest of what waits.")

        @OptionGroup var options: Options

        func run() throws {
            try options.show { (queue) throws(QueueReport.Failure) in try queue.summary() }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List rows as JSON Lines, oldest first.")

        @OptionGroup var options: Options

        @Option(help: "How many rows at most.")
        var count = 50

        @Flag(help: "The newest rows instead of the oldest.")
        var newest = false

        func validate() throws {
            if !(1...1_000_000).contains(count) { throw ValidationError("--count takes 1…1000000.") }
        }

        func run() throws {
            let (count, newest) = (count, newest)
            try options.show { (queue) throws(QueueReport.Failure) in try queue.rows(count, newest: newest) }
        }
    }
}
