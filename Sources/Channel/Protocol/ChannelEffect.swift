import WaypostTracking

extension ChannelClient {
    /// What the owner has to do, in this order.
    package enum Effect: Hashable, Sendable {
        /// There is none open.
        case openTransport(TransportRequest)
        /// Nothing of it is handed in any more, what it still has to say included; what was sent before goes out first.
        case closeTransport
        case send(ClientFrame)
        /// Report what becomes of it with `answered`, once.
        case request(ServiceRequest)
        /// Get a new credential and call `credentialRenewed` or `credentialUnavailable`.
        ///
        /// - Parameter because: what the service said; nil = there is none yet, or the service asked for another.
        case renewCredential(because: ChannelError?)
        /// What became of a message, by its id. It comes once for each that was taken to be published.
        case settled(trackable: String, ChannelMessage.Name, id: String, Outcome)
        /// For the resolution board.
        case subscriberChanged(SubscriberChange)
        case connectionChanged(ConnectionState, ChannelError?)
        /// Whether messages arrive by single requests, for want of a connection.
        case requestsArrive(Bool)
        case channelChanged(trackable: String, ChannelState, ChannelError?)
        case trackableChanged(String, TrackableState, ChannelError?)
        case warned(trackable: String, Warning)
    }

    package enum Outcome: Hashable, Sendable {
        /// The service has it.
        case taken
        case refused(ChannelError)
        /// Nobody knows: the connection is gone for good.
        case unanswered
    }

    /// Something that a person should know, told once.
    package enum Warning: Hashable, Sendable {
        /// Somebody else publishes the same trackable.
        case secondPublisher(clientID: String)
        /// A viewer asks for something that is no resolution, and so for nothing.
        case malformedRequest(member: String)
        /// The service does not let us be present.
        case presenceRefused(ChannelError)
    }

    /// Something that is wrong for as long as it lasts.
    package enum Problem: Hashable, Sendable {
        /// - Parameter times: credentials in a row that the service refused or that could not be had, at least 2.
        case credentialRefused(ChannelError, times: Int)
        /// - Parameter times: as of `credentialRefused`.
        case credentialMissing(ChannelError, times: Int)
        /// There is no connection: attempts fail, or the service has answered the last one with something else than a WebSocket.
        ///
        /// - Parameters:
        ///   - words: why, for people.
        ///   - times: in a row.
        case unreachable(String, times: Int)
        /// Connections end soon after they are made, one after the other.
        ///
        /// - Parameters:
        ///   - words: why the last one ended, for people.
        ///   - times: in a row, at least 3.
        case shortLived(String, times: Int)
        /// The service has refused the connection in a way that another attempt does not change.
        case failed(ChannelError)
        /// The service has not answered a frame about a trackable for a minute.
        case unanswered(trackable: String)
        /// - Parameter ignored: reports of members beyond those that are counted.
        case tooManyMembers(trackable: String, ignored: Int)
        /// Frames over this connection were too large to be read.
        case frameSkipped
    }

    /// Why a message is not sent now. Its location rides along with a later one.
    package enum Refusal: Error, Hashable, Sendable {
        case unknownTrackable
        case notConnected
        /// The service does not attach the channel.
        case channelAway
        /// The one before it is not answered.
        case inFlight
        /// As many went out in this second as may.
        case tooMany
    }
}
