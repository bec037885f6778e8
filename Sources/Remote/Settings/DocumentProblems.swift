/// What is wrong at one place of a document.
package struct RemoteProblem: Hashable, Sendable, CustomStringConvertible {
    /// As many of one document are kept and reported.
    package static let kept = 20

    /// Of a member or a dotted key; empty = the whole.
    package var path: String
    package var reason: String

    package init(_ path: String, _ reason: String) {
        self.path = path
        self.reason = reason
    }

    /// `sampling.rule: not allowed`, `not an object`
    package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
}

/// Why a text is no document.
package struct DocumentProblems: Error, Hashable, Sendable {
    package var problems: [RemoteProblem]
    /// nil = it could not be read.
    package var version: Int64?

    init(_ problems: [RemoteProblem], version: Int64? = nil) {
        self.problems = problems
        self.version = version
    }
}
