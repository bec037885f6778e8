extension MQTTClient {
    package struct Settings: Hashable, Sendable {
        package var version = MQTTVersion.v5
        /// The server gives one when it is empty.
        package var clientID: String
        package var user: String?
        package var password: [UInt8]?
        /// What the server publishes when the connection ends without a DISCONNECT. Its payload has at most 65,535
        /// bytes.
        package var will: MQTTMessage?
        /// Seconds between that end and the will; only in MQTT 5.
        package var willDelay: UInt32 = 0
        /// Seconds without a packet of ours after which a PINGREQ is sent, unless the server wants another number than 0;
        /// 0 = never.
        package var keepAlive: UInt16 = 300
        /// Publishes that may be unanswered at a time, unless the server wants fewer.
        package var windowMax = 20
        /// Longest packet that is taken from the server, 5 or more.
        package var packetBytesMax = 65_536
        /// For the answer to CONNECT.
        package var connectLimit = Duration.seconds(10)
        /// For the answer to any other packet.
        package var answerLimit = Duration.seconds(60)

        package init(clientID: String) { self.clientID = clientID }

        /// Why they make no CONNECT, for people; nil = they do.
        var problem: String? {
            if !clientID.isMQTTText { return "the client id is too long or has a NUL" }
            if user?.isMQTTText == false { return "the user name is too long or has a NUL" }
            if password.map({ $0.count > 0xFFFF }) == true { return "the password is longer than 65535 bytes" }
            if version == .v3, user == nil, password != nil { return "MQTT 3.1.1 has no password without a user name" }
            guard let will else { return nil }
            if let problem = will.problem { return "the will: \(problem)" }
            return will.payload.count > 0xFFFF ? "the will: the payload is longer than 65535 bytes" : nil
        }
    }
}

/// The settings make no CONNECT.
package struct MQTTSetupError: Error, Hashable, Sendable, CustomStringConvertible {
    package let description: String
}
