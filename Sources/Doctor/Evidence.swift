import Configuration
import Protocols
import WaypostControl
import WaypostCore

/// Everything that the checks look at: the files of a host, and as values what no file shows.
///
/// nil always means that it is not known.
package struct Evidence: Sendable {
    package enum ConfigurationFound: Sendable {
        case valid(LoadedConfiguration)
        /// One line for each problem.
        ///
        /// - Parameter lastGood: what a daemon starts with instead; nil = there is nothing that can be used.
        case invalid([String], lastGood: LoadedConfiguration? = nil)
        /// It may not be read by who asks, or names variables that only the daemon has.
        case unreadable
    }

    package enum DaemonFound: Sendable {
        case answers(Status)
        /// Nothing listens.
        case absent
        /// Something may listen, but who asks may not ask it: what to do about that.
        case unreachable(String)
        /// Something listens and gives no answer.
        case silent(String)
    }

    package struct KernelLine: Sendable {
        /// Seconds since the start of the kernel.
        package var at: Double
        package var text: String

        package init(at: Double, _ text: String) {
            self.at = at
            self.text = text
        }
    }

    /// How far a request to an endpoint came.
    package struct Reach: Sendable {
        package var endpoint: String
        /// `fleet.example`, an IPv6 address in brackets
        package var host: String
        /// `fleet.example:443`
        package var peer: String
        /// nil = a server answered.
        package var failure: Failure?
        package var milliseconds: Int
        package var stages = UplinkStages()

        package init(endpoint: String, host: String, peer: String, failure: Failure?, milliseconds: Int) {
            self.endpoint = endpoint
            self.host = host
            self.peer = peer
            self.failure = failure
            self.milliseconds = milliseconds
        }

        /// The layer that failed first: `no route`, `dns`, `connect`, `tls`, `clock` (a certificate, where the host clock may be
        /// wrong), `request` (it was not acknowledged), `answer`, `closed` or `reset`, and its error in words.
        package struct Failure: Sendable {
            package var layer: String
            package var message: String

            package init(layer: String, message: String) {
                self.layer = layer
                self.message = message
            }
        }
    }

    package struct DiskSpace: Sendable {
        package var bytes: Int64
        package var bytesFree: Int64
        /// 0 where the file system has no fixed number of them.
        package var files: Int64
        package var filesFree: Int64

        package init(bytes: Int64, bytesFree: Int64, files: Int64, filesFree: Int64) {
            self.bytes = bytes
            self.bytesFree = bytesFree
            self.files = files
            self.filesFree = filesFree
        }
    }

    package enum QueueFound: Sendable {
        /// One line about it.
        case sound(String)
        case damaged([String])
        case absent
        /// Why it could not be looked at.
        case unreadable(String)
    }

    package var host: HostFolder
    /// Where the configuration is, for advice.
    package var configurationPath: String
    package var configuration: ConfigurationFound
    package var daemon: DaemonFound
    /// The process at the other end of the control socket.
    package var answering: Int?
    /// What came from the receiver while this was gathered.
    package var bytesPerSecond: Double?
    /// What `systemctl show` says of the unit, several values of a property one a line; empty = there is no such unit.
    package var unit: [String: String]?
    /// Oldest first.
    package var kernelLog: [KernelLine]?
    /// Seconds since the start of the kernel.
    package var uptime: Double
    /// Unix milliseconds of the host clock, when the daemon gave its first status.
    package var wallClock: Int64
    package var isClockSynchronised: Bool?
    /// How often its watchdog ended the unit since the boot, as far as the journal can be read.
    package var watchdogTimeouts: Int?
    /// By endpoint.
    package var reaches: [Reach]?
    /// The server of documents with settings, where it is not that of an endpoint.
    package var settingsReach: Reach?
    /// Names of endpoints whose certificates or keys may not be read by who asks.
    package var untried: [String]
    /// Those of our own, by the name of their endpoint.
    package var clientCertificates: [String: CertificateDates]
    /// Names of variables that set a proxy for other programs.
    package var proxyVariables: [String]
    /// Of the file system that holds the queue.
    package var diskSpace: DiskSpace?
    package var queue: QueueFound?

    package init(host: HostFolder, configurationPath: String, configuration: ConfigurationFound, daemon: DaemonFound) {
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
    package var config: AgentConfig? {
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
