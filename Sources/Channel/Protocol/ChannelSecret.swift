/// A text that opens the service. No description of it or of what contains it shows it.
package struct ChannelSecret: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// For the wire only.
    package let revealed: String

    package init(_ text: String) { revealed = text }

    package var description: String { "<secret>" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What shows the service who we are.
package enum ChannelCredential: Hashable, Sendable {
    /// `name:secret`. It must not be sent without TLS.
    case key(ChannelSecret)
    /// Of the service, or a JWT.
    case token(ChannelSecret)
}
