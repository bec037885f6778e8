import Foundation
import TestSupport
import Testing

/// The receiver says that another device has the asset.
@Suite(.waiting) struct CollisionTests {
    private let rig: Rig
    private let server: LocalServer
    private let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path

    init() throws {
        rig = try Rig()
        server = try LocalServer()
    }

    private func configure() throws {
        try rig.startCollector()
        try "sekret".write(toFile: rig.path("key"), atomically: true, encoding: .utf8)
        #expect(chmod(rig.path("key"), 0o600) == 0)
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drive)\"\nfollow = true\nplayback = \"max\"",
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

    private func fleet() throws -> [String: Any] {
        try #require((try rig.status().report["endpoints"] as? [[String: Any]])?.last)
    }

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
        #expect(try rig.waitFor("queue", "ram_ring_depth") { $0 as? Int == 0 }.exit == 1)
        // A restart changes nothing.
        daemon.kill(SIGKILL)
        let offline = try bind()
        #expect(try offline.exitStatus(within: 20) != 0)
        #expect(offline.text.contains("start waypost"), "\(offline.text)")
        daemon = try rig.startDaemon()
        try daemon.waitFor("started")
        #expect(try fleet()["state"] as? String == "taken")

        let refused = try bind()
        try server.accept()
        let request = answer("403 Forbidden", "{}")
        #expect(request.contains("POST /skynet/asset/van/bind?key=sekret "))
        #expect(request.contains(#"{"device_id":"rig"}"#))
        #expect(try refused.exitStatus(within: 20) == 1)
        #expect(refused.text.contains("status 403"), "\(refused.text)")
        #expect(try fleet()["state"] as? String == "taken")

        let bound = try bind()
        #expect(answer("200 OK", "{}").contains("/bind?"))
        #expect(try bound.exitStatus(within: 20) == 0)
        #expect(bound.text.hasPrefix("fleet: bound, "), "\(bound.text)")
        #expect(answer("200 OK", #"{"status":"Ok"}"#).contains("/track?"))
        #expect(try fleet()["state"] as? String == "active")
        // No other endpoint was delayed.
        try rig.waitFor("motion", "kept") { _ in (try? rig.received().count >= 724) ?? false }
    }
}
