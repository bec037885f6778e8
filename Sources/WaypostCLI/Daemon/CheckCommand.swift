import Agent
import ArgumentParser

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check a configuration.",
        discussion: """
            Reports every problem at once, as file:line:column: key: what was found and what was expected. \
            Exit status: 0 it can be used, 78 it cannot. A gpsd source is queried for at most three seconds; \
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

    func run() throws {
        var loaded = try ConfigurationFile.load(file)
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
        for warning in loaded.warnings { printError("warning: \(warning)") }
        let look = loaded.config.source.look()
        for problem in look.problems { printError("warning: source: \(problem)") }
        if let remoteProblem { printError("warning: \(remoteProblem)") }
        if prints {
            print(loaded.effective, AnswerReport(loaded.config), separator: "", terminator: "")
        } else {
            printLine("\(file): valid\(loaded.warnings.isEmpty ? "" : ", with warnings")")
            if let found = look.found { printLine("source: \(found)") }
            for cost in ViewerCost.all(loaded.config) { printLine(cost.words) }
        }
        try finishOutput()
    }
}
