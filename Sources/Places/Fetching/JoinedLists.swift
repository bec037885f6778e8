import WaypostCore

/// How the list of a server differs from the one before.
package struct ListChange: Hashable, Sendable {
    package var added = 0
    package var gone = 0
    /// Those that stay, and are not what they were, such as a geofence with another shape.
    package var changed = 0

    package init(added: Int = 0, gone: Int = 0, changed: Int = 0) {
        self.added = added
        self.gone = gone
        self.changed = changed
    }

    package var isEmpty: Bool { self == ListChange() }
}

/// What the configuration lists and what servers list, of one kind, joined: what is watched.
package struct JoinedLists<Item: ListedItem>: Sendable {
    private var own: [Item]
    /// In the order of the configuration; nil = none has come yet.
    private var sources: [(name: String, items: [Item]?)]

    /// - Parameters:
    ///   - own: of the configuration, and of files that it names.
    ///   - sources: names of the lists of servers.
    package init(own: [Item], sources: [String]) {
        self.own = own
        self.sources = sources.map { ($0, nil) }
    }

    /// All of them, those of the configuration first.
    package var joined: [Item] { sources.reduce(own) { $0 + ($1.items ?? []) } }

    /// nil = none has come yet.
    package func count(of source: String) -> Int? { items(of: source)?.count }

    /// What keeps a list from coming into force: there would be too many together; nil = nothing does.
    package func problem(with items: [Item], of source: String) -> ListProblems? {
        var others = ListSize(of: own)
        for other in sources where other.name != source { others.add(other.items ?? []) }
        let size = ListSize(of: items)
        let words: String
        if others.items + size.items > Item.inForceMax {
            let count = InWords.count(size.items, Item.noun)
            words = "found \(count) beside \(others.items) others, expected at most \(Item.inForceMax) together"
        } else if others.corners + size.corners > Item.cornersMax {
            let count = InWords.count(size.corners, "corner")
            words =
                "found polygons with \(count) beside \(others.corners) of others, "
                + "expected at most \(Item.cornersMax) together"
        } else {
            return nil
        }
        return ListProblems(lines: [words])
    }

    /// A server gave a list, or one that was kept was read.
    ///
    /// - Throws: `ListProblems` when there are too many together; nothing has changed then.
    package mutating func received(_ items: [Item], of source: String) throws(ListProblems) -> ListChange {
        guard let index = sources.firstIndex(where: { $0.name == source }) else { return ListChange() }
        if let problem = problem(with: items, of: source) { throw problem }
        let change = ListChange(from: sources[index].items ?? [], to: items)
        sources[index].items = items
        return change
    }

    /// The configuration is another. Sources that are still there keep their lists, as long as they are not too long together.
    ///
    /// - Parameter kept: names of the sources whose lists stay.
    /// - Returns: names of those whose lists were given up because there are too many items or corners together.
    package mutating func reloaded(own: [Item], sources names: [String], kept: Set<String>) -> [String] {
        let before = sources
        self.own = own
        sources = []
        var givenUp: [String] = []
        for name in names {
            let items = kept.contains(name) ? before.first { $0.name == name }?.items : nil
            let isTooLong = items.map { problem(with: $0, of: name) != nil } ?? false
            sources.append((name, isTooLong ? nil : items))
            if isTooLong { givenUp.append(name) }
        }
        return givenUp
    }

    private func items(of source: String) -> [Item]? { sources.first { $0.name == source }?.items }
}

/// How long lists are: both numbers are limited for all that are in force together.
private struct ListSize {
    var items = 0
    var corners = 0

    init(of list: [some ListedItem]) { add(list) }

    mutating func add(_ list: [some ListedItem]) {
        items += list.count
        for item in list { corners += item.cornerCount }
    }
}

extension ListChange {
    package init<Item: ListedItem>(from old: [Item], to new: [Item]) {
        self.init()
        var before = Dictionary(old.map { ($0.id, $0) }) { first, _ in first }
        for item in new {
            guard let known = before.removeValue(forKey: item.id) else {
                added += 1
                continue
            }
            if known != item { changed += 1 }
        }
        gone = before.count
    }
}
