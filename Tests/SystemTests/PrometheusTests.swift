import Foundation
import TestSupport
import Testing

/// Metrics of the real daemon: by command, on a port, and in a file.
@Suite(.waiting) struct PrometheusTests {
    /// A port that nobody else has while the test runs.
    private func freePort() throws -> Int { try LocalServer().port }

    private func get(_ port: Int) -> String? { answer(of: port, to: "/metrics") }

    private func reload(_ rig: Rig) throws -> String { try rig.says("reload", "--socket", rig.path("control.sock")) }

    private func waitForFile(_ path: String, exists: Bool) throws {
        let isSo = eventually(within: 20) { FileManager.default.fileExists(atPath: path) == exists ? true : nil }
        try #require(isSo == true, "\(path)")
    }

    @Test func areOfferedAsTheConfigurationSaysAndFollowAReload() throws {
        let rig = try Rig()
        let port = try freePort()
        let file = rig.path("waypost.prom")
        try rig.configure(source: "kind = \"serial\"\npath = \"/dev/none-such\"", more: "[log]\nlevel = \"info\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("source", "state") { $0 != nil }
        #expect(get(port) == nil)

        let (status, text) = try rig.command("status --prometheus")
        #expect(status == 1 && text.hasPrefix("# HELP waypost_build_info "), "\(text)")
        let samples = ["\nwaypost_healthy 0\n", "\nwaypost_source_state{state=\"lost\"} 1\n"]
        #expect(samples.filter { !text.contains($0) } == [], "\(text)")

        try rig.reconfigure("[log]", to: "[metrics]\nlisten = \"127.0.0.1:\(port)\"\ntextfile = \"\(file)\"\n[log]")
        #expect(try reload(rig).contains("[metrics] listen, [metrics] textfile"))
        let served = try #require(get(port))
        let offered = ["\nwaypost_endpoint_waiting{endpoint=\"main\"} 0\n", "\nwaypost_uptime_seconds "]
        #expect(offered.filter { !served.contains($0) } == [], "\(served)")
        try waitForFile(file, exists: true)
        let written = try String(contentsOfFile: file, encoding: .utf8)
        #expect(written.contains("\nwaypost_healthy 0\n") && !written.contains("waypost_uptime_seconds"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o644)

        try rig.reconfigure("textfile = \"\(file)\"", to: "textfile = \"/proc/none-such/waypost.prom\"")
        _ = try reload(rig)
        try waitForFile(file, exists: false)
        try daemon.waitFor("metrics: open /proc/none-such/waypost.prom.new")
        #expect(try rig.status().words("problems").contains("metrics: open /proc/none-such"))
        try rig.reconfigure(
            "[metrics]\nlisten = \"127.0.0.1:\(port)\"\ntextfile = \"/proc/none-such/waypost.prom\"", to: "")
        _ = try reload(rig)
        #expect(get(port) == nil)
        #expect(try !rig.status().words("problems").contains("metrics"))
        try daemon.stop()
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
        #expect(status.words("problems").contains("Address already in use"))
        try daemon.stop()
    }
}
