/// Of the connection to the service, in the words of its protocol.
package enum ConnectionState: String, Hashable, Sendable, CaseIterable {
    /// There is no trackable.
    case initialized
    case connecting
    case connected
    /// For less than two minutes: the service keeps our place.
    case disconnected
    /// For longer.
    case suspended
    case closing
    case closed
    /// It needs a person, or new credentials.
    case failed

    package var link: ChannelLink {
        switch self {
        case .connected: .online
        case .failed: .failed
        case .initialized, .connecting, .disconnected, .suspended, .closing, .closed: .offline
        }
    }
}
