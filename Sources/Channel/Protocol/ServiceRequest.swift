/// A request of HTTP to the service, which needs no connection. It opens with the credential of the connection.
package struct ServiceRequest: Hashable, Sendable, CustomStringConvertible {
    /// Given once by a client.
    package let number: Int
    package let host: String
    package let credential: ChannelCredential
    /// Path and query.
    package let target: String
    /// JSON, to be posted; nil = the request asks for something.
    package let body: [UInt8]?

    /// How long an answer may take.
    package static let timeout = Duration.seconds(10)
    /// Bytes of an answer that are read: those of a full channel.
    package static let answerBytesMax = ChannelClient.Settings.frameBytesMax

    /// Without secrets.
    package var description: String { "\(body == nil ? "GET" : "POST") \(host)\(target)" }
}
