import Configuration
import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// Logs through random configurations: what holds of the records whatever decides about them.
@Suite struct RandomConfigurationTests {
    private static let logs = [
        "demo-city-drive", "simulated-parked-drift", "simulated-cold-start", "two-second-epochs-over-midnight",
        "antimeridian-and-equator", "dead-reckoning",
    ]

    @Test func recordsStayInOrderAndPaired() throws {
        let seed = testSeed(1)
        var draft = Draft(random: SeededGenerator(seed: seed))
        for round in 0..<24 {
            let text = draft.configuration(fences: round % 4)
            let log = Golden(name: Self.logs[round % Self.logs.count], form: .replay).log
            let loaded = try loaded(text)
            let trace: String = try replayed([log], .jsonl, with: loaded)
            let complaints: [String] = try complaints(trace)
            #expect(complaints == [], "seed \(seed), round \(round):\n\(text)")
            // What is printed decides the same.
            let again = try self.loaded(loaded.effective.description)
            let isSame = try replayed([log], .jsonl, with: again) == trace
            #expect(isSame, "seed \(seed), round \(round):\n\(text)")
            let warnings: [[String]] = [again, loaded].map { $0.warnings.map(\.message) }
            #expect(warnings[0] == warnings[1])
        }
    }

    private func loaded(_ text: String) throws -> LoadedConfiguration {
        var environment = testEnvironment()
        environment.zoneInfo = "/usr/share/zoneinfo"
        return try AgentConfig.parse([("w.toml", Array(text.utf8))], environment: environment)
    }

    private func complaints(_ trace: String) throws -> [String] {
        var complaints: [String] = []
        var (at, moving, odometer) = (Int.min, nil as Bool?, 0.0)
        var times: [String: Int] = [:]
        var inside: Set<String> = []
        for line in trace.split(separator: "\n") {
            let row = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            func complain(_ words: String) { complaints.append("\(words): \(line)") }
            if let now = row["at_ms"] as? Int {
                if now < at { complain("decisions run back") }
                at = now
            }
            switch row["type"] as? String {
            case "motionchange":
                if row["moving"] as? Bool == moving { complain("no change") }
                moving = row["moving"] as? Bool
            case "location" where row["published"] as? Bool == true:
                let trackable = row["trackable"] as? String ?? ""
                let time = try #require(row["time_ms"] as? Int)
                if time < times[trackable] ?? .min { complain("times run back") }
                times[trackable] = time
                let metres = try #require(row["odometer"] as? Double)
                if metres < odometer { complain("the odometer falls") }
                odometer = metres
                if let moving, row["event"] as? String != "geofence", row["moving"] as? Bool != moving {
                    complain("moving is not as announced")
                }
                guard let fence = row["geofence_id"] as? String else { continue }
                let stay = "\(trackable)/\(fence)"
                switch row["geofence_action"] as? String {
                case "enter": if !inside.insert(stay).inserted { complain("entered twice") }
                case "exit": if inside.remove(stay) == nil { complain("left without having entered") }
                default: if !inside.contains(stay) { complain("dwells outside") }
                }
            default: break
            }
        }
        return complaints
    }

    private struct Draft {
        var random: SeededGenerator

        private mutating func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &random) < share }

        private mutating func lines(_ keys: [(key: String, values: [String])], _ share: Double = 0.3) -> String {
            var text = ""
            for (key, values) in keys where chance(share) {
                text += "\(key) = \(values.randomElement(using: &random)!)\n"
            }
            return text
        }

        private mutating func sampling() -> String {
            lines([
                (
                    "rule",
                    ["\"either\"", "\"both\"", "\"interval\"", "\"track-error\"", "\"track-error\"", "\"significant\""]
                ),
                ("bound", ["0.1", "5", "100"]), ("max_delay", ["1", "30", "600"]),
                ("angle", ["\"1deg\"", "\"90deg\""]),
                ("speed_change", ["1", "\"50km/h\""]), ("elasticity", ["0.5", "100"]),
                ("min_gap", ["\"100ms\"", "20", "600"]),
            ])
        }

        private mutating func resolution(_ share: Double) -> String {
            lines(
                [
                    ("priority", ["\"minimum\"", "\"maximum\""]), ("interval", ["0", "1", "30", "86400"]),
                    ("displacement", ["0", "10", "1e6"]),
                ], share)
        }

        mutating func configuration(fences: Int) -> String {
            var text = """
                [device]
                id = "rig"
                [source]
                kind = "file"
                path = "/dev/null"
                [[endpoint]]
                base_url = "http://127.0.0.1:9"
                \(chance(0.3) ? "feed = \"engine\"" : "")
                [tracking]

                """
            text += lines([
                ("accuracy_limit", ["5", "1000"]), ("speed_limit", ["5", "300"]), ("allow_simulated", ["true"]),
                ("stop_timeout", ["0", "10", "60", "3600"]), ("still_speed", ["0.1", "5"]),
                ("stationary_radius", ["10", "90"]), ("start_evidence", ["1", "100"]),
                ("resume_evidence", ["1", "100"]),
                ("consecutive_fixes", ["1", "20"]), ("motion_trigger_delay", ["5", "600"]),
                ("heartbeat", ["0", "1", "60"]),
                ("gap_after", ["10", "3600"]), ("no_fix_timeout", ["60", "86400"]), ("ring", ["30", "3600"]),
                ("static_navigation", ["false"]), ("disable_stop_detection", ["true"]),
                ("stop_on_stationary", ["true"]),
                ("start_moving", ["true"]), ("trip_summary", ["true"]),
            ])
            text += "[sampling]\n" + sampling() + lines([("preset", ["\"active\"", "\"balanced\"", "\"passive\""])])
            if chance(0.5) { text += "[tracking.moving]\n" + sampling() + resolution(0.3) }
            if chance(0.5) { text += "[tracking.stationary]\n" + resolution(0.5) + lines([("heartbeat", ["0", "5"])]) }
            if chance(0.6) { text += "[resolution.default]\n" + resolution(1) }
            if chance(0.4) {
                text += "[receiver]\nsleep = true\n"
                text += lines([("settle", ["30", "600"]), ("probe", ["30", "600"]), ("probe_on", ["5", "60"])])
            }
            if chance(0.3) {
                let hours = ["\"07:05-07:15\"", "[\"sun\", \"07:00-07:08\", \"22:00-02:00\"]"].randomElement(
                    using: &random)!
                text += "[schedule]\ntrack = \(hours)\ntimezone = \"UTC\"\n"
            }
            for index in 0..<Int.random(in: 0...3, using: &random) {
                text += """
                    [[trackable]]
                    id = "t\(index)"
                    [trackable.destination]
                    latitude = 52.4939
                    longitude = 13.4122
                    [trackable.constraints]
                    proximity = { spatial = 500, temporal = 60 }
                    resolutions.near_without_subscriber = { priority = "high", interval = 0, displacement = 0 }

                    """
            }
            for index in 0..<fences {
                let latitude = Double.random(in: 52.49...52.525, using: &random)
                let radius = [10, 80, 700, 50_000].randomElement(using: &random)!
                text += """
                    [[geofence]]
                    id = "f\(index)"
                    center = { latitude = \(latitude), longitude = 13.41 }
                    radius = \(radius)
                    \(chance(0.5) ? "dwell = \([1, 60].randomElement(using: &random)!)" : "")
                    [[resolution.rule]]
                    geofence = "f\(index)"
                    \(chance(0.5) ? "hours = \"07:03-07:11\"" : "")
                    interval = 1

                    """
            }
            return text
        }
    }
}
