import Configuration
import ControlProtocol
import Delivery
import Positioning

/// Everything that the checks look at: the files of a host, and as values what no file shows.
///
/// nil always means that it is not known.
public struct Evidence: Sendable {
    public enum ConfigurationFound: Sendable {
        case valid(LoadedConfiguration)
        /// One line for each problem.
        ///
        /// - Parameter lastGood: what a daemon starts with instead; nil = there is nothing that can be used.
        case invalid([String], lastGood: LoadedConfiguration? = nil)
        /// It may not be read by who asks, or names variables that only the daemon has.
        case unreadable
    }

    public enum DaemonFound: Sendable {
        case answers(Status)
        /// Nothing listens.
        case absent
        /// Something may listen, but who asks may not ask it: what to do about that.
        case unreachable(String)
        /// Something listens and gives no answer.
        case silent(String)
    }

    public struct KernelLine: Sendable {
        /// Seconds since the start of the kernel.
        public var at: Double
        public var text: String

        public init(at: Double, _ text: String) {
            self.at = at
            self.text = text
        }
    }

    /// How far a request to an endpoint came.
    public struct Reach: Sendable {
        public var endpoint: String
        /// `fleet.example`, an IPv6 address in brackets
        public var host: String
        /// `fleet.example:443`
        public var peer: String
        /// nil = a server answered.
        public var failure: Failure?
        public var milliseconds: Int
        public var stages = UplinkStages()

        public init(endpoint: String, host: String, peer: String, failure: Failure?, milliseconds: Int) {
            self.endpoint = endpoint
            self.host = host
            self.peer = peer
            self.failure = failure
            self.milliseconds = milliseconds
        }

        /// The layer that failed first: `no route`, `dns`, `connect`, `tls`, `clock` (a certificate, where the host clock may be
        /// wrong), `request` (it was not acknowledged), `answer`, `closed` or `reset`, and its error in words.
        public struct Failure: Sendable {
            public var layer: String
            public var message: String

            public init(layer: String, message: String) {
                self.layer = layer
                self.message = message
            }
        }
    }

    public struct DiskSpace: Sendable {
        public var bytes: Int64
        public var bytesFree: Int64
        /// 0 where the file system has no fixed number of them.
        public var files: Int64
        public var filesFree: Int64

        public init(bytes: Int64, bytesFree: Int64, files: Int64, filesFree: Int64) {
            self.bytes = bytes
            self.bytesFree = bytesFree
            self.files = files
            self.filesFree = filesFree
        }
    }

    public enum QueueFound: Sendable {
        /// One line about it.
        case sound(String)
        case damaged([String])
        case absent
        /// Why it could not be looked at.
        case unreadable(String)
    }

    public var host: HostFolder
    /// Where the configuration is, for advice.
    public var configurationPath: String
    public var configuration: ConfigurationFound
    public var daemon: DaemonFound
    /// The process at the other end of the control socket.
    public var answering: Int?
    /// What came from the receiver while this was gathered.
    public var bytesPerSecond: Double?
    /// What `systemctl show` says of the unit, several values of a property one a line; empty = there is no such unit.
    public var unit: [String: String]?
    /// Oldest first.
    public var kernelLog: [KernelLine]?
    /// Seconds since the start of the kernel.
    public var uptime: Double
    /// Unix milliseconds of the host clock, when the daemon gave its first status.
    public var wallClock: Int64
    public var isClockSynchronised: Bool?
    /// How often its watchdog ended the unit since the boot, as far as the journal can be read.
    public var watchdogTimeouts: Int?
    /// By endpoint.
    public var reaches: [Reach]?
    /// The server of documents with settings, where it is not that of an endpoint.
    public var settingsReach: Reach?
    /// Names of endpoints whose certificates or keys may not be read by who asks.
    public var untried: [String]
    /// Those of our own, by the name of their endpoint.
    public var clientCertificates: [String: CertificateDates]
    /// Names of variables that set a proxy for other programs.
    public var proxyVariables: [String]
    /// Of the file system that holds the queue.
    public var diskSpace: DiskSpace?
    public var queue: QueueFound?

    public init(host: HostFolder, configurationPath: String, configuration: ConfigurationFound, daemon: DaemonFound) {
        self.host = host
        self.configurationPath = configurationPath
        self.configuration = configuration
        self.daemon = daemon
        uptime = 0
        wallClock = 0
        proxyVariables = []
        clientCertificates = [:]
        untried = []
    }
}

// What several checks need.
extension Evidence {
    /// That of a daemon which runs, or would start.
    public var config: AgentConfig? {
        switch configuration {
        case .valid(let loaded): loaded.config
        case .invalid(_, let lastGood): lastGood?.config
        case .unreadable: nil
        }
    }

    var status: Status? { if case .answers(let status) = daemon { status } else { nil } }

    /// Its fixes are of the past, and say nothing about a clock.
    var isFile: Bool { if case .file? = config?.source { true } else { false } }

    /// What the daemon runs as.
    var serviceUser: String {
        guard let user = unit?["User"], !user.isEmpty else { return "waypost" }
        return user
    }

    /// The running daemon: who answers at the control socket, else the main process of the unit. Another `waypost run` is somebody's own.
    var daemonProcess: Int? { answering ?? unit?["MainPID"].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } }

    /// What keeps a check that needs the daemon from its answer.
    var noStatus: Finding {
        if case .unreachable(let reason) = daemon { return .unknown(reason, doctorAsRoot) }
        return .unknown("no daemon answers", doctorAsRoot)
    }

    var noConfiguration: Finding { .unknown("the configuration is not known", doctorAsRoot) }
}
