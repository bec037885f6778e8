import ArgumentParser
import Configuration
import Daemon
import WaypostHost

/// Reads the configuration for a command, and says what is wrong with it.
enum ConfigurationFile {
    static let standardPath = "/etc/waypost/waypost.toml"

    static func environment(requiresCredentials: Bool) -> ConfigurationEnvironment {
        ConfigurationEnvironment(
            variables: ProcessEnvironment.variables, hostname: { HostIdentity.hostName() },
            machineID: { MachineID.read() }, buildDate: AgentVersion.released,
            requiresCredentials: requiresCredentials)
    }

    /// For a command that asks the daemon, which may have variables and rights that this process has not.
    static var environmentOfDaemon: ConfigurationEnvironment {
        var environment = environment(requiresCredentials: false)
        environment.isForeign = true
        return environment
    }

    /// What the daemon runs on: with a mistake in the file that is the last good configuration, as far as this user may read it.
    ///
    /// The daemon writes that one, so for root it is the word of another user: root reads it with the rights of that user, and so has
    /// to treat all files that it names.
    static func ofDaemon(
        _ path: String
    ) throws(ConfigurationProblems) -> (loaded: LoadedConfiguration, author: FileOwner?) {
        let environment = environmentOfDaemon
        do throws(ConfigurationProblems) {
            return (try AgentConfig.load(path: path, environment: environment), nil)
        } catch {
            let lastGood = LastGoodConfiguration(of: path, environment: environment)
            let author = FileOwner(of: lastGood.path)
            let found = try? FileOwner.acting(as: author) {
                Result { () throws(ConfigurationProblems) in try lastGood.load(for: error, environment: environment) }
            }
            guard let found else { throw error }
            return (try found.get(), author)
        }
    }

    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func load(_ path: String) throws -> LoadedConfiguration {
        try load(path) { () throws(ConfigurationProblems) in
            try AgentConfig.load(path: path, environment: environment(requiresCredentials: false))
        }
    }

    /// The queue of the daemon. A mistake in the file is printed all the same.
    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func queue(_ path: String) throws -> NamedPath {
        let (loaded, author) = try load(path) { () throws(ConfigurationProblems) in try ofDaemon(path) }
        let queue = loaded.config.outbox.settings.path
        if let refused = loaded.refused {
            for problem in refused.problems { printError("warning: \(problem)") }
            printError("warning: the queue is \(queue), as in the last good configuration")
        }
        return NamedPath(path: queue, author: author)
    }

    /// - Parameter log: reports the problems to the journal instead; returns whether it did.
    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func load<Loaded>(
        _ path: String, log: (ConfigurationProblems) -> Bool = { _ in false },
        _ read: () throws(ConfigurationProblems) -> Loaded
    ) throws -> Loaded {
        do throws(ConfigurationProblems) { return try read() } catch {
            if log(error) { throw ExitCode(78) }
            if Denial.forbidsReading(path) { throw fail(Denial.words(for: path), exitCode: Denial.exitStatus) }
            for problem in error.warnings { printError("warning: \(problem)") }
            for problem in error.problems { printError("\(problem)") }
            throw ExitCode(78)
        }
    }
}
