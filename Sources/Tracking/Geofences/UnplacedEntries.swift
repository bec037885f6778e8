/// What was entered where no place was known: a server that needs a position was not told, and is not told of its end.
struct UnplacedEntries: Hashable, Sendable {
    /// More than there are regions of beacons.
    private static let countMax = 512

    private(set) var ids: [String]

    init(_ ids: [String]) { self.ids = ids }

    mutating func entered(_ id: String?) {
        guard let id, !ids.contains(id) else { return }
        if ids.count >= Self.countMax { ids.removeFirst() }
        ids.append(id)
    }

    /// - Returns: whether its ENTER had no place.
    mutating func left(_ id: String?) -> Bool {
        guard let index = ids.firstIndex(where: { $0 == id }) else { return false }
        ids.remove(at: index)
        return true
    }
}
