/// What the state of a connection or of a channel means for a trackable.
package enum ChannelLink: String, Hashable, Sendable, CaseIterable {
    case online
    case offline
    case failed
}
