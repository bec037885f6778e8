/// The keys in which two configurations differ.
package struct ConfigurationDifference {
    package struct Change: Hashable {
        /// With brackets, as in `EffectiveConfiguration.Entry`.
        package var table: String
        package var key: String
        /// Which of the tables of this name, from 0.
        package var index: Int
        /// There are more or fewer tables of this name: then this is for all of their keys.
        var isWhole: Bool
        package var effect: ChangeEffect

        /// `[tracking] stop_timeout`, `[[endpoint]] base_url`, `[[endpoint]]`
        package var name: String { isWhole ? table : "\(table) \(key)" }
    }

    /// In the order of the new configuration, then what only the old one has. Defaults that follow from other keys are not
    /// among them.
    package private(set) var changes: [Change] = []
    /// Those defaults.
    package private(set) var following: [Change] = []
    fileprivate let before: [Placed]

    package init(from old: EffectiveConfiguration, to new: EffectiveConfiguration) {
        before = old.placed
        let after = new.placed
        let entries = Dictionary(before.map { ($0.place, $0.entry) }) { first, _ in first }
        let places = Set(after.map(\.place))
        let counts = (Self.counts(before), Self.counts(after))
        var seen: Set<String> = []
        func note(_ place: Place, _ effect: ChangeEffect) {
            if place.table.hasPrefix("[["), counts.0[place.table] != counts.1[place.table] {
                guard seen.insert(place.table).inserted else { return }
                changes.append(Change(table: place.table, key: "", index: 0, isWhole: true, effect: effect))
            } else {
                changes.append(
                    Change(table: place.table, key: place.key, index: place.index, isWhole: false, effect: effect))
            }
        }
        for (place, entry) in after where entries[place]?.value != entry.value {
            guard let former = entries[place] else {
                if entry.origin != nil { note(place, entry.effect) }
                continue
            }
            if entry.origin != nil || former.origin != nil {
                note(place, entry.effect)
            } else {
                following.append(
                    Change(table: place.table, key: place.key, index: place.index, isWhole: false, effect: entry.effect)
                )
            }
        }
        for (place, entry) in before where !places.contains(place) && entry.origin != nil {
            note(place, entry.effect)
        }
    }

    fileprivate struct Place: Hashable {
        var table: String
        var key: String
        var index: Int
    }

    fileprivate typealias Placed = (place: Place, entry: EffectiveConfiguration.Entry)

    /// How many tables of each name there are.
    private static func counts(_ placed: [Placed]) -> [String: Int] {
        var counts: [String: Int] = [:]
        for (place, _) in placed { counts[place.table] = max(counts[place.table] ?? 0, place.index + 1) }
        return counts
    }
}

extension ConfigurationDifference.Change {
    /// The place of a whole table has no key.
    fileprivate var place: ConfigurationDifference.Place { .init(table: table, key: key, index: index) }
}

extension EffectiveConfiguration {
    fileprivate var placed: [ConfigurationDifference.Placed] {
        var seen: [ConfigurationDifference.Place: Int] = [:]
        return entries.map { entry in
            var place = ConfigurationDifference.Place(table: entry.table, key: entry.key, index: 0)
            let index = seen[place, default: 0]
            seen[place] = index + 1
            place.index = index
            return (place, entry)
        }
    }

    /// Restores what these changes have changed: at the new entries, else at the end.
    package mutating func restore(
        _ changes: [ConfigurationDifference.Change], from difference: ConfigurationDifference
    ) {
        let restored = Set(changes.map(\.place))
        func change(_ place: ConfigurationDifference.Place) -> ConfigurationDifference.Place? {
            let whole = ConfigurationDifference.Place(table: place.table, key: "", index: 0)
            return restored.contains(whole) ? whole : restored.contains(place) ? place : nil
        }
        var kept: [ConfigurationDifference.Place: [Entry]] = [:]
        for (place, entry) in difference.before {
            if let change = change(place) { kept[change, default: []].append(entry) }
        }
        let after = placed
        entries = []
        for (place, entry) in after {
            if let change = change(place) {
                entries += kept.removeValue(forKey: change) ?? []
            } else {
                entries.append(entry)
            }
        }
        for change in changes { entries += kept.removeValue(forKey: change.place) ?? [] }
    }
}
