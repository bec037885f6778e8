import ConfigurationTestSupport
import TestSupport

@testable import Configuration

/// `docs/configuration.md`: written by people, but for the line of each key, which the code gives.
struct ReferencePage {
    private let lines: [String]
    private let keys: [ConfigurationKey]

    init(_ text: String) {
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let reader = ConfigurationReader(files: [], environment: testEnvironment())
        _ = AgentConfig(reading: reader.root(TOMLTable()))
        keys = reader.keys
    }

    /// The page with the lines that the code gives today. Keys that it lacks are added at the end of their section, those
    /// that no longer exist are left out.
    var updated: String {
        var result: [String] = []
        var left = keys
        var section: [String] = []
        var insertion = 0
        var isDropped = false
        func close() {
            let missing = left.filter { section.first == $0.table }.map(Self.line)
            result.insert(contentsOf: missing, at: insertion)
            left.removeAll { section.contains($0.table) }
        }
        for line in lines {
            if line.hasPrefix("#") {
                close()
                section = Self.tables(in: line)
                isDropped = false
            } else if let name = Self.key(in: line), let table = section.first,
                keys.contains(where: { $0.table == table })
            {
                let key = keys.first { $0.table == table && $0.name == name }
                left.removeAll { $0.name == name && $0.table == table }
                isDropped = key == nil
                if let key { result.append(Self.line(key)) }
                insertion = result.count
                continue
            } else if !line.hasPrefix("  ") {
                isDropped = false
            }
            if isDropped { continue }
            result.append(line)
            if line.hasPrefix("  ") || line.hasPrefix("#") { insertion = result.count }
        }
        close()
        while let table = left.first?.table {
            result += ["## `\(table)`", ""] + left.filter { $0.table == table }.map(Self.line) + [""]
            left.removeAll { $0.table == table }
        }
        return result.joined(separator: "\n")
    }

    /// Keys without a word about what they do; a vendor's name needs none.
    var undescribed: [String] {
        var section: [String] = []
        return zip(lines, lines.dropFirst()).compactMap { line, next in
            if line.hasPrefix("#") { section = Self.tables(in: line) }
            guard let name = Self.key(in: line), !next.hasPrefix("  "),
                keys.contains(where: { section.contains($0.table) && $0.name == name && $0.aliasOf == nil })
            else { return nil }
            return "\(section[0]) \(name)"
        }
    }

    /// The tables that a heading names, in backticks.
    private static func tables(in heading: String) -> [String] {
        heading.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .compactMap { $0 % 2 == 1 && $1.hasPrefix("[") ? String($1) : nil }
    }

    private static func key(in line: String) -> String? {
        let parts = line.split(separator: "`", maxSplits: 2, omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0] == "- " && parts[2].hasPrefix(": ") ? String(parts[1]) : nil
    }

    private static func line(_ key: ConfigurationKey) -> String {
        var parts = ["- `\(key.name)`: \(key.accepted)"]
        if let other = key.aliasOf {
            parts.append("another name of `\(other)`")
        } else if key.isRequired {
            parts.append("required")
        } else if let note = key.note {
            let isSuggested = note.hasPrefix("profile")
            parts.append("default: \(isSuggested ? "`\(key.standard ?? "")` with \(note)" : note)")
        } else {
            parts.append(key.standard.map { "default: `\($0)`" } ?? "no default")
        }
        switch key.effect {
        case .reload, .reloadOfCredentials: parts.append("reload")
        case .restart: parts.append("restart")
        }
        return parts.joined(separator: "; ") + "."
    }
}
