import ArgumentParser
import Configuration
import Daemon
import WaypostCore

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check a configuration.",
        discussion: """
            Reports every problem at once, as file:line:column: key: what was found and what was expected. \
            Exit status: 0 it can be used, 78 it cannot. A gpsd source is queried for at most ten seconds; \
            what is missing there is a warning.
            """)

    @Argument(help: "The configuration.", completion: .file(extensions: ["toml"]))
    var file = ConfigurationFile.standardPath

    @Flag(
        name: .customLong("print"),
        help:
            "Print the effective configuration with the origin of each value, and what each answer means to each endpoint."
    )
    var prints = false

    @Flag(help: "Print one object of JSON: whether it is valid, and each problem and warning.")
    var json = false

    func validate() throws {
        if prints, json { throw ValidationError("--print and --json exclude each other.") }
    }

    func run() throws {
        var loaded = try ConfigurationFile.load(
            file,
            log: { problems in
                guard json, !Denial.forbidsReading(file) else { return false }
                printJSON(Self.json(file, problems: problems.problems.map { "\($0)" }, problems.warnings))
                return true
            }
        ) { () throws(ConfigurationProblems) in
            try AgentConfig.load(path: file, environment: ConfigurationFile.environment(requiresCredentials: false))
        }
        let environment = ConfigurationFile.environment(requiresCredentials: false)
        // The daemon writes these settings.
        let remoteProblem: String?
        do {
            remoteProblem = try NamedPath(path: loaded.config.outbox.settings.path).acting {
                loaded.layRemote(environment: environment)
            }
        } catch {
            remoteProblem = "settings from afar are not shown: \(error)"
        }
        let look = loaded.config.source.look()
        let credentials = CredentialCheck(loaded.config, isOfUnit: file == ConfigurationFile.standardPath)
        let warnings =
            loaded.warnings.map { "\($0)" } + look.problems.map { "source: \($0)" } + [remoteProblem].compactMap(\.self)
            + credentials.warnings
        guard credentials.problems.isEmpty else {
            if json {
                printJSON(Self.json(file, problems: credentials.problems, warnings))
            } else {
                for warning in warnings { printError("warning: \(warning)") }
                for problem in credentials.problems { printError("\(file): \(problem)") }
            }
            try finishOutput()
            throw ExitCode(78)
        }
        if json {
            printJSON(Self.json(file, problems: [], warnings, source: look.found))
            return try finishOutput()
        }
        for warning in warnings { printError("warning: \(warning)") }
        if prints {
            printText("\(loaded.effective)\(AnswerReport(loaded.config))", terminator: "")
        } else {
            printLine("\(file): valid\(loaded.warnings.isEmpty ? "" : ", with warnings")")
            if let found = look.found { printLine("source: \(found)") }
            for cost in ViewerCost.all(loaded.config) { printLine(cost.words) }
        }
        try finishOutput()
    }

    private static func json(
        _ file: String, problems: [String], _ warnings: [some CustomStringConvertible], source: String? = nil
    ) -> String {
        var writer = JSONWriter()
        func list(_ key: StaticString, _ texts: [String]) {
            writer.key(key)
            writer.beginArray()
            for text in texts { writer.value(text) }
            writer.endArray()
        }
        writer.beginObject()
        writer.field("file", file)
        writer.field("valid", problems.isEmpty)
        list("problems", problems)
        list("warnings", warnings.map { "\($0)" })
        writer.field("source", source)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
