import ArgumentParser
import CLinux
import Configuration
import Daemon
import Glibc
import WaypostHost

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run the daemon: read the receiver, track, queue and upload.",
        discussion: """
            Runs in the foreground and logs to the journal, or to standard error. SIGTERM ends it within seconds; \
            everything recorded is then on disk. With a file as the source it ends when the file has been read \
            and everything is uploaded. \
            Where the configuration cannot be used, the daemon runs on the last one that worked, if one is kept.
            """)

    @Option(help: "The configuration.", completion: .file(extensions: ["toml"]))
    var config = ConfigurationFile.standardPath

    @Flag(help: "Read a file source from its beginning, not from where the last run stopped.")
    var fromStart = false

    @Option(help: "With a file source: maximum seconds to wait for uploads after the end of the file.")
    var linger: Double?

    @Flag(help: "End with status 78 if the configuration cannot be used, even where the last good one is kept.")
    var strict = false

    func validate() throws {
        if let linger, !(linger >= 0 && linger <= 86_400 * 365) {
            throw ValidationError("--linger takes seconds, 0 or more.")
        }
    }

    func run() throws {
        Self.occupyStandardDescriptors()
        // It will have secrets and positions.
        waypost_hide_memory()
        let environment = ConfigurationFile.environment(requiresCredentials: true)
        let lastGood = LastGoodConfiguration(of: config, environment: environment)
        let log = { (problems: ConfigurationProblems) in
            Agent.journal(problems, environment: ProcessEnvironment.variables)
        }
        var loaded = try ConfigurationFile.load(config, log: log) { () throws(ConfigurationProblems) in
            strict
                ? try AgentConfig.load(path: config, environment: environment)
                : try AgentConfig.load(path: config, environment: environment, orElse: lastGood)
        }
        var options = Agent.Options()
        options.lastGood = lastGood
        options.remote = RemoteStart(over: &loaded, environment: environment)
        options.fromStart = fromStart
        options.linger = linger.map { .milliseconds(Int64($0 * 1000)) }
        options.reread = { [config] () throws(ConfigurationProblems) in
            // A credential that systemd did not hand over at the start is named, not refused.
            try AgentConfig.load(
                path: config, environment: ConfigurationFile.environment(requiresCredentials: false))
        }
        let agent: Agent
        do throws(StartupError) {
            agent = try Agent(loaded, environment: ProcessEnvironment.variables, options: options)
        } catch {
            throw ExitCode(error.exitCode)
        }
        let lost: Int
        do throws(SystemError) { lost = try agent.run() } catch { throw fail(error, exitCode: 71) }
        if lost > 0 { throw ExitCode(74) }  // EX_IOERR
    }

    /// Where one of them was closed, the queue or a connection would get its number, and log lines would go into it.
    private static func occupyStandardDescriptors() {
        while true {
            let descriptor = open("/dev/null", O_RDWR)
            guard (0...2).contains(descriptor) else {
                if descriptor > 2 { close(descriptor) }
                return
            }
        }
    }
}
