import Foundation
import TestSupport
import Testing

/// Crossings of a simulated drive, from the configuration to the collector.
@Suite(.waiting) struct GeofenceTests {
    private let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path
    private let expected = [
        "enter home", "exit home", "enter depot", "dwell depot", "exit depot", "enter market",
    ]

    private func configure(_ rig: Rig, playback: String = "\"max\"") throws {
        let list = rig.path("fences.geojson")
        try #"""
        {"type": "FeatureCollection", "features": [
          {"type": "Feature", "id": "market", "properties": {"radius": 150, "name": "Market"},
           "geometry": {"type": "Point", "coordinates": [13.4122727, 52.4939247]}}]}
        """#.write(toFile: list, atomically: true, encoding: .utf8)
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = \(playback)",
            outbox: "commit_window = \"20ms\"",
            more: """
                [[geofence]]
                id = "home"
                center = { latitude = 52.5199877, longitude = 13.4049755 }
                radius = "100m"
                [[geofence]]
                id = "depot"
                name = "Depot North"
                polygon = [[52.5105, 13.4140], [52.5105, 13.4170], [52.5120, 13.4170], [52.5120, 13.4140]]
                dwell = "4m"
                [geofences]
                file = "\(list)"
                """)
    }

    private func crossings(_ rig: Rig) throws -> [String] {
        try rig.received().compactMap(\.crossing)
    }

    @Test func crossingsArriveWithIdAndActionAsInReplay() throws {
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig)
        let daemon = try rig.startDaemon()
        #expect(try daemon.exitStatus(within: 60) == 0)
        #expect(try crossings(rig) == expected)
        let received = try rig.received().filter { $0.crossing != nil }
        #expect(received.allSatisfy { $0.event == "geofence" })
        #expect(received.map(\.reason) == ["initial", "crossing", "crossing", "dwell", "crossing", "crossing"])

        let replay = try rig.waypost(["replay", "--config", rig.path("waypost.toml"), "--format", "jsonl", drive])
        #expect(try replay.exitStatus(within: 60) == 0)
        let replayed = try replay.text.split(separator: "\n").compactMap { line -> (String, Int)? in
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            guard let action = row?["geofence_action"] as? String, let id = row?["geofence_id"] as? String,
                let time = row?["time_ms"] as? Int
            else { return nil }
            return ("\(action) \(id)", time)
        }
        #expect(replayed.map(\.0) == expected && replayed.map(\.1) == received.map(\.timeMs))
        let story = try rig.waypost(["replay", "--config", rig.path("waypost.toml"), drive])
        #expect(try story.exitStatus(within: 60) == 0)
        #expect(story.text.contains("geofence enter Depot North\n") && story.text.contains("geofence enter Market\n"))
    }

    @Test func crossingsStayPairedWhenKilledAgainAndAgain() throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig)
        for _ in 0..<8 {
            let daemon = try rig.startDaemon()
            _ = daemon.ended(within: Double.random(in: 0.03...0.2, using: &random))
            daemon.kill(SIGKILL)
        }
        let last = try rig.startDaemon()
        #expect(try last.exitStatus(within: 60) == 0)
        let summary = try rig.stopCollector()
        #expect(summary.contains("refused: 0"))
        // A kill in the depot may delay its DWELL a little, but never twice.
        #expect(try crossings(rig) == expected, "seed \(seed)")
    }

    @Test func statusShowsWhereItIs() throws {
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig, playback: "20.0")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since")
        let status = try rig.status()
        let motion = status.report["motion"] as? [String: Any]
        let geofences = try #require(motion?["geofences"] as? [String: Any])
        #expect(geofences["fences"] as? Int == 3 && geofences["ids"] as? [String] == ["home"])
        let text = try rig.waypost(["status", "--socket", rig.path("control.sock")])
        _ = try text.exitStatus(within: 10)
        #expect(text.text.contains("geofences  inside home\n"))
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
    }
}
