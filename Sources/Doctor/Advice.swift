// Commands that help here: on a host with systemd and on one without, and for the configuration that was looked at.
extension Evidence {
    private static let standardPath = "/etc/waypost/waypost.toml"

    /// `waypost status`, or whatever follows `waypost`.
    func waypost(_ words: String) -> String {
        "waypost \(words)" + (configurationPath == Self.standardPath ? "" : " --config \(configurationPath.shellWord)")
    }

    /// Shows what is hidden from who asked.
    var doctorAsRoot: String { "sudo \(waypost("doctor"))" }

    var checkConfiguration: String { "sudo waypost check \(configurationPath.shellWord)" }

    /// systemd manages this host.
    var hasSystemd: Bool { host.exists("/run/systemd/system") }

    /// nil = perhaps: systemd does not say.
    private var isUnit: Bool? { hasSystemd ? unit.map { !$0.isEmpty } : false }

    private var isContainer: Bool {
        host.exists("/.dockerenv") || host.exists("/run/.containerenv") || daemonProcess == 1
    }

    var startDaemon: String { service("start") ?? waypost("run") }

    var restartDaemon: String {
        if let command = service("restart") { return command }
        guard let process = daemonProcess else { return waypost("run") }
        return "\(waypost("run"))  # once process \(process) was stopped where it was started"
    }

    /// nil where no service is known that runs the daemon.
    private func service(_ verb: String) -> String? {
        if isUnit ?? true { return "sudo systemctl \(verb) waypost" }
        if host.exists("/run/openrc"), host.exists("/etc/init.d/waypost") { return "sudo rc-service waypost \(verb)" }
        return nil
    }

    /// What the daemon logged. Without a journal nobody knows where that is, and its state says the most important part.
    func log(_ options: String) -> String {
        isUnit ?? true ? "journalctl -u waypost \(options)" : waypost("status")
    }

    /// Shows the host clock and who sets it.
    var showClock: String { hasSystemd ? "timedatectl" : "date -u" }

    var setClock: String {
        if hasSystemd { return "sudo timedatectl set-ntp true" }
        if isContainer { return "date -u  # the clock of a container is that of its host: set it there" }
        if host.isRunning("chronyd") { return "sudo chronyc makestep" }
        return "sudo chronyd -q 'pool pool.ntp.org iburst'  # then keep chronyd or another time service running"
    }
}
