import Agent
import ArgumentParser
import Configuration
import EventLoop
import Glibc

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run the daemon: read the receiver, track, queue and upload.",
        discussion: """
            Runs in the foreground and logs to the journal, or to standard error. SIGTERM ends it within seconds; \
            everything recorded is then on disk. With a file as the source it ends when the file has been read \
            and everything is uploaded.
            """)

    @Option(help: "The configuration.", completion: .file(extensions: ["toml"]))
    var config = ConfigurationFile.standardPath

    @Flag(help: "Read a file source from its beginning, not from where the last run stopped.")
    var fromStart = false

    @Option(help: "With a file source: maximum seconds to wait for uploads after the end of the file.")
    var linger: Double?

    func validate() throws {
        if let linger, !(linger >= 0 && linger <= 86_400 * 365) {
            throw ValidationError("--linger takes seconds, 0 or more.")
        }
    }

    func run() throws {
        Self.occupyStandardDescriptors()
        let loaded = try ConfigurationFile.load(config, requiresCredentials: true) {
            Agent.journal($0, environment: ProcessEnvironment.variables)
        }
        var options = Agent.Options()
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
