import Profiles

/// Every key with the value that is in force.
package struct EffectiveConfiguration: Sendable, CustomStringConvertible {
    /// One key.
    package struct Entry: Hashable, Sendable {
        /// With brackets: `[tracking]`, `[[endpoint]]`.
        package var table: String
        package var key: String
        /// As TOML; nil = unset. A secret is its reference, never its value.
        package var value: String?
        /// nil = the built-in default.
        package var origin: SourcePosition?
        /// Where the default comes from when it is not built in, such as `preset "active"`.
        package var note: String?
        /// To write it means something even with the default.
        package var countsWhenWritten = false
        package var effect: ChangeEffect
    }

    package var entries: [Entry] = []

    package init() {}

    /// Whether a key is in a file; false for a default.
    /// - Parameter table: with brackets: `[source]`.
    package func isWritten(_ key: String, in table: String) -> Bool {
        entries.contains { $0.table == table && $0.key == key && $0.origin != nil }
    }

    /// The file that would give the same configuration, but for secrets in the paths of URLs, which are masked: `key = value  # from file:line`, or `# default`.
    package var description: String {
        var text = ""
        var table: String?
        var keys: Set<String> = []
        var isUnwritten = false
        for (index, entry) in entries.enumerated() {
            // The same key again is that of the next table of an array.
            if entry.table != table || keys.contains(entry.key) {
                let rest = section(at: index)
                // A table without any value would be one that is written and lacks its keys.
                let isEmpty = rest.allSatisfy { $0.value == nil }
                isUnwritten = rest.allSatisfy { $0.countsWhenWritten && $0.origin == nil }
                text += (table == nil ? "" : "\n") + (isEmpty || isUnwritten ? "# " : "") + entry.table + "\n"
                table = entry.table
                keys = []
            }
            keys.insert(entry.key)
            let origin = entry.origin.map(Self.words) ?? entry.note ?? "default"
            if let value = entry.value.map(BaseURL.masked) {
                text += "\(isUnwritten ? "# " : "")\(entry.key) = \(value)  # \(origin)\n"
            } else {
                text += "# \(entry.key) is not set  # \(origin)\n"
            }
        }
        return text
    }

    /// The entries of one table.
    private func section(at start: Int) -> ArraySlice<Entry> {
        var keys: Set<String> = []
        return entries[start...].prefix { $0.table == entries[start].table && keys.insert($0.key).inserted }
    }

    /// Settings from afar have no line.
    private static func words(_ origin: SourcePosition) -> String {
        origin.line > 0 ? "from \(origin.file):\(origin.line)" : origin.file
    }
}
