/// What viewers can expect of a trackable.
package enum TrackableState: String, Hashable, Sendable, CaseIterable {
    case offline
    /// Locations arrive, but viewers cannot see that we are there, or what they ask for is not known.
    case publishing
    case online
    /// It needs a person, or new credentials.
    case failed

    /// - Parameters:
    ///   - isShown: presence was entered, and the service has taken a location since the trackable was added.
    ///   - isSubscribed: we hear of viewers.
    package init(connection: ChannelLink, channel: ChannelLink, isShown: Bool, isSubscribed: Bool) {
        switch (connection, channel) {
        case (.failed, _), (.online, .failed): self = .failed
        case (.offline, _), (.online, .offline): self = .offline
        case (.online, .online): self = !isShown ? .offline : isSubscribed ? .online : .publishing
        }
    }
}
