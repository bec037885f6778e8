import Agent
import ArgumentParser
import Configuration
import Glibc

struct ProfileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profile", abstract: "Show how locations are put into requests.",
        discussion: """
            A profile is a template: what a receiver of locations wants to get, and what its answers mean. Those of \
            waypost need no configuration; with one, its own profiles and what its endpoints fill in are shown.

              waypost profile list                        which there are
              waypost profile show traccar                what stands in one
              waypost profile render traccar              the request that it makes
              waypost profile render --endpoint fleet --from-queue
                                                          the next request of an endpoint
            """,
        subcommands: [List.self, Show.self, Render.self])

    struct Options: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The configuration with further profiles and the endpoints.",
                discussion: "The installed one, where it can be read, unless given."),
            completion: .file(extensions: ["toml"]))
        var config: String?

        /// nil without a configuration, which is good enough for the profiles of waypost.
        func loaded() throws -> AgentConfig? {
            if let config { return try ConfigurationFile.load(config).config }
            guard access(ConfigurationFile.standardPath, F_OK) == 0 else { return nil }
            do throws(ConfigurationProblems) {
                return try AgentConfig.load(
                    path: ConfigurationFile.standardPath,
                    environment: ConfigurationFile.environment(requiresCredentials: false)
                ).config
            } catch {
                printError("waypost: \(ConfigurationFile.standardPath) cannot be used, so its profiles are not here")
                return nil
            }
        }

        func report() throws -> ProfileReport { ProfileReport(try loaded()) }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "Name the profiles, one a line.")

        @OptionGroup var options: Options

        func run() throws {
            for line in try options.report().list() { print(line) }
            try finishOutput()
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print a profile with all that it extends, as TOML.")

        @OptionGroup var options: Options

        @Argument(help: "The name of the profile.")
        var name: String

        func run() throws {
            let report = try options.report()
            do throws(ProfileReport.Failure) {
                print(try report.show(name), terminator: "")
            } catch {
                throw fail(error, exitCode: error.exitCode)
            }
            try finishOutput()
        }
    }

    struct Render: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "render", abstract: "Print the exact request, secrets masked.",
            discussion: """
                Method and URL, the headers in order, an empty line, the body. A body that goes out compressed is shown \
                as it is before. A line ### stands between two requests, and # begins a remark.
                """)

        @OptionGroup var options: Options

        @Argument(help: "The name of the profile; that of the endpoint unless given.")
        var name: String?

        @Option(help: "Made-up locations: full, bare, event-enter, batch, mixed or constant.")
        var sample: ProfileSample?

        @Flag(help: "What waits in the queue instead: the next request of the endpoint.")
        var fromQueue = false

        @Option(help: "Fill in what this endpoint of the configuration has; the first with that profile unless given.")
        var endpoint: String?

        func validate() throws {
            if fromQueue, sample != nil { throw ValidationError("--from-queue and --sample exclude each other.") }
            if name == nil, endpoint == nil, !fromQueue {
                throw ValidationError("Name a profile, or an endpoint with --endpoint.")
            }
        }

        func run() throws {
            let config = try options.loaded()
            let report = ProfileReport(config)
            var source = ProfileReport.Source.sample(sample ?? .full)
            if fromQueue {
                guard let config else { throw fail("--from-queue needs a configuration (--config)", exitCode: 64) }
                source = .queue(path: config.outbox.settings.path)
            }
            do {
                let render = { try report.render(name, for: endpoint, source) }
                let lines =
                    if case .queue(let path) = source { try QueueOwner.acting(on: path, render) } else { try render() }
                for line in lines { print(line) }
            } catch let error as ProfileReport.Failure {
                throw fail(error, exitCode: error.exitCode)
            }
            try finishOutput()
        }
    }
}

extension ProfileSample: ExpressibleByArgument {}
