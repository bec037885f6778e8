import Foundation

/// The daemon and a collector in a folder of their own.
public final class Rig {
    public let directory: URL
    public private(set) var port = 0
    private var collector: RunningProgram?

    public init() throws {
        directory = URL(fileURLWithPath: try makeTemporaryDirectory())
    }

    deinit {
        collector = nil
        try? FileManager.default.removeItem(at: directory)
    }

    public func path(_ name: String) -> String { directory.appendingPathComponent(name).path }

    /// Starts a collector; a second one takes the place of the first, on the same port and file.
    public func startCollector(_ arguments: [String] = []) throws {
        collector = nil
        let portFile = path("port")
        try? FileManager.default.removeItem(atPath: portFile)
        collector = try RunningProgram(
            "waypost-collector",
            ["--port", String(port), "--output", path("received.jsonl"), "--print-port-to", portFile] + arguments,
            in: directory)
        let deadline = Date(timeIntervalSinceNow: 20 * RunningProgram.slack)
        while true {
            if let text = try? String(contentsOfFile: portFile, encoding: .utf8),
                let found = Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
            {
                return port = found
            }
            guard Date() < deadline, collector?.isRunning == true else {
                throw RunningProgram.Unfinished(text: "collector: \(collector?.text ?? "")")
            }
            usleep(5000)
        }
    }

    /// Ends the collector; its port stays reserved for the next one.
    /// - Returns: what it printed, its summary at last.
    @discardableResult
    public func stopCollector() throws -> String {
        collector?.kill(SIGTERM)
        _ = try collector?.exitStatus(within: 10)
        defer { collector = nil }
        return collector?.text ?? ""
    }

    /// Writes a configuration with one endpoint, the collector unless a server is named. By the rule `either`, so that a drive is
    /// hundreds of locations, unless `more` has a table `[sampling]`.
    @discardableResult
    public func configure(
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

    /// Changes a text in the configuration.
    public func reconfigure(_ text: String, to other: String) throws {
        let file = path("waypost.toml")
        try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: text, with: other)
            .write(toFile: file, atomically: true, encoding: .utf8)
    }

    public func waypost(_ arguments: [String], environment: [String: String] = [:]) throws -> RunningProgram {
        try RunningProgram("waypost", arguments, in: directory, environment: environment)
    }

    public func startDaemon(_ arguments: [String] = [], environment: [String: String] = [:]) throws -> RunningProgram {
        try waypost(["run", "--config", path("waypost.toml")] + arguments, environment: environment)
    }

    /// What `waypost status` says: its exit status, and the object of `--json`.
    public func status() throws -> (exit: Int32, report: [String: Any]) {
        let program = try waypost(["status", "--json", "--socket", path("control.sock")])
        let exit = try program.exitStatus(within: 10)
        let report = try? JSONSerialization.jsonObject(with: Data(program.text.utf8)) as? [String: Any]
        return (exit, report ?? [:])
    }

    /// What `waypost status` says of one endpoint, asked until it is as wanted.
    @discardableResult
    public func waitForEndpoint(
        _ name: String = "main", within seconds: Double = 30, _ wanted: ([String: Any]) -> Bool
    ) throws -> [String: Any] {
        let deadline = Date(timeIntervalSinceNow: seconds * RunningProgram.slack)
        while true {
            // The socket does not listen yet while the daemon starts.
            let endpoints = (try? order(#"{"id":1,"do":"status"}"#))?["endpoints"] as? [[String: Any]] ?? []
            if let endpoint = endpoints.first(where: { $0["name"] as? String == name }), wanted(endpoint) {
                return endpoint
            }
            guard Date() < deadline else { throw RunningProgram.Unfinished(text: "endpoint \(name) in: \(endpoints)") }
            usleep(20_000)
        }
    }

    /// Runs a command of the program to its end.
    /// - Returns: what it printed; its exit status has to be 0.
    public func says(_ arguments: String...) throws -> String {
        let program = try waypost(arguments)
        guard try program.exitStatus(within: 20) == 0 else { throw RunningProgram.Unfinished(text: program.text) }
        return program.text
    }

    /// Gives an order over the control socket, as another program would.
    public func order(_ frame: String) throws -> [String: Any] {
        let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(client) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path("control.sock").utf8)) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) == 0 }
        }
        let line = Array("\(frame)\n".utf8)
        guard connected, send(client, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
            throw RunningProgram.Unfinished(text: "control socket: \(String(cString: strerror(errno)))")
        }
        var reply: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var wait = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
        while reply.last != 0x0A, poll(&wait, 1, Int32(10_000 * RunningProgram.slack)) == 1 {
            let count = recv(client, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            reply += chunk[..<count]
        }
        guard let object = try JSONSerialization.jsonObject(with: Data(reply)) as? [String: Any] else {
            throw RunningProgram.Unfinished(text: "control socket: \(String(decoding: reply, as: UTF8.self))")
        }
        return object
    }

    /// Asks for the status until `group.member` is as wanted.
    @discardableResult
    public func waitFor(
        _ group: String, _ member: String, within seconds: Double = 20, _ wanted: (Any?) -> Bool
    ) throws -> (exit: Int32, report: [String: Any]) {
        let deadline = Date(timeIntervalSinceNow: seconds * RunningProgram.slack)
        while true {
            let status = try status()
            if wanted((status.report[group] as? [String: Any])?[member]) { return status }
            guard Date() < deadline else {
                throw RunningProgram.Unfinished(text: "\(group).\(member) in: \(status.report)")
            }
            usleep(10_000)
        }
    }

    /// A location as the collector stored it.
    public struct Received {
        public var seq: Int
        public var timeMs: Int
        public var latitude: Double
        public var longitude: Double
        public var event: String?
        public var moving: Bool
        public var reason: String?
        /// Of a crossing: `enter depot`.
        public var crossing: String?
        /// Every member, as it came.
        public var members: [String: Any]
    }

    public func received() throws -> [Received] {
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

    /// The newest row of the queue; nil when it is empty or not there yet.
    public func newestRow(of file: String? = nil) throws -> (seq: Int, time: String)? {
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
    public struct Kept {
        public var timeMs: Int
        public var latitude: Double
        public var longitude: Double
        public var event: String
        /// Every member, as it was printed.
        public var members: [String: Any]
    }

    /// The published locations that `waypost replay` gives for a log by the rule `either`.
    public func replayed(_ log: String) throws -> [Kept] {
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
