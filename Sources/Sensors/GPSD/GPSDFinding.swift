import CLinux
import Glibc
import WaypostCore
import WaypostNMEA

/// What a gpsd reports of itself and its receivers.
package struct GPSDFinding: Hashable, Sendable {
    /// nil when nothing that speaks gpsd's language answers.
    package var version: GPSDVersion?
    package var devices: [GPSDDevice] = []
    /// Why no receiver is available there, and what to do, for people; nil = there is one.
    package var problem: String?

    /// `gpsd 3.22 (protocol 3.14) with /dev/ttyACM0 (u-blox)`; nil when there is none.
    package var words: String? {
        guard let version else { return nil }
        let names = devices.map { device in device.driver.map { "\(device.path) (\($0))" } ?? device.path }
        return "gpsd \(version.release) (protocol \(version.protocolVersion))"
            + (names.isEmpty ? " without a device" : " with \(names.joined(separator: ", "))")
    }
}

extension GPSDSettings {
    /// Connects, requests the devices, and disconnects. It does not wake receivers that have no clients.
    ///
    /// - Parameter timeout: for the whole inquiry. A gpsd that this starts needs some seconds to answer.
    package func inquire(timeout: Duration = .seconds(10)) -> GPSDFinding {
        let end = EventTime(nanoseconds: waypost_boottime_ns()) + timeout
        let connection: GPSDConnection
        do throws(SourceProblem) {
            guard let answer = try open(until: end) else {
                let waited = "no connection to gpsd at \(address) within \(timeout.milliseconds) ms"
                return GPSDFinding(problem: "\(waited); \(advice)")
            }
            connection = try answer.get()
        } catch {
            // Advice about gpsd does not help without the library.
            return GPSDFinding(problem: error.lacksLibrary ? error.description : "\(error.description) \(advice)")
        }
        // gpsd sends its greeting by itself; the list must be requested.
        guard connection.send(GPSDRequest.devices) else {
            return GPSDFinding(problem: "gpsd at \(address) accepts no request")
        }
        return listen(to: connection, until: end)
    }

    /// nil after the timeout; the attempt continues on its thread.
    private func open(until end: EventTime) throws(SourceProblem) -> Result<GPSDConnection, SourceProblem>? {
        let (host, port) = (host, port)
        let opening = try BackgroundCall("cannot connect to gpsd at \(address)") {
            GPSDConnection.open(host: host, port: port)
        }
        return Self.awaitInput(opening.descriptor, until: end) ? opening.answer : nil
    }

    private func listen(to connection: GPSDConnection, until end: EventTime) -> GPSDFinding {
        var stream = GPSDDecoder(device: device)
        var isListed = false
        var ending: String?
        while !isListed, ending == nil, Self.awaitInput(connection.descriptor, until: end) {
            reading: while !isListed, !Self.isOver(end) {
                switch connection.read() {
                case .line(let line): isListed = stream.decode(line, at: .zero, { _ in }) == .deviceList
                case .nothing: break reading
                case .ended(let why):
                    ending = why
                    break reading
                }
            }
        }
        var finding = GPSDFinding(version: stream.version, devices: stream.devices)
        finding.problem = problem(of: finding, isListed: isListed, ending: ending)
        return finding
    }

    private func problem(of finding: GPSDFinding, isListed: Bool, ending: String?) -> String? {
        let reason = ending.map { ": \($0)" } ?? ""
        guard let version = finding.version else {
            return "what answers at \(address) does not answer like gpsd\(reason); is the port right?"
        }
        guard version.major == GPSDVersion.knownMajor else { return version.unknownProtocol }
        guard isListed else { return "gpsd at \(address) does not list its devices\(reason)" }
        let path = device ?? (finding.devices.count == 1 ? finding.devices[0].path : nil)
        return finding.devices.defect(of: path, isUnplugged: isUnplugged)
    }

    private var advice: String {
        isLocal
            ? "on this host `systemctl start gpsd.socket` starts it, `apt install gpsd` brings it"
            : "on that host gpsd accepts other hosts only with -G, or by ListenStream of gpsd.socket"
    }

    private static func isOver(_ end: EventTime) -> Bool { waypost_boottime_ns() >= end.nanoseconds }

    /// false when time is over.
    private static func awaitInput(_ descriptor: Int32, until end: EventTime) -> Bool {
        while true {
            let left = end.duration(since: EventTime(nanoseconds: waypost_boottime_ns()))
            guard left > .zero else { return false }
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&ready, 1, Int32(clamping: left.milliseconds + 1)) > 0 { return true }
        }
    }
}

extension GPSDVersion {
    static let knownMajor = 3

    /// For a protocol that is not the one that is understood.
    var unknownProtocol: String {
        "gpsd \(release) uses protocol \(protocolVersion), expected \(Self.knownMajor)"
    }
}

extension [GPSDDevice] {
    /// What gpsd's list shows to be wrong; nil = nothing.
    ///
    /// - Parameter path: of the receiver that is wanted; nil = any.
    func defect(of path: String?, isUnplugged: (String) -> Bool) -> String? {
        guard !isEmpty else {
            return "gpsd has no device: is the receiver plugged in? `gpsdctl add PATH` adds one"
        }
        guard let path else { return nil }
        guard contains(where: { $0.path == path }) else {
            return "gpsd does not have \(path); it has \(map(\.path).joined(separator: ", "))"
        }
        return isUnplugged(path) ? "\(path) is unplugged" : nil
    }
}
