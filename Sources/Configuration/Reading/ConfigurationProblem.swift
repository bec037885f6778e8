import Profiles

/// One thing that is wrong, or doubtful, in the configuration.
package struct ConfigurationProblem: Hashable, Sendable, CustomStringConvertible {
    /// nil when the problem is not at one place of one file.
    package var position: SourcePosition?
    /// Dotted path of the key; nil for a file that is not TOML, or cannot be read.
    package var key: String?
    /// Without position and key; never holds the value of a secret.
    package var message: String
    /// The key or table is unknown: another that is missing may be this one with a typo.
    var isUnknownName: Bool
    /// Another user, or a process with other variables, may find nothing wrong here.
    package var dependsOnReader: Bool

    package init(_ message: String, at position: SourcePosition? = nil, key: String? = nil) {
        self.init(message, at: position, key: key, isUnknownName: false)
    }

    init(
        _ message: String, at position: SourcePosition?, key: String?, isUnknownName: Bool = false,
        dependsOnReader: Bool = false
    ) {
        self.message = message
        self.position = position
        self.key = key
        self.isUnknownName = isUnknownName
        self.dependsOnReader = dependsOnReader
    }

    /// `file:line:column: key: found …, expected … (did you mean …?)`, in one line whatever the names of keys and files are.
    package var description: String {
        [position?.description, key, message].compactMap { $0 }.joined(separator: ": ").visible(bytesMax: .max)
    }
}

/// Everything that keeps a configuration from being used, in the order of the files and lines. Exit status 78.
package struct ConfigurationProblems: Error, Hashable, Sendable, CustomStringConvertible {
    package var problems: [ConfigurationProblem]
    /// What would have been doubtful besides.
    package var warnings: [ConfigurationProblem]

    package init(_ problems: [ConfigurationProblem], warnings: [ConfigurationProblem] = []) {
        self.problems = problems
        self.warnings = warnings
    }

    /// Unknown names first: what is said of missing keys may follow from them. For where only one has space.
    package var byWeight: [ConfigurationProblem] {
        problems.filter(\.isUnknownName) + problems.filter { !$0.isUnknownName }
    }

    /// One line for each problem.
    package var description: String { problems.map(\.description).joined(separator: "\n") }
}
