/// The keys in which two configurations differ. Defaults that follow from other keys are not named.
struct ConfigurationDifference {
    struct Change: Hashable {
        /// With brackets, as in `EffectiveConfiguration.Entry`.
        var table: String
        var key: String
        /// Which of the tables of this name, from 0.
        var index: Int
        /// There are more or fewer tables of this name: then this stands for all of their keys.
        var isWhole: Bool

        /// `[tracking] stop_timeout`, `[[endpoint]] base_url`, `[[endpoint]]`
        var name: String { isWhole ? table : "\(table) \(key)" }
    }

    /// In the order of the new configuration, then what only the old one has.
    private(set) var changes: [Change] = []
    fileprivate let old: [EffectiveConfiguration.Entry]

    init(from old: EffectiveConfiguration, to new: EffectiveConfiguration) {
        self.old = old.entries
        let (before, after) = (old.placed, new.placed)
        let entries = Dictionary(before.map { ($0.place, $0.entry) }) { first, _ in first }
        let places = Set(after.map(\.place))
        let counts = (Self.counts(before), Self.counts(after))
        var seen: Set<String> = []
        func note(_ place: Place) {
            if place.table.hasPrefix("[["), counts.0[place.table] != counts.1[place.table] {
                guard seen.insert(place.table).inserted else { return }
                changes.append(Change(table: place.table, key: "", index: 0, isWhole: true))
            } else {
                changes.append(Change(table: place.table, key: place.key, index: place.index, isWhole: false))
            }
        }
        for (place, entry) in after where entries[place]?.value != entry.value {
            if entry.origin != nil || entries[place]?.origin != nil { note(place) }
        }
        for (place, entry) in before where !places.contains(place) && entry.origin != nil { note(place) }
    }

    fileprivate struct Place: Hashable {
        var table: String
        var key: String
        var index: Int
    }

    /// How many tables of each name there are.
    private static func counts(_ placed: [(place: Place, entry: EffectiveConfiguration.Entry)]) -> [String: Int] {
        var counts: [String: Int] = [:]
        for (place, _) in placed { counts[place.table] = max(counts[place.table] ?? 0, place.index + 1) }
        return counts
    }
}

extension EffectiveConfiguration {
    fileprivate var placed: [(place: ConfigurationDifference.Place, entry: Entry)] {
        var seen: [String: Int] = [:]
        return entries.map { entry in
            let index = seen["\(entry.table) \(entry.key)", default: 0]
            seen["\(entry.table) \(entry.key)"] = index + 1
            return (ConfigurationDifference.Place(table: entry.table, key: entry.key, index: index), entry)
        }
    }

    /// Puts back what a change has changed.
    mutating func restore(_ change: ConfigurationDifference.Change, from difference: ConfigurationDifference) {
        var before = EffectiveConfiguration()
        before.entries = difference.old
        func concerns(_ place: ConfigurationDifference.Place) -> Bool {
            place.table == change.table && (change.isWhole || place.key == change.key && place.index == change.index)
        }
        let kept = before.placed.filter { concerns($0.place) }.map(\.entry)
        let at = placed.firstIndex { concerns($0.place) } ?? entries.endIndex
        entries = placed.filter { !concerns($0.place) }.map(\.entry)
        entries.insert(contentsOf: kept, at: min(at, entries.endIndex))
    }
}
