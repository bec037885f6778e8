import Foundation
import TestSupport
import Testing

/// Settings and commands from afar: from the examples in docs/remote.md through the collector to the daemon and back.
@Suite(.waiting) struct RemoteTests {
    /// Runs a program that the page shows.
    /// - Parameters:
    ///   - index: among the programs of the page.
    ///   - arguments: after the address of the collector and the name of the device.
    /// - Returns: what it printed.
    private func example(_ index: Int, _ arguments: [String], in rig: Rig) throws -> String {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/remote.md"), encoding: .utf8)
        let program = try #require(page.components(separatedBy: "```python\n").dropFirst(index + 1).first)
        let file = rig.path("example.py")
        try #require(program.components(separatedBy: "```").first).write(
            toFile: file, atomically: true, encoding: .utf8)
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", file, "http://127.0.0.1:\(rig.port)", "rig"] + arguments
        process.standardOutput = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: printed, as: UTF8.self)
    }

    private func offer(_ rig: Rig, _ version: Int, _ wanted: String) throws {
        _ = try example(0, ["\(version)", wanted], in: rig)
    }

    /// A daemon that believes only what is signed with the secret of the examples.
    private func configure(_ rig: Rig, playback: Int, _ remote: String) throws {
        let key = rig.path("key")
        try "the secret\n".write(toFile: key, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let server = "http://127.0.0.1:\(rig.port)"
        try rig.configure(
            source: Rig.log(DemoDrive.path, playback: "\(playback)"), endpoint: "batch_window = \"1s\"",
            more: """
                [remote]
                settings_url = "\(server)/settings/rig"
                reported_url = "\(server)/reported/rig"
                secret = "file:\(key)"
                \(remote)
                """)
    }

    /// What the daemon has reported to the collector, once it is this.
    private func report(_ rig: Rig, _ state: String, version: Int) throws -> [String: Any] {
        var text: String?
        let found = eventually(within: 60) { () -> [String: Any]? in
            text = answer(of: rig.port, to: "/reported/rig")
            guard let body = text?.components(separatedBy: "\r\n\r\n").last,
                let report = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
            else { return nil }
            return report.string("state") == state && report.int("version") == version ? report : nil
        }
        return try #require(found, "\(text ?? "no collector")")
    }

    @Test func aSignedDocumentIsAppliedUntilAPersonClearsIt() throws {
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig, playback: 50, #"allow = ["sampling", "tracking.heartbeat"]"#)
        try offer(rig, 5, #"{"sampling.rule": "both", "tracking.heartbeat": "30m"}"#)
        let daemon = try rig.startDaemon()
        let applied = try report(rig, "applied", version: 5)
        #expect(applied.object("effective")?["sampling.rule"] as? String == "both")
        let check = try rig.says("check", rig.path("waypost.toml"), "--print")
        #expect(check.contains("heartbeat = \"30m\"  # remote v5"))
        #expect(try rig.says("remote", "--socket", rig.path("control.sock")).contains("version 5 is in force"))
        try daemon.stop()

        // The next start has it still, until a person wants the file alone.
        let next = try rig.startDaemon()
        try rig.waitForEndpoint { $0["acked"] as? Int ?? 0 > 0 }
        let socket = rig.path("control.sock")
        #expect(try rig.says("remote", "--socket", socket).contains("version 5 is in force"))
        _ = try rig.says("remote", "clear", "--socket", socket)
        try next.waitFor("version 5 is taken back, the file is in force: cleared by a person")
        try next.stop()
    }

    /// The drive is of another year than any host's clock, so that there is one answer everywhere.
    @Test func aSignedCommandGoesWithABatchAndIsAnswered() throws {
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig, playback: 10, #"commands = ["flush"]"#)
        let daemon = try rig.startDaemon()
        let answer = try example(1, ["c-81", "flush"], in: rig)
        #expect(answer.hasPrefix(#"{"id": "c-81", "error": {"code": "clock", "message": "#), "\(answer)")
        #expect(try rig.says("remote", "--socket", rig.path("control.sock")).contains("c-81"))
        #expect(try example(1, ["c-82", "locate"], in: rig).contains(#""code": "not-allowed""#))
        try daemon.stop()
    }
}
