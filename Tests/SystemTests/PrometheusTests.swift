import Foundation
import TestSupport
import Testing

/// Metrics of the real daemon: by command, on a port, and in a file.
@Suite(.waiting) struct PrometheusTests {
    /// A port that nobody else has while the test runs.
    private func freePort() throws -> Int { try LocalServer().port }

    /// The answer on a port; nil where nobody listens.
    private func get(_ port: Int) -> String? {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(client) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { return nil }
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost:\(port)\r\n\r\n"
        _ = send(client, request, request.utf8.count, Int32(MSG_NOSIGNAL))
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var wait = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
        while poll(&wait, 1, Int32(10_000 * RunningProgram.slack)) == 1 {
            let count = recv(client, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            text += chunk[..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }

    private func reload(_ rig: Rig) throws -> String {
        let program = try rig.waypost(["reload", "--socket", rig.path("control.sock")])
        #expect(try program.exitStatus(within: 20) == 0)
        return program.text
    }

    private func waitForFile(_ path: String, exists: Bool) throws {
        let deadline = Date(timeIntervalSinceNow: 20 * RunningProgram.slack)
        while FileManager.default.fileExists(atPath: path) != exists {
            try #require(Date() < deadline, "\(path)")
            usleep(5000)
        }
    }

    @Test func areOfferedAsTheConfigurationSaysAndFollowAReload() throws {
        let rig = try Rig()
        let port = try freePort()
        let file = rig.path("waypost.prom")
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"", more: "[log]\nlevel = \"info\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state") { $0 != nil }
        #expect(get(port) == nil)

        let command = try rig.waypost(["status", "--prometheus", "--socket", rig.path("control.sock")])
        #expect(try command.exitStatus(within: 20) == 1)
        #expect(command.text.hasPrefix("# HELP waypost_build_info ") && command.text.contains("\nwaypost_healthy 0\n"))
        #expect(command.text.contains("\nwaypost_source_state{state=\"lost\"} 1\n"), "\(command.text)")

        try rig.reconfigure("[log]", to: "[metrics]\nlisten = \"127.0.0.1:\(port)\"\ntextfile = \"\(file)\"\n[log]")
        #expect(try reload(rig).contains("[metrics] listen, [metrics] textfile"))
        let served = try #require(get(port))
        #expect(served.contains("\nwaypost_endpoint_waiting{endpoint=\"main\"} 0\n"))
        #expect(served.contains("\nwaypost_uptime_seconds "))
        try waitForFile(file, exists: true)
        let written = try String(contentsOfFile: file, encoding: .utf8)
        #expect(written.contains("\nwaypost_healthy 0\n") && !written.contains("waypost_uptime_seconds"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o644)

        try rig.reconfigure("textfile = \"\(file)\"", to: "textfile = \"/proc/none-such/waypost.prom\"")
        _ = try reload(rig)
        try waitForFile(file, exists: false)
        try daemon.waitFor("metrics: open /proc/none-such/waypost.prom.new")
        #expect(try "\(rig.status().report["problems"] ?? "")".contains("metrics: open /proc/none-such"))
        try rig.reconfigure(
            "[metrics]\nlisten = \"127.0.0.1:\(port)\"\ntextfile = \"/proc/none-such/waypost.prom\"", to: "")
        _ = try reload(rig)
        #expect(get(port) == nil)
        #expect(try !"\(rig.status().report["problems"] ?? "")".contains("metrics"))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 20) == 0)
    }

    @Test func aPortThatIsTakenIsAProblemAndNoFailure() throws {
        let rig = try Rig()
        let server = try ScriptedServer(answering: "")
        try rig.configure(
            source: "kind = \"serial\"\npath = \"/dev/none-such\"",
            more: "[metrics]\nlisten = \"127.0.0.1:\(server.port)\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("metrics: listen on 127.0.0.1:\(server.port): Address already in use")
        let status = try rig.waitFor("source", "state") { $0 != nil }
        #expect("\(status.report["problems"] ?? "")".contains("Address already in use"))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 20) == 0)
    }
}
