import Tracking

/// The fences of the configuration and those of servers, joined: what is watched.
package struct FenceLists: Sendable {
    /// How the list of a server differs from the one before.
    package struct Change: Hashable, Sendable {
        package var added = 0
        package var gone = 0
        /// Shape, name or dwell is another.
        package var changed = 0

        package var isEmpty: Bool { self == Change() }
    }

    private var own: [Geofence]
    /// In the order of the configuration; nil = none has come yet.
    private var sources: [(name: String, fences: [Geofence]?)]

    /// - Parameters:
    ///   - own: of the configuration, and of the file that it names.
    ///   - sources: names of the lists of servers.
    package init(own: [Geofence], sources: [String]) {
        self.own = own
        self.sources = sources.map { ($0, nil) }
    }

    /// All of them, those of the configuration first.
    package var joined: [Geofence] { sources.reduce(own) { $0 + ($1.fences ?? []) } }

    /// nil = none has come yet.
    package func count(of source: String) -> Int? { fences(of: source)?.count }

    /// A server gave a list, or one that was kept was read.
    ///
    /// - Throws: `ListProblems` when there are too many fences together; nothing has changed then.
    package mutating func received(_ fences: [Geofence], of source: String) throws(ListProblems) -> Change {
        guard let index = sources.firstIndex(where: { $0.name == source }) else { return Change() }
        let others = joined.count - (sources[index].fences?.count ?? 0)
        if others + fences.count > GeofenceMonitor.fencesMax {
            throw ListProblems(
                lines: [
                    "found \(fences.count) geofences beside \(others) others, expected at most "
                        + "\(GeofenceMonitor.fencesMax) together"
                ])
        }
        let change = Change(from: sources[index].fences ?? [], to: fences)
        sources[index].fences = fences
        return change
    }

    /// The configuration is another. Sources that are still there keep their lists, as long as there are not too many fences.
    ///
    /// - Parameter kept: names of the sources whose lists stay.
    /// - Returns: names of those whose lists were given up because there are too many fences together.
    package mutating func reloaded(own: [Geofence], sources names: [String], kept: Set<String>) -> [String] {
        let before = sources
        self.own = own
        sources = []
        var givenUp: [String] = []
        for name in names {
            let fences = kept.contains(name) ? before.first { $0.name == name }?.fences : nil
            let isTooMany = joined.count + (fences?.count ?? 0) > GeofenceMonitor.fencesMax
            sources.append((name, isTooMany ? nil : fences))
            if isTooMany, fences != nil { givenUp.append(name) }
        }
        return givenUp
    }

    private func fences(of source: String) -> [Geofence]? { sources.first { $0.name == source }?.fences }
}

extension FenceLists.Change {
    package init(from old: [Geofence], to new: [Geofence]) {
        var before = Dictionary(old.map { ($0.id, $0) }) { first, _ in first }
        for fence in new {
            guard let known = before.removeValue(forKey: fence.id) else {
                added += 1
                continue
            }
            if known != fence { changed += 1 }
        }
        gone = before.count
    }
}
