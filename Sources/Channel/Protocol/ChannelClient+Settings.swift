import WaypostCore

extension ChannelClient {
    package struct Settings: Hashable, Sendable {
        /// With the port, unless it is that of the scheme.
        package var host: String
        /// Tried in random order when the host does not answer; at most three in a row.
        package var fallbackHosts: [String] = []
        /// Who we are; not empty, and not `*`.
        package var clientID: String
        /// How long viewers see us as present after the connection was lost; zero = as long as the service likes.
        package var remainPresent = Duration.seconds(60)
        /// A connection that the service ended is opened again at a random moment in this time: it may have ended
        /// those of a whole fleet.
        package var firstReconnectSpread = Duration.seconds(20)
        /// Longest frame that is read: that of a full channel, whose members say much of themselves.
        package static let frameBytesMax = 262_144

        package init(host: String, clientID: String) {
            self.host = host
            self.clientID = clientID
        }

        /// The hosts of the service itself.
        package static func ofService(clientID: String) -> Settings {
            var settings = Settings(host: "main.realtime.ably.net", clientID: clientID)
            settings.fallbackHosts = ["a", "b", "c", "d", "e"].map { "main.\($0).fallback.ably-realtime.com" }
            return settings
        }
    }
}
