import WaypostCore

extension HTTPUplink {
    /// How the uplink talks to servers. There is no switch that turns the verification of certificates off.
    package struct Settings: Hashable, Sendable {
        /// The version in `User-Agent: waypost/VERSION`.
        package var version: String
        /// PEM file of the authorities to trust instead of the system's; nil = the system's.
        package var caFile: String?
        /// Name lookup. The default is 30 s: the resolver of the C library tries up to three servers twice, 5 s each.
        package var lookupLimit: Duration
        /// TCP connect. The default is 10 s, and three times that after an attempt that took longer. The request's own timeout
        /// ends each of the three earlier.
        package var connectLimit: Duration
        /// From the TCP connection to the end of the TLS handshake, as `connectLimit`. The default is 10 s.
        package var handshakeLimit: Duration
        /// From the last byte of the request that the server has acknowledged to the first byte of the answer, for requests with
        /// the usual timeout of 60 s or less; in proportion more for others. The default is 30 s.
        package var firstByteLimit: Duration
        /// The longest time in which the server acknowledges nothing of a request. The default is 30 s; twice the time after which
        /// the kernel repeats what was lost, if that is longer.
        package var stallLimit = Duration.seconds(30)
        /// The same for a connection that was kept and may be dead, of which the request is repeated. The default is 10 s.
        package var keptStallLimit = Duration.seconds(10)
        static let usualTimeout = Duration.seconds(60)
        /// Milliseconds after which the kernel ends a connection whose peer acknowledges nothing.
        static let silenceMax: UInt32 = 120_000
        /// Bytes that the kernel holds of what was not read; it takes twice as many to count its own effort.
        static let receiveBuffer: Int32 = 65_536
        /// More than there are endpoints, lists and token servers. Only those are kept that were needed at the same time.
        static let keptMost = 128
        /// A connection that has carried nothing for this long is closed. The default is 120 s: twice the usual
        /// batch window. Mobile networks forget an idle mapping after a few minutes anyway.
        package var idleLimit: Duration
        /// Bytes of all heads of one reply, interim ones included. The default is 16 KiB.
        package var replyHeadLimit: Int
        /// Header lines of one reply. The default is 100.
        package var replyHeaderCountLimit: Int
        /// Whether outcomes have `stages`. The default is false: chains of certificates stay out of memory.
        package var measuresStages: Bool

        package init(
            version: String, caFile: String? = nil, lookupLimit: Duration = .seconds(30),
            connectLimit: Duration = .seconds(10),
            handshakeLimit: Duration = .seconds(10), firstByteLimit: Duration = .seconds(30),
            idleLimit: Duration = .seconds(120), replyHeadLimit: Int = 16 * 1024, replyHeaderCountLimit: Int = 100,
            measuresStages: Bool = false
        ) {
            self.version = version
            self.caFile = caFile
            self.lookupLimit = lookupLimit
            self.connectLimit = connectLimit
            self.handshakeLimit = handshakeLimit
            self.firstByteLimit = firstByteLimit
            self.idleLimit = idleLimit
            self.replyHeadLimit = replyHeadLimit
            self.replyHeaderCountLimit = replyHeaderCountLimit
            self.measuresStages = measuresStages
        }
    }

    /// What the loop has to wait for on a descriptor. Errors and hang-ups count as readable.
    package struct Interest: Hashable, Sendable {
        package var readable: Bool
        package var writable: Bool

        package init(readable: Bool, writable: Bool) {
            self.readable = readable
            self.writable = writable
        }
    }

    /// What went over the wire since the start.
    package struct Counters: Hashable, Sendable {
        /// Requests that came to an end, however.
        package var requests = 0
        /// TCP connections that were opened.
        package var connections = 0
        /// Requests that were written a second time because a kept connection turned out to be dead.
        package var repeatedOnFreshConnection = 0
        /// Answers on kept connections that no request had asked for; each was discarded with its connection.
        package var unaskedAnswers = 0
        package var bytesSent = 0
        package var bytesReceived = 0

        package init() {}
    }

    /// The uplink cannot be set up.
    package struct SetupError: Error, Hashable, CustomStringConvertible {
        package var description: String
    }
}

extension HTTPUplink.Counters {
    package static func + (a: Self, b: Self) -> Self {
        var sum = a
        sum.requests += b.requests
        sum.connections += b.connections
        sum.repeatedOnFreshConnection += b.repeatedOnFreshConnection
        sum.unaskedAnswers += b.unaskedAnswers
        sum.bytesSent += b.bytesSent
        sum.bytesReceived += b.bytesReceived
        return sum
    }
}
