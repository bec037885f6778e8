import CLinux
import Configuration
import Network
import Protocols
import Queue
import Sensors
import WaypostCore
import WaypostHost

/// Where the daemon touches the outside. `.linux` is the real one; the simulated world replaces each part.
package struct Edges {
    package var host: any Host
    package var medium: any QueueMedium
    /// 32 hex digits naming this boot; nil = unknown.
    package var bootID: String?
    /// The outbox belongs to the writer from then on.
    package var makeWriter: (sending Outbox) throws(OutboxError) -> any CommitWriter
    /// nil: libcurl on the loop.
    package var uplink: (any Uplink)?
    package typealias MakeCarrier = (
        _ report: @escaping (WebSocketConnection.Event, EventTime) -> Void
    ) -> any ChannelCarrier
    /// For live channels; nil: a WebSocket.
    package var makeCarrier: MakeCarrier?
    /// What settings and commands from afar have left; nil: a file beside the queue.
    package var remoteFile: StateFile?
    /// When servers were contacted in this boot.
    package var contacts: NoteFile = .none
    /// nil: the one of the configuration.
    package var source: (any FixSource)?
    /// When the configuration is read again, on the loop; nil: at once, on a thread of its own.
    package var readsLater: ((_ read: @escaping () -> Void) -> Void)?
    /// It listens on the control socket, receives signals, and watches devices, links and supplies. Otherwise its owner calls
    /// what these would.
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
        var edges = Edges(
            host: try LinuxHost(), medium: SystemMedium(), bootID: HostIdentity.bootID(environment: environment),
            makeWriter: { outbox throws(OutboxError) in try OutboxWriter(outbox) }, uplink: nil,
            source: nil, isDaemon: true)
        if let folder = environment["RUNTIME_DIRECTORY"] { edges.contacts = .at("\(folder)/contacts") }
        return edges
    }

    func makeUplink(loop: EventLoop) throws(StartupError) -> any Uplink {
        if let uplink { return uplink }
        do throws(HTTPUplink.SetupError) {
            return try LoopedUplink(settings: .init(version: AgentVersion.current), loop: loop)
        } catch { throw StartupError(error.description, exitCode: 70) }
    }
}
