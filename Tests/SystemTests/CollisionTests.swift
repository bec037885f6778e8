import Foundation
import TestSupport
import Testing

/// The receiver says that another device has the asset.
@Suite(.waiting) struct CollisionTests {
    private let rig: Rig
    private let server: LocalServer
    private let drive = DemoDrive.path

    init() throws {
        rig = try Rig()
        server = try LocalServer()
    }

    private func configure() throws {
        try rig.startCollector()
        try "sekret".write(toFile: rig.path("key"), atomically: true, encoding: .utf8)
        #expect(chmod(rig.path("key"), 0o600) == 0)
        try rig.configure(
            source: Rig.log(drive, follow: true),
            endpoint: "name = \"own\"\nbatch_window = \"100ms\"",
            more: """
                [[endpoint]]
                name = "fleet"
                profile = "nextbillion"
                base_url = "http://127.0.0.1:\(server.port)"
                vars = { asset_id = "van" }
                secrets = { key = "file:\(rig.path("key"))" }
                batch_window = "100ms"
                """)
    }

    private func answer(_ status: String, _ body: String) -> String {
        let request = String(decoding: server.receive(), as: UTF8.self)
        server.send(Array("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
        return request
    }

    private func state() throws -> String? { try rig.status().list("endpoints").last?.string("state") }

    private func bind() throws -> RunningProgram {
        try rig.waypost(["endpoint", "bind", "fleet", "--config", rig.path("waypost.toml")])
    }

    /// Only the receiver can give the asset back: nothing is sent, and the endpoint is held, until it has.
    @Test func bindAsksTheReceiverBeforeAnythingIsSentAgain() throws {
        try configure()
        var daemon = try rig.startDaemon()
        try server.accept()
        #expect(answer("200 OK", #"{"status":"Ok"}"#).contains("POST /skynet/asset/van/track?key=sekret "))
        _ = answer("409 Conflict", "{}")
        try daemon.waitFor("another device reports this asset")
        try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 >= 724 }
        let status = try rig.waitFor("queue", "ram_ring_depth") { $0 as? Int == 0 }
        #expect(status["health"] as? String == "degraded")
        // A restart changes nothing.
        daemon.kill(SIGKILL)
        let offline = try bind()
        #expect(try offline.exitStatus(within: 20) != 0)
        #expect(offline.text.contains("start waypost"), "\(offline.text)")
        daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        #expect(try state() == "taken")

        let refused = try bind()
        try server.accept()
        let request = answer("403 Forbidden", "{}")
        let words = ["POST /skynet/asset/van/bind?key=sekret ", #"{"device_id":"rig"}"#]
        #expect(words.filter { !request.contains($0) } == [], "\(request)")
        #expect(try refused.exitStatus(within: 20) == 1)
        #expect(refused.text.contains("status 403"), "\(refused.text)")
        #expect(try state() == "taken")

        let bound = try bind()
        #expect(answer("200 OK", "{}").contains("/bind?"))
        #expect(try bound.exitStatus(within: 20) == 0)
        #expect(bound.text.hasPrefix("fleet: bound, "), "\(bound.text)")
        #expect(answer("200 OK", #"{"status":"Ok"}"#).contains("/track?"))
        #expect(try state() == "active")
        // No other endpoint was delayed.
        #expect(try rig.waitForReceived { $0.count >= 724 }.count >= 724)
    }
}
