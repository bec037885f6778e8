/// What is wrong with a list from a server: one line for each mistake, which names the place in the text; never empty.
package struct ListProblems: Error, Hashable, Sendable, CustomStringConvertible {
    package var lines: [String]

    package init(lines: [String]) { self.lines = lines }

    /// The first, and how many more there are.
    package var description: String {
        (lines.first ?? "") + (lines.count > 1 ? " (and \(lines.count - 1) more)" : "")
    }
}
