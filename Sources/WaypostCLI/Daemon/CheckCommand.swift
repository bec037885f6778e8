import Agent
import ArgumentParser

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Judge a configuration.",
        discussion: """
            Every problem is told at once, as file:line:column: key: what was found and what was expected. \
            Exit status 0 when it can be used, 78 when not. With gpsd as the source it is asked, for three seconds at most: \
            what is missing there is a warning.
            """)

    @Argument(help: "The configuration.", completion: .file(extensions: ["toml"]))
    var file = ConfigurationFile.standardPath

    @Flag(
        name: .customLong("print"),
        help:
            "Print the effective configuration with the origin of each value, and what an answer means to each endpoint."
    )
    var prints = false

    func run() throws {
        let loaded = try ConfigurationFile.load(file)
        for warning in loaded.warnings { printError("warning: \(warning)") }
        let look = loaded.config.source.look()
        for problem in look.problems { printError("warning: source: \(problem)") }
        if prints {
            print(loaded.effective, AnswerReport(loaded.config), separator: "", terminator: "")
        } else {
            printLine("\(file): good\(loaded.warnings.isEmpty ? "" : ", with warnings")")
            if let found = look.found { printLine("source: \(found)") }
        }
        try finishOutput()
    }
}
