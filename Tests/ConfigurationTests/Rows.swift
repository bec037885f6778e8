/// A table as text, so that each input stands there as in a file: `INPUT → WORDS`, with `⏎` for an end of a line within the
/// input. Either may have lines of its own; those that begin with `//` are headings.
func rows(_ table: String) -> [(String, String)] {
    var rows: [(String, String)] = []
    var input: [String] = []
    for line in table.split(separator: "\n", omittingEmptySubsequences: false) where !line.hasPrefix("//") {
        let parts = line.split(separator: "→ ", maxSplits: 1, omittingEmptySubsequences: false)
        let isLast = parts.count == 2
        let before = isLast ? parts[0].dropLast() : parts[0]
        if !before.isEmpty { input.append(String(before).replacing(" ⏎ ", with: "\n")) }
        guard isLast else { continue }
        rows.append((input.joined(separator: "\n"), String(parts[1])))
        input = []
    }
    precondition(input.isEmpty, "without words: \(input)")
    return rows
}
