/// What an item of presence says of a member.
package enum PresenceAction: Int64, Hashable, Sendable, CaseIterable {
    case absent
    case present
    case enter
    case leave
    case update

    var isLeaving: Bool { self == .absent || self == .leave }
}
