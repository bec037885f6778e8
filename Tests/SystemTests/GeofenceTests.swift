import Foundation
import TestSupport
import Testing

/// Crossings of a simulated drive, from the configuration to the collector.
@Suite(.waiting) struct GeofenceTests {
    private let drive = DemoDrive.path
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
            source: Rig.log(drive, playback: playback),
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
        try rig.runDaemon()
        #expect(try crossings(rig) == expected)
        let received = try rig.received().filter { $0.crossing != nil }
        #expect(received.allSatisfy { $0.event == "geofence" })
        #expect(received.map(\.reason) == ["initial", "crossing", "crossing", "dwell", "crossing", "crossing"])

        let configuration = rig.path("waypost.toml")
        let replay = try rig.says("replay", "--config", configuration, "--format", "jsonl", drive)
        var (words, times): ([String], [Int]) = ([], [])
        for line in replay.split(separator: "\n") {
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
            guard let action = row.string("geofence_action"), let id = row.string("geofence_id") else { continue }
            words.append("\(action) \(id)")
            times.append(row.int("time_ms") ?? 0)
        }
        #expect(words == expected && times == received.map(\.timeMs))
        let story = try rig.says("replay", "--config", configuration, drive)
        #expect(story.contains("geofence enter Depot North\n") && story.contains("geofence enter Market\n"))
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
        try rig.runDaemon()
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
        let geofences = try #require(rig.status().object("motion.geofences"))
        #expect(geofences.int("fences") == 3 && geofences["ids"] as? [String] == ["home"])
        #expect(try rig.command("status --all").text.contains("geofences  inside home\n"))
        try daemon.stop()
    }
}
