import Agent
import ArgumentParser
import Configuration
import EventLoop

/// Reads the configuration for a command, and says what is wrong with it.
enum ConfigurationFile {
    static let standardPath = "/etc/waypost/waypost.toml"

    static func environment(requiresCredentials: Bool) -> ConfigurationEnvironment {
        ConfigurationEnvironment(
            variables: ProcessEnvironment.variables, hostname: { HostIdentity.hostName() },
            machineID: { HostIdentity.machineID() }, buildDate: AgentVersion.released,
            requiresCredentials: requiresCredentials)
    }

    /// For a command that asks the daemon, which may have variables and rights that this process has not.
    static var environmentOfDaemon: ConfigurationEnvironment {
        var environment = environment(requiresCredentials: false)
        environment.isForeign = true
        return environment
    }

    /// What the daemon runs on: with a mistake in the file that is the last good configuration, as far as this user may read it.
    static func ofDaemon(_ path: String) throws(ConfigurationProblems) -> LoadedConfiguration {
        let environment = environmentOfDaemon
        return try AgentConfig.load(
            path: path, environment: environment,
            orElse: LastGoodConfiguration(of: path, environment: environment))
    }

    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func load(_ path: String) throws -> LoadedConfiguration {
        try load { () throws(ConfigurationProblems) in
            try AgentConfig.load(path: path, environment: environment(requiresCredentials: false))
        }
    }

    /// The queue of the daemon. A mistake in the file is printed all the same.
    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func queue(_ path: String) throws -> String {
        let loaded = try load { () throws(ConfigurationProblems) in try ofDaemon(path) }
        let queue = loaded.config.outbox.settings.path
        if let refused = loaded.refused {
            for problem in refused.problems { printError("warning: \(problem)") }
            printError("warning: the queue is \(queue), as in the last good configuration")
        }
        return queue
    }

    /// - Parameter log: reports the problems to the journal instead; returns whether it did.
    /// - Throws: `ExitCode` 78 after the problems were printed, one a line.
    static func load(
        log: (ConfigurationProblems) -> Bool = { _ in false },
        _ read: () throws(ConfigurationProblems) -> LoadedConfiguration
    ) throws -> LoadedConfiguration {
        do throws(ConfigurationProblems) { return try read() } catch {
            if log(error) { throw ExitCode(78) }
            for problem in error.warnings { printError("warning: \(problem)") }
            for problem in error.problems { printError("\(problem)") }
            throw ExitCode(78)
        }
    }
}
