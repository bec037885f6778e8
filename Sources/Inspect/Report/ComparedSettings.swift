import Configuration

/// A configuration of the user's own beside the one in force.
struct ComparedSettings {
    private static let namedMax = 8

    var name: String
    var settings: ReplaySettings
    /// Keys with the values that differ from those in force, for people; empty = none is known.
    var differences: String
    /// Whether the same would be kept, since nothing differs.
    var isSame: Bool

    /// - Parameters:
    ///   - inForce: nil = its keys are not known.
    ///   - tables: whose keys are named.
    init(
        _ name: String, _ own: LoadedConfiguration, with inForce: LoadedConfiguration?, _ settings: ReplaySettings,
        _ tables: [String]
    ) {
        self.name = name
        self.settings = ReplaySettings(own)
        isSame =
            self.settings.tracking.isSame(as: settings.tracking) && self.settings.timetable == settings.timetable
        guard let inForce, !isSame else {
            differences = ""
            return
        }
        let (ours, theirs) = (Self.values(own, tables), Self.values(inForce, tables))
        var keys: [String] = []
        for entry in own.effective.entries + inForce.effective.entries {
            let key = "\(entry.table) \(entry.key)"
            if ours[key] != theirs[key], !keys.contains(key) { keys.append(key) }
        }
        let named = keys.prefix(Self.namedMax).map { "\($0) = \(ours[$0]?.joined(separator: ", ") ?? "not set")" }
        differences = named.joined(separator: ", ")
        if keys.count > named.count { differences += ", and \(keys.count - named.count) more" }
    }

    /// What is written or built in, by table and key; several where there are several tables of that name. What only follows
    /// another key is left out.
    private static func values(_ loaded: LoadedConfiguration, _ tables: [String]) -> [String: [String]] {
        var values: [String: [String]] = [:]
        for entry in loaded.effective.entries where entry.isIn(tables) {
            if entry.origin == nil, entry.note?.hasPrefix("as [") == true { continue }
            if let value = entry.value { values["\(entry.table) \(entry.key)", default: []].append(value) }
        }
        return values
    }
}

extension EffectiveConfiguration.Entry {
    /// Whether it is a key of one of these tables, or of a table within.
    func isIn(_ tables: [String]) -> Bool {
        tables.contains(String(table.drop { $0 == "[" }.prefix { $0 != "." && $0 != "]" }))
    }
}
