import WaypostCore

/// A viewer of one trackable came, asked for another resolution, or left.
public struct SubscriberChange: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// nil = present without asking for a resolution of its own.
        case add(Resolution?)
        /// Ignored for a member that was never added; nil withdraws its request, the member stays.
        case update(Resolution?)
        case remove
    }

    /// Id of the trackable. A change for an unknown one is ignored.
    public var trackable: String
    /// Identity of the subscriber within the trackable (on the Ably channel `connectionId:clientId`).
    public var member: String
    public var action: Action

    public init(trackable: String, member: String, action: Action) {
        self.trackable = trackable
        self.member = member
        self.action = action
    }
}
