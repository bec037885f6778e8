import Profiles

/// One table of the configuration, read key by key.
final class TableReader {
    private unowned let reader: ConfigurationReader
    /// Dotted, for messages: `resolution.default`. Empty for the outermost.
    let path: String
    /// With brackets, as it is written: `[resolution.default]`, `[[endpoint]]`.
    let title: String
    let position: SourcePosition
    /// Whether the file has this table.
    let isWritten: Bool
    /// The keys that the file has with another value than would be in force without them, in the order of reading.
    private(set) var changedKeys: [String] = []
    /// To have written the default means something: what is not written is shown as a comment.
    var countsWhenWritten = false
    private let effect: ChangeEffect
    private let table: TOMLTable
    private var readKeys: [String] = []
    private let isShown: Bool

    init(
        reader: ConfigurationReader, path: String, title: String, table: TOMLTable, position: SourcePosition,
        effect: ChangeEffect, isWritten: Bool, isShown: Bool = true
    ) {
        self.reader = reader
        self.path = path
        self.title = title
        self.table = table
        self.position = position
        self.effect = effect
        self.isWritten = isWritten
        self.isShown = isShown
    }

    var environment: ConfigurationEnvironment { reader.environment }

    func keyPath(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    var unread: [TOMLEntry] {
        if table.entries.isEmpty { return [] }
        let known = Set(readKeys)
        return table.entries.filter { !known.contains($0.key) }
    }

    var isEmpty: Bool { table.entries.isEmpty }

    func has(_ key: String) -> Bool { table[key] != nil }

    /// Where the value is; the table's own place when it is not written.
    func place(of key: String) -> SourcePosition { table[key]?.node.position ?? position }

    /// A vendor's name for a key, and the form of the vendor's bare number.
    struct Alias<Value> {
        var name: String
        var form: ValueForm<Value>
        /// The table of the vendor's name, where that is not the table of our key.
        var table: TableReader?

        init(_ name: String, _ form: ValueForm<Value>, in table: TableReader? = nil) {
            self.name = name
            self.form = form
            self.table = table
        }
    }

    /// Puts the value of a key into `value`, which holds the default; true when the file has a value that counts.
    /// - Parameters:
    ///   - note: where the default comes from, unless it is built in.
    ///   - effect: when a change takes effect; nil = as with the other keys of the table.
    @discardableResult
    func read<Value>(
        _ key: String, into value: inout Value, as form: ValueForm<Value>, alias: Alias<Value>? = nil,
        note: String? = nil, on effect: ChangeEffect? = nil, isRequired: Bool = false
    ) -> Bool {
        let standard = form.render(value)
        let effect = effect ?? self.effect
        reader.describe(
            ConfigurationKey(
                table: title, name: key, accepted: form.accepted ?? form.expected,
                standard: standard == "" ? nil : standard,
                note: note, isRequired: isRequired, effect: effect))
        if let alias {
            reader.describe(
                ConfigurationKey(
                    table: (alias.table ?? self).title, name: alias.name,
                    accepted: alias.form.accepted ?? alias.form.expected,
                    aliasOf: alias.table == nil ? key : "\(title) \(key)", effect: effect))
        }
        var origin: SourcePosition?
        if let entry = take(key), let read = evaluate(entry, form) {
            value = read
            origin = entry.keyPosition
            if let words = form.doubt(entry.node) { warn(key, words) }
        }
        if let alias, let entry = (alias.table ?? self).take(alias.name) {
            if let ours = table[key] {
                reader.report(
                    ConfigurationProblem(
                        "found together with \(key) (line \(ours.keyPosition.line)), "
                            + "expected one of the two: it is another name for the same setting",
                        at: entry.keyPosition, key: (alias.table ?? self).keyPath(alias.name)))
            } else if let read = (alias.table ?? self).evaluate(entry, alias.form) {
                value = read
                origin = entry.keyPosition
            }
        }
        let rendered = form.render(value)
        if origin != nil, rendered != standard { changedKeys.append(key) }
        show(key, rendered, origin, note, on: effect)
        return origin != nil
    }

    /// The same for a key without a default; nil stays nil when the key is not written.
    @discardableResult
    func read<Value>(
        _ key: String, into value: inout Value?, as form: ValueForm<Value>, alias: Alias<Value>? = nil,
        note: String? = nil, on effect: ChangeEffect? = nil, isRequired: Bool = false
    ) -> Bool {
        read(
            key, into: &value, as: form.optional, alias: alias.map { Alias($0.name, $0.form.optional, in: $0.table) },
            note: note, on: effect, isRequired: isRequired)
    }

    /// A key that must be there; nil, and a problem, when it is not.
    func require<Value>(_ key: String, as form: ValueForm<Value>, alias: Alias<Value>? = nil) -> Value? {
        var value: Value?
        read(key, into: &value, as: form, alias: alias, isRequired: true)
        let aliasWritten = alias.map { ($0.table ?? self).has($0.name) } ?? false
        if isWritten, !has(key), !aliasWritten {
            report(key, "found nothing, expected \(form.expected)", at: position)
        }
        return value
    }

    func report(_ key: String, _ message: String, at place: SourcePosition? = nil) {
        reader.report(ConfigurationProblem(message, at: place ?? self.place(of: key), key: keyPath(key)))
    }

    /// About several keys together, at the first of them that this table has. If it has none, the values come from another
    /// table and nothing is reported: so one reading function may serve several tables, of which one has the mistake. Nor is
    /// anything reported about a key that could not be read: the value in force is not what was meant.
    func report(_ keys: [String], _ message: String) {
        let written = keys.filter(has)
        if let key = written.first, !written.contains(where: hasProblem) { report(key, message) }
    }

    private func hasProblem(_ key: String) -> Bool { reader.hasProblem(with: keyPath(key), at: place(of: key)) }

    /// About another place than a key of this table.
    func report(_ problem: ConfigurationProblem) { reader.report(problem) }

    /// A file that is a part of the configuration was read.
    func include(_ text: ConfigurationText) { reader.include(text) }

    /// Whether anything is wrong with the values of a table, or those within it.
    func hasProblems(under path: String) -> Bool { reader.hasProblems(under: path) }

    /// The keys that were read so far, of this name or in the table of this name.
    /// - Parameter path: dotted.
    func knownKeys(under path: String) -> [ConfigurationKey] {
        reader.keys.filter { $0.path.map { $0 == path || $0.hasPrefix("\(path).") } ?? false }
    }

    func warn(_ key: String, _ message: String) {
        reader.warn(ConfigurationProblem(message, at: place(of: key), key: keyPath(key)))
    }

    /// Keys of the manual that this build does not have: a clear message instead of "unknown".
    func refuse(_ keys: [String]) {
        for key in keys {
            guard let entry = take(key) else { continue }
            reader.report(
                ConfigurationProblem(
                    "found a key that this build of waypost does not have", at: entry.keyPosition, key: keyPath(key)))
        }
    }

    func show(
        _ key: String, _ value: String, _ origin: SourcePosition?, _ note: String? = nil, on effect: ChangeEffect? = nil
    ) {
        guard isShown else { return }
        reader.show(
            EffectiveConfiguration.Entry(
                table: title, key: key, value: value == "" ? nil : value, origin: origin, note: note,
                countsWhenWritten: countsWhenWritten, effect: effect ?? self.effect))
    }

    /// Says more about a key that is not set than was known when it was read.
    func explain(_ key: String, _ note: String) { reader.explain(key, in: title, note) }

    /// Marks a key as known and gives its entry.
    func take(_ key: String) -> TOMLEntry? {
        readKeys.append(key)
        reader.learn(key, of: title)
        return table[key]
    }

    /// Every entry, for tables whose keys are the user's own: at most 1000.
    func takeAll() -> [TOMLEntry] {
        readKeys += table.entries.map(\.key)
        let most = 1000
        if table.entries.count > most {
            reader.report(
                ConfigurationProblem(
                    "found \(table.entries.count) keys, expected at most \(most)", at: position, key: path))
        }
        return Array(table.entries.prefix(most))
    }

    func evaluate<Value>(_ entry: TOMLEntry, _ form: ValueForm<Value>) -> Value? {
        do throws(Mistake) {
            return try form.read(entry.node, reader.environment)
        } catch {
            let mistake = error
            let found = mistake.found ?? (form.isSecret ? entry.node.kind : entry.node.description)
            let hint = mistake.suggestion.map { " (did you mean \($0)?)" } ?? ""
            let key = mistake.subkey.map { "\(entry.key).\($0)" } ?? entry.key
            reader.report(
                ConfigurationProblem(
                    "found \(found), expected \(mistake.expected ?? form.expected)\(hint)",
                    at: mistake.position ?? entry.node.position, key: keyPath(key),
                    dependsOnReader: mistake.dependsOnReader))
            return nil
        }
    }

    /// A table of this table, empty where the file has none.
    /// - Parameter effect: when changes in it take effect; nil = as in this table.
    func table(_ key: String, _ effect: ChangeEffect? = nil) -> TableReader {
        let inner = keyPath(key)
        let empty = child(inner, "[\(inner)]", TOMLTable(), position, effect, isWritten: false)
        guard let entry = take(key) else { return reader.visit(empty) }
        switch entry.node.value {
        case .table(let table):
            return reader.visit(child(inner, "[\(inner)]", table, entry.keyPosition, effect, isWritten: true))
        case .array(let elements) where elements.contains { if case .table = $0.value { true } else { false } }:
            reader.report(
                ConfigurationProblem(
                    "found an array of tables, expected one table, written [\(inner)]", at: entry.keyPosition,
                    key: inner))
        default:
            reader.report(
                ConfigurationProblem(
                    "found \(entry.node.description), expected a table, written [\(inner)]",
                    at: entry.node.position, key: inner))
        }
        return reader.visit(empty)
    }

    /// The same; where the file has none, `other`.
    func table(_ key: String, _ effect: ChangeEffect? = nil, orElse other: TOMLTable?) -> TableReader {
        guard take(key) == nil, let other else { return table(key, effect) }
        let inner = keyPath(key)
        return reader.visit(child(inner, "[\(inner)]", other, position, effect, isWritten: true))
    }

    /// The same for a key that may also be written as something else, which another form reads: then the table is empty.
    func tableIfSo(_ key: String, _ effect: ChangeEffect? = nil) -> TableReader {
        if case .table = self.table[key]?.node.value { return table(key, effect) }
        let inner = keyPath(key)
        return reader.visit(
            child(inner, "[\(inner)]", TOMLTable(), position, effect, isWritten: false, isShown: false))
    }

    /// The tables of an array; where the file has none, one that is not written, so that its keys are known.
    /// - Parameter most: further ones are not read, since each takes time and memory.
    func tables(_ key: String, _ effect: ChangeEffect? = nil, most: Int = 1000) -> [TableReader] {
        let inner = keyPath(key)
        let title = "[[\(inner)]]"
        let none = child(inner, title, TOMLTable(), position, effect, isWritten: false, isShown: false)
        guard let entry = take(key) else { return [reader.visit(none)] }
        if case .array(let elements) = entry.node.value {
            let tables = elements.compactMap { element in
                if case .table(let table) = element.value { (table, element.position) } else { nil }
            }
            if tables.count == elements.count, !tables.isEmpty {
                if tables.count > most {
                    reader.report(
                        ConfigurationProblem(
                            "found \(tables.count) tables, expected at most \(most)", at: tables[most].1, key: inner))
                }
                return tables.prefix(most).map { reader.visit(child(inner, title, $0, $1, effect, isWritten: true)) }
            }
        }
        reader.report(
            ConfigurationProblem(
                "found \(entry.node.description), expected tables, each written \(title)", at: entry.keyPosition,
                key: inner))
        return [reader.visit(none)]
    }

    private func child(
        _ path: String, _ title: String, _ table: TOMLTable, _ position: SourcePosition,
        _ effect: ChangeEffect?, isWritten: Bool, isShown: Bool = true
    ) -> TableReader {
        TableReader(
            reader: reader, path: path, title: title, table: table, position: position, effect: effect ?? self.effect,
            isWritten: isWritten, isShown: isShown && self.isShown)
    }
}

extension ValueForm {
    fileprivate var optional: ValueForm<Value?> {
        let render = render
        return ValueForm<Value?>(
            expected: expected,
            read: { [read] node, environment throws(Mistake) in try read(node, environment) },
            render: { $0.map(render) ?? "" }, isSecret: isSecret, accepted: accepted, doubt: doubt)
    }
}
