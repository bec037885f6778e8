import ArgumentParser
import Configuration
import Daemon
import Glibc
import WaypostHost

struct ProfileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profile", abstract: "Show how a profile turns locations into requests.",
        discussion: """
            A profile is a template: the requests that a server expects, and what its answers mean. The profiles of \
            waypost need no configuration; with one, its profiles and the values of its endpoints are included.

              waypost profile list                        their names
              waypost profile show traccar                the content of one
              waypost profile render traccar              the request that it makes
              waypost profile render --endpoint fleet --from-queue
                                                          the next request of an endpoint
            """,
        subcommands: [List.self, Show.self, Render.self])

    struct Options: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The configuration with further profiles and the endpoints.",
                discussion: "The default is the installed one, if it can be read."),
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
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the names of the profiles.")

        @OptionGroup var options: Options

        @Flag(help: "Print an object of JSON for each.")
        var json = false

        func run() throws {
            let report = try options.report()
            for line in json ? report.json() : report.list() { printText(line) }
            try finishOutput()
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Print a profile as TOML, with everything that it inherits.")

        @OptionGroup var options: Options

        @Argument(help: "The name of the profile.")
        var name: String

        func run() throws {
            let report = try options.report()
            do throws(ProfileReport.Failure) {
                printText(try report.show(name), terminator: "")
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
                Prints method and URL, the headers in order, an empty line and the body. A compressed body \
                is shown uncompressed. A line ### separates two requests, and # begins a comment.
                """)

        @OptionGroup var options: Options

        @Argument(help: "The name of the profile; the default is that of the endpoint.")
        var name: String?

        @Option(help: "Sample locations: full, bare, event-enter, batch, mixed or constant.")
        var sample: ProfileSample?

        @Flag(help: "Render the next request of the endpoint from the queue.")
        var fromQueue = false

        @Option(help: "The endpoint whose settings are used; the default is the first one with that profile.")
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
                    if case .queue(let path) = source { try NamedPath(path: path).acting(render) } else { try render() }
                for line in lines { printText(line) }
            } catch let error as ProfileReport.Failure {
                throw fail(error, exitCode: error.exitCode)
            } catch let error as SystemError {
                throw fail(error)
            }
            try finishOutput()
        }
    }
}

extension ProfileSample: ExpressibleByArgument {}
