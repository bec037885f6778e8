import Foundation
import Synchronization

/// The daemon and a collector in a folder of their own.
package final class Rig {
    package let directory: URL
    package private(set) var port = 0
    private var collector: RunningProgram?

    /// - Parameter parent: where it is made, for what is about a disk.
    package init(in parent: String = scratchFolder) throws {
        directory = URL(fileURLWithPath: try makeTemporaryDirectory(in: parent))
    }

    deinit {
        collector = nil
        try? FileManager.default.removeItem(at: directory)
    }

    package func path(_ name: String) -> String { directory.appendingPathComponent(name).path }

    /// Starts a collector; a second one takes the place of the first, on the same port and file.
    package func startCollector(_ arguments: [String] = []) throws {
        collector = nil
        let portFile = path("port")
        try? FileManager.default.removeItem(atPath: portFile)
        collector = try RunningProgram(
            "waypost-collector",
            ["--port", String(port), "--output", path("received.jsonl"), "--print-port-to", portFile] + arguments,
            in: directory)
        let found = eventually(within: 20) { () -> Int? in
            if let text = try? String(contentsOfFile: portFile, encoding: .utf8) {
                return Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            return collector?.isRunning == true ? nil : 0
        }
        guard let found, found > 0 else {
            throw RunningProgram.Unfinished(text: "collector: \(collector?.text ?? "")")
        }
        port = found
    }

    /// Ends the collector; its port stays reserved for the next one.
    /// - Returns: what it printed, its summary at last.
    @discardableResult
    package func stopCollector() throws -> String {
        collector?.kill(SIGTERM)
        _ = try collector?.exitStatus(within: 10)
        defer { collector = nil }
        return collector?.text ?? ""
    }

    /// Writes a configuration with one endpoint, the collector unless a server is named. By the rule `either`, so that a drive is
    /// hundreds of locations, unless `more` has a table `[sampling]`.
    @discardableResult
    package func configure(
        source: String, outbox: String = "", server: Int? = nil, endpoint: String = "", more: String = ""
    ) throws -> String {
        let file = path("waypost.toml")
        let sampling = more.contains("[sampling]") ? "" : "[sampling]\nrule = \"either\""
        try """
        [device]
        id = "rig"
        [source]
        \(source)
        [outbox]
        path = "\(path("outbox.db"))"
        \(outbox)
        [control]
        socket = "\(path("control.sock"))"
        [[endpoint]]
        base_url = "http://127.0.0.1:\(server ?? (port == 0 ? 9 : port))"
        \(endpoint)
        \(more)
        \(sampling)
        """.write(toFile: file, atomically: true, encoding: .utf8)
        return file
    }

    /// The source that reads a log; one that it follows at its end keeps the daemon.
    package static func log(_ path: String, playback: String = "\"max\"", follow: Bool = false) -> String {
        "kind = \"file\"\npath = \"\(path)\"\nplayback = \(playback)\nfollow = \(follow)"
    }

    /// Receivers of the demo drive, which lies before the day that the daemon was built: a live one would not be believed.
    package static func tcp(_ port: Int) -> String {
        "kind = \"tcp\"\nhost = \"127.0.0.1\"\nport = \(port)\nrollover = \"off\""
    }

    package static func serial(_ path: String, baud: Int = 9600) -> String {
        "kind = \"serial\"\npath = \"\(path)\"\nbaud = \(baud)\nrollover = \"off\""
    }

    /// Changes a text in the configuration.
    package func reconfigure(_ text: String, to other: String) throws {
        let file = path("waypost.toml")
        try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: text, with: other)
            .write(toFile: file, atomically: true, encoding: .utf8)
    }

    /// The daemon with a collector and a receiver on the network, to which it is connected.
    package static func withReceiver(
        more: String = ""
    ) throws -> (rig: Rig, receiver: LocalServer, daemon: RunningProgram) {
        let (rig, receiver) = try (Rig(), LocalServer())
        try rig.startCollector()
        try rig.configure(source: tcp(receiver.port), more: more)
        let daemon = try rig.startDaemon()
        try receiver.accept()
        return (rig, receiver, daemon)
    }

    package func waypost(_ arguments: [String], environment: [String: String] = [:]) throws -> RunningProgram {
        try RunningProgram("waypost", arguments, in: directory, environment: environment)
    }

    /// Runs a daemon to the end of its log, which has to be good.
    /// - Returns: what it said.
    @discardableResult
    package func runDaemon(_ arguments: [String] = [], within seconds: Double = 60) throws -> String {
        let daemon = try startDaemon(arguments)
        guard try daemon.exitStatus(within: seconds) == 0 else { throw RunningProgram.Unfinished(text: daemon.text) }
        return daemon.text
    }

    /// A line for the shell, which has to end well.
    /// - Returns: what it printed.
    @discardableResult
    package func shell(_ line: String) throws -> String {
        let shell = try RunningProgram(shell: line, in: directory)
        guard try shell.exitStatus(within: 20) == 0 else { throw RunningProgram.Unfinished(text: shell.text) }
        return shell.text
    }

    package func startDaemon(_ arguments: [String] = [], environment: [String: String] = [:]) throws -> RunningProgram {
        try waypost(["run", "--config", path("waypost.toml")] + arguments, environment: environment)
    }

    /// What the daemon answers to `status`.
    package func status() throws -> [String: Any] { try order(#"{"id":1,"do":"status"}"#) }

    /// The exit status of `waypost status`.
    package func statusExit() throws -> Int32 {
        try waypost(["status", "--socket", path("control.sock")]).exitStatus(within: 10)
    }

    /// Asks for the status until `found` has something in it: there is no event for most of what a status tells.
    private func waitForStatus<Found>(
        within seconds: Double, _ what: String, _ found: ([String: Any]) -> Found?
    ) throws -> Found {
        var report: [String: Any] = [:]
        let found = eventually(within: seconds) { () -> Found? in
            guard let status = try? status() else { return nil }
            report = status
            return found(status)
        }
        guard let found else { throw RunningProgram.Unfinished(text: "\(what) in: \(report)") }
        return found
    }

    /// What the status says of one endpoint, once it is as wanted.
    @discardableResult
    package func waitForEndpoint(
        _ name: String = "main", within seconds: Double = 30, _ wanted: ([String: Any]) -> Bool
    ) throws -> [String: Any] {
        try waitForStatus(within: seconds, "endpoint \(name)") { report in
            (report["endpoints"] as? [[String: Any]])?.first { $0["name"] as? String == name && wanted($0) }
        }
    }

    /// Runs a command of the program to its end.
    /// - Returns: what it printed; its exit status has to be 0.
    package func says(_ arguments: String...) throws -> String {
        let program = try waypost(arguments)
        guard try program.exitStatus(within: 20) == 0 else { throw RunningProgram.Unfinished(text: program.text) }
        return program.text
    }

    /// Runs a command of the program to its end.
    package func call(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws -> (status: Int32, text: String) {
        let program = try waypost(arguments, environment: environment)
        let status = try program.exitStatus(within: 60)
        return (status, program.text)
    }

    /// Gives a command to the daemon, which it finds by the socket.
    package func command(_ line: String) throws -> (status: Int32, text: String) {
        try call(line.split(separator: " ").map(String.init) + ["--socket", path("control.sock")])
    }

    /// Gives an order over the control socket, as another program would, once it listens.
    package func order(_ frame: String) throws -> [String: Any] {
        var client: Int32 = -1
        defer { close(client) }
        let name = Array(path("control.sock").utf8) + [0]
        let connected = eventually(within: 20) { () -> Bool? in
            close(client)
            client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            return withUnixAddress(name) { connect(client, $0, $1) == 0 ? true : nil }
        }
        let line = Array("\(frame)\n".utf8)
        guard connected == true, send(client, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
            throw RunningProgram.Unfinished(text: "control socket: \(String(cString: strerror(errno)))")
        }
        let reply = receive(from: client) { $0.last == 0x0A }
        guard let object = try JSONSerialization.jsonObject(with: Data(reply)) as? [String: Any] else {
            throw RunningProgram.Unfinished(text: "control socket: \(String(decoding: reply, as: UTF8.self))")
        }
        return object
    }

    /// The status, once `group.member` is as wanted.
    @discardableResult
    package func waitFor(
        _ group: String, _ member: String, within seconds: Double = 20, _ wanted: (Any?) -> Bool
    ) throws -> [String: Any] {
        try waitForStatus(within: seconds, "\(group).\(member)") { report in
            wanted((report[group] as? [String: Any])?[member]) ? report : nil
        }
    }

    /// A location as the collector stored it.
    package struct Received {
        package var seq: Int
        package var timeMs: Int
        package var latitude: Double
        package var longitude: Double
        package var event: String?
        package var moving: Bool
        package var reason: String?
        /// Of a crossing: `enter depot`.
        package var crossing: String?
        /// Every member, as it came.
        package var members: [String: Any]
    }

    package func received() throws -> [Received] {
        guard let text = try? String(contentsOfFile: path("received.jsonl"), encoding: .utf8) else { return [] }
        return try text.split(separator: "\n").map { line in
            guard let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
                let seq = row["seq"] as? Int, let time = row["time_ms"] as? Int,
                let place = row["location"] as? [String: Any], let latitude = place["lat"] as? Double,
                let longitude = place["lon"] as? Double, let moving = row["moving"] as? Bool
            else { throw RunningProgram.Unfinished(text: "collector wrote: \(line)") }
            return Received(
                seq: seq, timeMs: time, latitude: latitude, longitude: longitude, event: row["event"] as? String,
                moving: moving, reason: row["reason"] as? String,
                crossing: (row["geofence"] as? [String: Any]).map {
                    "\($0["action"] as? String ?? "?") \($0["id"] as? String ?? "?")"
                }, members: row)
        }
    }

    /// What the collector has stored, once it is as wanted; what it has at last when that does not happen.
    package func waitForReceived(
        within seconds: Double = 60, _ wanted: ([Received]) -> Bool
    ) throws -> [Received] {
        var size: Int64 = -1
        let found = eventually(within: seconds) { () -> [Received]? in
            var entry = stat()
            guard stat(path("received.jsonl"), &entry) == 0, Int64(entry.st_size) != size else { return nil }
            size = Int64(entry.st_size)
            // The last line may be half written.
            let rows = (try? received()) ?? []
            return wanted(rows) ? rows : nil
        }
        return try found ?? received()
    }

    /// The newest row of the queue; nil when it is empty or not there yet.
    package func newestRow(of file: String? = nil) throws -> (seq: Int, time: String)? {
        let file = file ?? path("outbox.db")
        guard FileManager.default.fileExists(atPath: file) else { return nil }
        let queue = try waypost(["queue", "list", "--newest", "--count", "1", "--path", file])
        guard try queue.exitStatus(within: 10) == 0 else { throw RunningProgram.Unfinished(text: queue.text) }
        guard let row = try? JSONSerialization.jsonObject(with: Data(queue.text.utf8)) as? [String: Any],
            let seq = row["seq"] as? Int, let time = row["time"] as? String
        else { return nil }
        return (seq, time)
    }

    /// A location as `waypost replay` prints it.
    package struct Kept: @unchecked Sendable {
        package var timeMs: Int
        package var latitude: Double
        package var longitude: Double
        package var event: String
        /// Every member, as it was printed.
        package var members: [String: Any]
    }

    /// What is known already of parts of the demo drive, by their file names.
    private static let known = Mutex<[String: [Kept]]>([:])

    /// The published locations that `waypost replay` gives for a log by the rule `either`.
    package func replayed(_ log: String) throws -> [Kept] {
        let name = URL(fileURLWithPath: log).lastPathComponent
        guard name.hasPrefix(DemoDrive.prefix) else { return try replay(log) }
        return try Self.known.withLock { known in
            if let kept = known[name] { return kept }
            let kept = try replay(log)
            known[name] = kept
            return kept
        }
    }

    /// A file with a part of the demo drive.
    package func write(_ part: DemoDrive.Part) throws -> String {
        let file = path(part.name)
        try Data(part.bytes).write(to: URL(fileURLWithPath: file))
        return file
    }

    private func replay(_ log: String) throws -> [Kept] {
        try """
        [device]
        id = "rig"
        [source]
        kind = "file"
        path = "\(log)"
        [sampling]
        rule = "either"
        [[endpoint]]
        base_url = "http://127.0.0.1:9"
        """.write(toFile: path("replay.toml"), atomically: true, encoding: .utf8)
        let replay = try waypost(["replay", "--config", path("replay.toml"), "--format", "jsonl", log])
        guard try replay.exitStatus(within: 60) == 0 else { throw RunningProgram.Unfinished(text: replay.text) }
        return try replay.text.split(separator: "\n").compactMap { line in
            guard let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
                return nil
            }
            guard row["type"] as? String == "location", row["published"] as? Bool == true else { return nil }
            guard let time = row["time_ms"] as? Int, let latitude = row["latitude"] as? Double,
                let longitude = row["longitude"] as? Double, let event = row["event"] as? String
            else { throw RunningProgram.Unfinished(text: "replay printed: \(line)") }
            return Kept(timeMs: time, latitude: latitude, longitude: longitude, event: event, members: row)
        }
    }
}
