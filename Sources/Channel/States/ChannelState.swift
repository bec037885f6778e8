/// Of the channel of one trackable, in the words of the protocol.
package enum ChannelState: String, Hashable, Sendable, CaseIterable {
    case initialized
    /// Or waiting for the connection.
    case attaching
    case attached
    case detaching
    case detached
    /// The service does not attach it for now.
    case suspended
    /// It needs a person, or new credentials.
    case failed

    package var link: ChannelLink {
        switch self {
        case .attached: .online
        case .failed: .failed
        case .initialized, .attaching, .detaching, .detached, .suspended: .offline
        }
    }
}
