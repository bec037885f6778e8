import Foundation
import TestSupport
import Testing

/// Settings from afar, from the example in docs/remote.md through the store of the collector to the daemon and back.
@Suite(.waiting) struct RemoteTests {
    private let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path

    /// The program that the page shows.
    private func example(in rig: Rig) throws -> String {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/remote.md"), encoding: .utf8)
        let program = try #require(page.components(separatedBy: "```python\n").dropFirst().first)
        let file = rig.path("offer.py")
        try #require(program.components(separatedBy: "```").first).write(
            toFile: file, atomically: true, encoding: .utf8)
        return file
    }

    private func offer(_ rig: Rig, _ version: Int, _ wanted: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", try example(in: rig), "http://127.0.0.1:\(rig.port)", "rig", "\(version)", wanted,
        ]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    private func report(_ rig: Rig) -> [String: Any]? {
        guard let url = URL(string: "http://127.0.0.1:\(rig.port)/reported/rig"), let data = try? Data(contentsOf: url)
        else { return nil }
        return try? JSONSerialization.jsonObject(with: data) as? [String: Any]
    }

    private func waitForReport(_ rig: Rig, _ state: String, version: Int) -> [String: Any]? {
        let deadline = Date(timeIntervalSinceNow: 60 * RunningProgram.slack)
        while Date() < deadline {
            if let report = report(rig), report["state"] as? String == state, report["version"] as? Int == version {
                return report
            }
            usleep(20_000)
        }
        return report(rig)
    }

    @Test func aSignedDocumentIsAppliedUntilAPersonClearsIt() throws {
        let rig = try Rig()
        try rig.startCollector()
        let key = rig.path("key")
        try "the secret\n".write(toFile: key, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let server = "http://127.0.0.1:\(rig.port)"
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = 50", endpoint: "batch_window = \"1s\"",
            more: """
                [remote]
                settings_url = "\(server)/settings/rig"
                reported_url = "\(server)/reported/rig"
                allow = ["sampling", "tracking.heartbeat"]
                secret = "file:\(key)"
                """)
        try offer(rig, 5, #"{"sampling.rule": "both", "tracking.heartbeat": "30m"}"#)
        let daemon = try rig.startDaemon()
        let applied = waitForReport(rig, "applied", version: 5)
        #expect((applied?["effective"] as? [String: Any])?["sampling.rule"] as? String == "both")
        let check = try rig.waypost(["check", rig.path("waypost.toml"), "--print"])
        #expect(try check.exitStatus(within: 20) == 0)
        #expect(check.text.contains("heartbeat = \"30m\"  # remote v5"))
        #expect(try rig.says("remote", "--socket", rig.path("control.sock")).contains("version 5 is in force"))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 30) == 0)

        // The next start has it still, until a person wants the file alone.
        let next = try rig.startDaemon()
        try rig.waitForEndpoint { $0["acked"] as? Int ?? 0 > 0 }
        let socket = rig.path("control.sock")
        #expect(try rig.says("remote", "--socket", socket).contains("version 5 is in force"))
        _ = try rig.says("remote", "clear", "--socket", socket)
        try next.waitFor("version 5 is taken back, the file is in force: cleared by a person")
        next.kill(SIGTERM)
        #expect(try next.exitStatus(within: 30) == 0)
    }
}
