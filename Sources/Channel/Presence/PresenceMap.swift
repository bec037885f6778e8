/// Who is present on a channel, kept in step with what the service says.
package struct PresenceMap: Sendable {
    private struct Member {
        var item: PresenceItem
        /// The synchronization that is going on has named it.
        var isSeen: Bool
    }

    /// The service has 200 on a channel at most.
    package static let membersMax = 250

    private var members: [String: Member] = [:]
    /// The service is telling who is present.
    package private(set) var isSynchronizing = false

    package init() {}

    /// Members that are not in it are ignored until others leave.
    package var isFull: Bool { members.count >= Self.membersMax }

    /// Those that are present, by member key.
    package var present: [String: PresenceItem] {
        members.compactMapValues { $0.item.action.isLeaving ? nil : $0.item }
    }

    /// The service tells anew who is present.
    package mutating func synchronizationBegan() {
        isSynchronizing = true
        for key in members.keys { members[key]?.isSeen = false }
    }

    /// Who was not named meanwhile is gone.
    package mutating func synchronizationEnded() {
        guard isSynchronizing else { return }
        isSynchronizing = false
        members = members.filter { $0.value.isSeen && !$0.value.item.action.isLeaving }
    }

    package mutating func removeAll() {
        members = [:]
        isSynchronizing = false
    }

    /// - Returns: false when there are too many members.
    package mutating func received(_ item: PresenceItem) -> Bool {
        let key = item.memberKey
        if let known = members[key] {
            members[key]?.isSeen = true
            guard item.isNewer(than: known.item) else { return true }
        }
        if item.action.isLeaving, !isSynchronizing {
            members[key] = nil
            return true
        }
        guard members[key] != nil || !isFull else { return false }
        // While it synchronizes, one that has left stays as such: what the service had said before may come later.
        var item = item
        if item.data == nil, !item.action.isLeaving { item.data = members[key]?.item.data }
        members[key] = Member(item: item, isSeen: true)
        return true
    }
}
