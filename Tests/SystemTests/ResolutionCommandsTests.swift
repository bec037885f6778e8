import Foundation
import TestSupport
import Testing

/// Orders about resolutions to the daemon that runs, by its commands and by its socket.
@Suite(.waiting) struct ResolutionCommandsTests {
    private let rig: Rig
    private let daemon: RunningProgram

    init() throws {
        rig = try Rig()
        try rig.configure(
            source: "kind = \"serial\"\npath = \"\(rig.path("no-receiver"))\"",
            more: """
                [tracking]
                heartbeat = 0
                [[trackable]]
                id = "van"
                [trackable.constraints.resolutions]
                far_without_subscriber = { priority = "low", interval = "60s", displacement = "100m" }
                [[trackable]]
                id = "load"
                [resolution.apply_without_constraints]
                battery_threshold = 20
                low_battery_multiplier = 2.0
                """)
        daemon = try rig.startDaemon()
        try daemon.waitFor("receiver serial")
    }

    /// Exit status and all that was printed.
    private func call(_ arguments: [String]) throws -> (status: Int32, text: String) {
        let program = try rig.waypost(arguments + ["--socket", rig.path("control.sock")])
        let status = try program.exitStatus(within: 20)
        return (status, program.text)
    }

    private let fine = ["--priority", "high", "--interval", "1s", "--displacement", "5m"]

    @Test func setsAndClearsTheConstantEngine() throws {
        let set = try call(["engine", "set"] + fine)
        #expect(set.status == 0 && set.text == "constant: high, 1 s, 5 m\n", "\(set.text)")
        var status = try call(["status", "--all"])
        #expect(status.text.contains("engine     constant: high, 1 s, 5 m\n"), "\(status.text)")
        let clear = try call(["engine", "clear"])
        #expect(clear.status == 0 && clear.text == "dynamic: balanced, 3 s, 10 m\n", "\(clear.text)")
        status = try call(["status", "--all"])
        #expect(status.text.contains("engine     dynamic: balanced, 3 s, 10 m\n"), "\(status.text)")
        #expect(status.text.contains("trackable  van: low, 60 s, 100 m; subscribers 0\n"), "\(status.text)")
    }

    @Test func subscribersComeAndGo() throws {
        let add = try call(["subscriber", "add", "desk", "--trackable", "van"])
        // With a subscriber the constraints say nothing: the default.
        #expect(add.status == 0 && add.text == "balanced, 3 s, 10 m; subscribers 1\n", "\(add.text)")
        let asked = try call(
            [
                "subscriber", "add", "wall", "--trackable", "van", "--priority", "maximum", "--interval", "0",
                "--displacement", "2",
            ])
        #expect(asked.text == "maximum, 0.2 s, 2 m; subscribers 2\n", "\(asked.text)")
        let motion = try #require(rig.status().object("motion"))
        #expect(["subscribers", "interval_ms"].map { motion.int("resolutions.van.\($0)") } == [2, 200])
        #expect(["near", "battery_low"].map { motion.bool("resolutions.van.\($0)") } == [false, false])
        #expect(motion.string("engine.mode") == "dynamic" && motion.int("engine.interval_ms") == 200)
        #expect(try call(["subscriber", "remove", "wall", "--trackable", "van"]).text.hasSuffix("subscribers 1\n"))
        #expect(
            try call(["subscriber", "remove", "desk", "--trackable", "van"]).text == "low, 60 s, 100 m; subscribers 0\n"
        )
    }

    @Test func saysWhatItRefuses() throws {
        let rows: [([String], Int32, String)] = [
            (["subscriber", "add", "desk"], 1, "several trackables, and none is named (name one of: van, load)"),
            (["subscriber", "add", "desk", "--trackable", "bike"], 1, "no trackable \"bike\" (known: van, load)"),
            (["subscriber", "remove", "desk", "--trackable", "van"], 1, "no subscriber \"desk\" of trackable \"van\""),
            (["engine", "set"], 64, "Name a resolution"),
            (["engine", "set", "--interval", "1s"], 64, "all three"),
            (["engine", "set", "--priority", "urgent"], 64, "minimum, low, balanced, high, maximum"),
            (["engine", "set", "--interval", "1q"], 64, "a duration such as"),
            (["engine", "set", "--interval", "2d"], 64, "a duration from 0 to 1d"),
            (["engine", "set", "--displacement", "5 meters"], 64, "did you mean 5 m?"),
            (["engine", "set", "--displacement=-1"], 64, "a distance from 0 to 1000km"),
        ]
        for (arguments, status, words) in rows {
            let refused = try call(arguments)
            let text = refused.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(refused.status == status && text.contains(words), "\(arguments): \(refused)")
        }
    }

    private func load() throws -> [String: Any] { try #require(rig.status().object("motion.resolutions.load")) }

    @Test func aProgramReportsTheBatteryThatItReads() throws {
        #expect(try rig.order(#"{"do":"power","percent":19,"charging":false}"#)["ok"] as? Bool == true)
        let low = try load()
        #expect(low["battery_low"] as? Bool == true && low["interval_ms"] as? Int == 6000)
        // With the charger the level does not matter.
        #expect(try rig.order(#"{"do":"power","external":true,"percent":19}"#)["ok"] as? Bool == true)
        let charged = try load()
        #expect(charged["battery_low"] as? Bool == false && charged["interval_ms"] as? Int == 3000)
    }

    @Test func aBoostHoldsForAllTrackablesUntilItIsCleared() throws {
        let boost = #"{"do":"boost","seconds":600,"resolution":{"priority":"high","interval_ms":500,"displacement":1}}"#
        #expect(try rig.order(boost).int("engine.interval_ms") == 500)
        #expect(try load()["interval_ms"] as? Int == 500)
        #expect(try call(["status", "--all"]).text.contains("\nboost "))
        #expect(try rig.order(#"{"do":"boost","clear":true}"#)["ok"] as? Bool == true)
        #expect(try load()["interval_ms"] as? Int == 3000)
    }

    @Test func theSocketJudgesWhatTheCommandsCannotSay() throws {
        func code(_ line: String) throws -> String? { try rig.order(line).string("error.code") }
        let rows: [(line: String, code: String)] = [
            (#"{"do":"engine","set":{"priority":"high","interval_ms":-1,"displacement":0}}"#, "bad-request"),
            (#"{"do":"engine","set":{"priority":"high","interval_ms":1,"displacement":1e99}}"#, "bad-request"),
            (#"{"do":"engine","set":{"priority":"urgent","interval_ms":1,"displacement":0}}"#, "bad-request"),
            (#"{"do":"engine","set":{"priority":"high"}}"#, "bad-frame"),
            (#"{"do":"subscriber","trackable":"van"}"#, "bad-request"),
            (#"{"do":"subscriber","add":"a","remove":"a","trackable":"van"}"#, "bad-request"),
            (#"{"do":"subscriber","add":"","trackable":"van"}"#, "bad-request"),
            (#"{"do":"power"}"#, "bad-request"), (#"{"do":"power","percent":101}"#, "bad-request"),
            (#"{"do":"boost"}"#, "bad-request"), (#"{"do":"boost","clear":true,"seconds":5}"#, "bad-request"),
            (
                #"{"do":"boost","seconds":3601,"resolution":{"priority":"high","interval_ms":1,"displacement":0}}"#,
                "bad-request"
            ), (#"{"do":"fly"}"#, "unknown-verb"),
        ]
        for (line, expected) in rows { #expect(try code(line) == expected, "\(line)") }
        #expect(try rig.order(#"{"id":4,"do":"refresh"}"#)["ok"] as? Bool == true)
        #expect(try rig.order(#"{"do":"engine"}"#).string("engine.mode") == "dynamic")
        let refused = try (0..<200).filter {
            try code(#"{"do":"subscriber","add":"\#($0)","trackable":"load"}"#) != nil
        }
        #expect(refused.isEmpty)
        #expect(try code(#"{"do":"subscriber","add":"one more","trackable":"load"}"#) == "too-many-subscribers")
        #expect(try code(#"{"do":"subscriber","add":"7","trackable":"load"}"#) == nil)
        #expect(try rig.status().int("motion.subscribers_refused") == 1)
    }
}
