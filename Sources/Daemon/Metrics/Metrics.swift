import Configuration
import Glibc
import Sensors
import WaypostControl
import WaypostCore
import WaypostHost

/// The numbers of `status` for Prometheus, where the configuration wants them: on a port, and in a file.
final class Metrics {
    /// Between two versions of the file, and between two attempts to listen.
    private static let interval = Duration.seconds(60)

    private var settings = MetricsConfig?.none
    private var server: MetricsServer?
    private var listenProblem: String?
    private var fileProblem: String?
    private var listenAlarm: EventLoop.Alarm?
    private var fileAlarm: EventLoop.Alarm?
    /// What the file holds.
    private var written: String?
    /// An earlier version is there even where the last one could not be written.
    private var mayExist = false
    private let writer: FileWriter
    private let hostName: String?
    private let status: () -> Status
    private let log: AgentLog
    private let loop: EventLoop

    init(hostName: String?, log: AgentLog, loop: EventLoop, status: @escaping () -> Status) {
        (self.hostName, self.log, self.loop, self.status) = (hostName, log, loop, status)
        writer = FileWriter(mode: 0o644, isDurable: false, loop: loop)
        listenAlarm = loop.alarm { [unowned self] now in listen(at: now) }
        fileAlarm = loop.alarm { [unowned self] now in write(at: now) }
        writer.done = { [unowned self] problem, path in
            // A reload may have named another meanwhile.
            guard settings?.textfile == path else { return }
            if let problem, fileProblem == nil { log.metricsProblem(problem) }
            fileProblem = problem
            if problem != nil { written = nil }
        }
    }

    /// What keeps them from being offered.
    var problems: [String] { [listenProblem, fileProblem].compactMap { $0.map { "metrics: \($0)" } } }

    /// Begins, or goes on with other settings.
    func reload(_ new: MetricsConfig, at now: EventTime) {
        let old = settings
        settings = new
        if new.listen != old?.listen {
            server?.close()
            (server, listenProblem) = (nil, nil)
            listenAlarm?.deadline = nil
            listen(at: now)
        }
        if new.textfile != old?.textfile {
            removeFile(old)
            (written, fileProblem) = (nil, nil)
            fileAlarm?.deadline = new.textfile == nil ? nil : now
        }
    }

    /// A file that is not written any more would look like a daemon that runs.
    func close() {
        server?.close()
        removeFile(settings)
    }

    private func removeFile(_ settings: MetricsConfig?) {
        if let path = settings?.textfile, mayExist { writer.remove(path) }
        mayExist = false
    }

    private func listen(at now: EventTime) {
        guard let address = settings?.listen else { return }
        guard let socket = SocketAddress(numericHost: address.host, port: address.port) else { return }
        do throws(SystemError) {
            server = try MetricsServer(socket, hostName: hostName, loop: loop, status: status)
            listenProblem = nil
        } catch {
            if listenProblem == nil { log.metricsProblem("\(error)") }
            listenProblem = "\(error)"
            listenAlarm?.deadline = now + Self.interval
        }
    }

    private func write(at now: EventTime) {
        guard let path = settings?.textfile else { return }
        fileAlarm?.deadline = now + Self.interval
        let text = Exposition.prometheus.text(status(), fleeting: false)
        guard text != written else { return }
        (written, mayExist) = (text, true)
        writer.write(Array(text.utf8), to: path)
    }
}
