import Foundation
import TestSupport

/// The built daemon on a short drive, with an imitated server as its endpoint.
final class ServerRig {
    let rig: Rig
    private(set) var daemon: RunningProgram?
    /// Times of the locations that the drive gives, Unix milliseconds.
    let times: [Int]

    /// - Parameters:
    ///   - endpoint: keys of the endpoint `main`.
    ///   - other: another endpoint, named `other`, of the profile `waypost`.
    ///   - more: further tables.
    ///   - follows: the daemon stays when the drive is over, also while an endpoint waits for its operator.
    init(
        _ server: ImitatedServer, _ endpoint: String, other: ImitatedServer? = nil, more: String = "",
        follows: Bool = false
    ) throws {
        rig = try Rig()
        let log = rig.path("drive.nmea")
        try Self.drive.write(toFile: log, atomically: true, encoding: .utf8)
        times = try Self.known.get()
        var more = more
        if let other {
            more = """
                [[endpoint]]
                name = "other"
                batch_window = "1s"
                compress = "none"
                base_url = "http://127.0.0.1:\(other.port)"
                \(more)
                """
        }
        try rig.configure(
            source: Rig.log(log, follow: follows), outbox: "commit_window = \"50ms\"", server: server.port,
            endpoint: "name = \"main\"\nbatch_window = \"1s\"\n\(endpoint)", more: more)
    }

    func start(environment: [String: String] = [:]) throws {
        daemon = nil
        daemon = try rig.startDaemon(environment: environment)
    }

    /// Runs until everything is delivered, which ends the daemon.
    /// - Returns: what it said.
    @discardableResult
    func runToEnd(within seconds: Double = 60) throws -> String {
        if daemon == nil { try start() }
        guard let daemon, try daemon.exitStatus(within: seconds) == 0 else {
            throw RunningProgram.Unfinished(text: daemon?.text ?? "")
        }
        return daemon.text
    }

    /// Waits until nothing waits any more, and stops a daemon that would stay.
    func deliverRest() throws {
        try rig.waitForEndpoint { $0["state"] as? String == "active" && $0["waiting"] as? Int == 0 }
        try stop()
    }

    func stop() throws {
        daemon?.kill(SIGTERM)
        _ = try daemon?.exitStatus(within: 15)
        daemon = nil
    }

    /// One line for each row that was set aside.
    func quarantine() throws -> [String] {
        try rig.says("quarantine", "list", "--path", rig.path("outbox.db")).split(separator: "\n").map(String.init)
    }

    func order(_ words: String...) throws {
        let (status, text) = try rig.command(words.joined(separator: " "))
        guard status == 0 else { throw RunningProgram.Unfinished(text: text) }
    }

    /// A file that only this user reads.
    func secret(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let path = rig.path(name)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    /// North at 20 m/s, one fix a second for a minute.
    private static let drive: String = {
        var log = ""
        for second in 0..<60 {
            let clock = String(format: "1000%02d.00", second)
            let minutes: Double = 30.0 + Double(second) * 20.0 / 1852.0
            let place = String(format: "52%07.4f,N,01324.0000,E", minutes)
            log += line("GPGGA,\(clock),\(place),1,09,0.9,34.1,M,39.6,M,,")
            log += line("GPRMC,\(clock),A,\(place),38.9,0.0,150126,,,A")
        }
        return log
    }()

    private static let known = Result<[Int], any Error> {
        let rig = try Rig()
        let log = rig.path("drive.nmea")
        try drive.write(toFile: log, atomically: true, encoding: .utf8)
        return try rig.replayed(log).map(\.timeMs)
    }

    private static func line(_ body: String) -> String {
        var sum: UInt8 = 0
        for byte in body.utf8 { sum ^= byte }
        return String(format: "$%@*%02X\r\n", body, sum)
    }
}
