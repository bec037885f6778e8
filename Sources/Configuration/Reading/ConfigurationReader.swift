import Profiles
import WaypostCore

/// Walks the tables of a configuration, collects every problem, and remembers which keys exist and what they became.
///
/// Every table is visited whether or not the file has it: so the reader learns all keys, and knows where one belongs
/// that is in the wrong table.
final class ConfigurationReader {
    let environment: ConfigurationEnvironment
    /// In the order in which they were merged; the order of the report.
    let files: [String]
    private(set) var effective = EffectiveConfiguration()
    /// Files that the configuration names and that are a part of it.
    private(set) var included: [ConfigurationText] = []
    private var problems: [ConfigurationProblem] = []
    private var known: Set<ConfigurationProblem> = []
    /// Problems beyond those that are kept.
    private var moreProblems = 0
    private var warnings: [ConfigurationProblem] = []
    /// Those with a value, in the order in which they were first read.
    private(set) var keys: [ConfigurationKey] = []
    /// The names of `keys`, by the title of their table.
    private var described: [String: Set<String>] = [:]
    /// Each key that was asked for, and the title of its table.
    private var learned: [(key: String, table: String)] = []
    /// The same by table. Only unknown names ask for it, once all keys are learned.
    private lazy var vocabulary = Vocabulary(learned)
    private var visited: [TableReader] = []
    /// Problems that are reported one by one: who sees these sees what is wrong.
    private static let problemsMax = 1000
    /// Unknown names that are compared with all known ones.
    private static let hintsMax = 50
    private var hints = 0

    private struct Vocabulary {
        struct Table {
            let title: String
            /// In the order in which they were asked for.
            var keys: [String] = []
            var known: Set<String> = []
        }

        private(set) var tables: [Table] = []
        private var places: [String: Int] = [:]

        init(_ learned: [(key: String, table: String)]) {
            for (key, title) in learned {
                let index = places[title] ?? tables.count
                if index == tables.count {
                    tables.append(Table(title: title))
                    places[title] = index
                }
                if tables[index].known.insert(key).inserted { tables[index].keys.append(key) }
            }
        }

        func keys(of title: String) -> [String] { places[title].map { tables[$0].keys } ?? [] }
    }

    init(files: [String], environment: ConfigurationEnvironment) {
        self.files = files
        self.environment = environment
    }

    /// The outermost table.
    func root(_ table: TOMLTable) -> TableReader {
        let start = SourcePosition(file: files.first ?? "", line: 1, column: 1)
        return visit(
            TableReader(
                reader: self, path: "", title: "", table: table, position: start, effect: .restart, isWritten: true))
    }

    func visit(_ table: TableReader) -> TableReader {
        visited.append(table)
        return table
    }

    func learn(_ key: String, of title: String) { learned.append((key, title)) }

    func describe(_ key: ConfigurationKey) {
        if described[key.table, default: []].insert(key.name).inserted { keys.append(key) }
    }

    func include(_ text: ConfigurationText) { included.append(text) }

    func show(_ entry: EffectiveConfiguration.Entry) { effective.entries.append(entry) }

    func explain(_ key: String, in table: String, _ note: String) {
        guard let index = effective.entries.firstIndex(where: { $0.table == table && $0.key == key }) else { return }
        effective.entries[index].note = note
    }

    func report(_ problem: ConfigurationProblem) {
        if problems.count >= Self.problemsMax {
            moreProblems += 1
        } else if known.insert(problem).inserted {
            problems.append(problem)
        }
    }

    func hasProblem(with key: String, at place: SourcePosition) -> Bool {
        problems.contains { $0.key == key && $0.position == place }
    }

    /// - Parameter path: dotted, of a table or a key.
    func hasProblems(under path: String) -> Bool {
        problems.contains { $0.key.map { $0 == path || $0.hasPrefix("\(path).") } ?? false }
    }

    func warn(_ warning: ConfigurationProblem) { warnings.append(warning) }

    /// Reports the keys that were not read. Call it once, after all tables were visited.
    func finish() {
        for table in visited {
            for entry in table.unread { reportUnknown(entry, in: table) }
        }
    }

    /// In the order of the files, then of lines and columns.
    var sortedProblems: [ConfigurationProblem] {
        let more = "found no room for \(moreProblems) more problems"
        return sorted(problems) + (moreProblems > 0 ? [ConfigurationProblem(more)] : [])
    }
    var sortedWarnings: [ConfigurationProblem] { sorted(warnings) }

    private func sorted(_ list: [ConfigurationProblem]) -> [ConfigurationProblem] {
        let places = Dictionary(zip(files, files.indices)) { first, _ in first }
        func order(_ problem: ConfigurationProblem) -> (Int, Int, Int) {
            guard let position = problem.position else { return (-1, 0, 0) }
            return (places[position.file] ?? -1, position.line, position.column)
        }
        // Swift's sort is stable, so that problems at one place keep the order in which they were found.
        return list.sorted { order($0) < order($1) }
    }

    private func reportUnknown(_ entry: TOMLEntry, in table: TableReader) {
        let isTable =
            switch entry.node.value {
            case .table, .array: true
            default: false
            }
        let found = table.path.isEmpty && isTable ? "an unknown table" : "an unknown key"
        let expected = table.title.isEmpty ? "one of the tables of waypost" : "a key of \(table.title)"
        report(
            ConfigurationProblem(
                "found \(found), expected \(expected)\(hint(for: entry.key, in: table))", at: entry.keyPosition,
                key: table.keyPath(entry.key), isUnknownName: true))
    }

    /// Which name may have been meant; empty when none is near, or after many others.
    private func hint(for key: String, in table: TableReader) -> String {
        hints += 1
        guard hints <= Self.hintsMax else { return "" }
        if let home = ForeignNames.homes[key] { return " (did you mean \(home.words)?)" }
        let near = nearest(key, in: vocabulary.keys(of: table.title))
        let homes = vocabulary.tables.filter { $0.title != table.title && $0.known.contains(key) }.map(\.title)
        if let near, homes.isEmpty || editDistance(near, key) == 1 { return " (did you mean \(near)?)" }
        if homes.contains("") { return " (it is a table: [\(key)])" }
        if !homes.isEmpty { return " (it belongs in \(homes.prefix(2).joined(separator: " or ")))" }
        return nearestElsewhere(key, except: table.title).map { " (did you mean \($0.key) in \($0.table)?)" } ?? ""
    }

    private func nearestElsewhere(_ key: String, except title: String) -> (key: String, table: String)? {
        let others = vocabulary.tables.filter { $0.title != title && !$0.title.isEmpty }
        guard let match = nearest(key, in: others.flatMap(\.keys)), editDistance(match, key) == 1,
            let home = others.first(where: { $0.known.contains(match) })
        else { return nil }
        return (match, home.title)
    }
}
