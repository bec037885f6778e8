import CLinux
import Configuration
import Delivery
import EventLoop
import Outbox
import Positioning
import Sensors
import Uplink

/// An uplink that says what went over the wire.
protocol CountingUplink: Uplink {
    var counters: HTTPUplink.Counters { get }
}

/// Where the daemon touches the world. `.linux` is the real one; the simulated world puts its own in each place.
package struct Edges {
    package var host: any Host
    package var medium: any QueueMedium
    /// 32 hex digits naming this boot; nil = unknown.
    package var bootID: String?
    /// Takes an outbox over.
    package var makeWriter: (sending Outbox) throws(OutboxError) -> any CommitWriter
    /// nil: libcurl on the loop.
    package var uplink: (any Uplink)?
    /// nil: the one of the configuration.
    package var source: (any FixSource)?
    /// Listens on the control socket, takes signals, and watches devices, links and supplies. Without, whoever runs the
    /// agent hands over what comes by these ways.
    package var isDaemon: Bool

    package init(
        host: any Host, medium: any QueueMedium, bootID: String?,
        makeWriter: @escaping (sending Outbox) throws(OutboxError) -> any CommitWriter, uplink: (any Uplink)?,
        source: (any FixSource)?, isDaemon: Bool
    ) {
        self.host = host
        self.medium = medium
        self.bootID = bootID
        self.makeWriter = makeWriter
        self.uplink = uplink
        self.source = source
        self.isDaemon = isDaemon
    }

    /// This machine.
    /// - Throws: `SystemError` when the kernel gives no descriptors.
    static func linux(environment: [String: String]) throws(SystemError) -> Edges {
        Edges(
            host: try LinuxHost(), medium: SystemMedium(), bootID: HostIdentity.bootID(environment: environment),
            makeWriter: { outbox throws(OutboxError) in try OutboxWriter(outbox) }, uplink: nil,
            source: nil, isDaemon: true)
    }

    func makeUplink(loop: EventLoop) throws(HTTPUplink.SetupError) -> any CountingUplink {
        if let uplink { return GivenUplink(uplink) }
        return try LoopedUplink(settings: .init(version: AgentVersion.current), loop: loop)
    }

    /// An uplink that does not count.
    private final class GivenUplink: CountingUplink {
        private let uplink: any Uplink
        let counters = HTTPUplink.Counters()

        init(_ uplink: any Uplink) { self.uplink = uplink }

        func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
            uplink.send(request, completion: completion)
        }

        func cancel(_ transfer: UplinkTransfer) { uplink.cancel(transfer) }

        func closeIdleConnections(at now: EventTime) { uplink.closeIdleConnections(at: now) }

        func close() { uplink.close() }
    }
}
