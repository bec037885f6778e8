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
        var status = try call(["status"])
        #expect(status.text.contains("engine     constant: high, 1 s, 5 m\n"), "\(status.text)")
        let clear = try call(["engine", "clear"])
        #expect(clear.status == 0 && clear.text == "dynamic: balanced, 3 s, 10 m\n", "\(clear.text)")
        status = try call(["status"])
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
        let report = try rig.status().report["motion"] as? [String: Any]
        let van = try #require((report?["resolutions"] as? [String: Any])?["van"] as? [String: Any])
        #expect(van["subscribers"] as? Int == 2 && van["interval_ms"] as? Int == 200)
        #expect(van["near"] as? Bool == false && van["battery_low"] as? Bool == false)
        let engine = try #require(report?["engine"] as? [String: Any])
        #expect(engine["mode"] as? String == "dynamic" && engine["interval_ms"] as? Int == 200)
        #expect(try call(["subscriber", "remove", "wall", "--trackable", "van"]).text.hasSuffix("subscribers 1\n"))
        #expect(
            try call(["subscriber", "remove", "desk", "--trackable", "van"]).text == "low, 60 s, 100 m; subscribers 0\n"
        )
    }

    @Test func saysWhatItRefuses() throws {
        for (arguments, status, words) in [
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
        ] as [([String], Int32, String)] {
            let refused = try call(arguments)
            let text = refused.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(refused.status == status && text.contains(words), "\(arguments): \(refused)")
        }
    }

    /// What the daemon answers to a line on its socket.
    private func ask(_ line: String) throws -> [String: Any] {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array(rig.path("control.sock").utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(connected == 0)
        let bytes = Array((line + "\n").utf8)
        try #require(send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        var reply: [UInt8] = []
        while reply.last != 0x0A {
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            reply += chunk[..<count]
        }
        return try #require(try JSONSerialization.jsonObject(with: Data(reply)) as? [String: Any])
    }

    private func load() throws -> [String: Any] {
        let motion = try rig.status().report["motion"] as? [String: Any]
        return try #require((motion?["resolutions"] as? [String: Any])?["load"] as? [String: Any])
    }

    @Test func aProgramReportsTheBatteryThatItReads() throws {
        #expect(try ask(#"{"do":"power","percent":19,"charging":false}"#)["ok"] as? Bool == true)
        let low = try load()
        #expect(low["battery_low"] as? Bool == true && low["interval_ms"] as? Int == 6000)
        // With the charger the level does not matter.
        #expect(try ask(#"{"do":"power","external":true,"percent":19}"#)["ok"] as? Bool == true)
        let charged = try load()
        #expect(charged["battery_low"] as? Bool == false && charged["interval_ms"] as? Int == 3000)
    }

    @Test func aBoostHoldsForAllTrackablesUntilItIsCleared() throws {
        let boost = #"{"do":"boost","seconds":600,"resolution":{"priority":"high","interval_ms":500,"displacement":1}}"#
        let engine = try #require(try ask(boost)["engine"] as? [String: Any])
        #expect(engine["interval_ms"] as? Int == 500)
        #expect(try load()["interval_ms"] as? Int == 500)
        #expect(try call(["status"]).text.contains("\nboost "))
        #expect(try ask(#"{"do":"boost","clear":true}"#)["ok"] as? Bool == true)
        #expect(try load()["interval_ms"] as? Int == 3000)
    }

    @Test func theSocketJudgesWhatTheCommandsCannotSay() throws {
        func code(_ line: String) throws -> String? { (try ask(line)["error"] as? [String: Any])?["code"] as? String }
        #expect(
            try code(#"{"do":"engine","set":{"priority":"high","interval_ms":-1,"displacement":0}}"#) == "bad-request")
        #expect(
            try code(#"{"do":"engine","set":{"priority":"high","interval_ms":1,"displacement":1e99}}"#) == "bad-request"
        )
        #expect(
            try code(#"{"do":"engine","set":{"priority":"urgent","interval_ms":1,"displacement":0}}"#) == "bad-request")
        #expect(try code(#"{"do":"engine","set":{"priority":"high"}}"#) == "bad-frame")
        #expect(try code(#"{"do":"subscriber","trackable":"van"}"#) == "bad-request")
        #expect(try code(#"{"do":"subscriber","add":"a","remove":"a","trackable":"van"}"#) == "bad-request")
        #expect(try code(#"{"do":"subscriber","add":"","trackable":"van"}"#) == "bad-request")
        #expect(try code(#"{"do":"power"}"#) == "bad-request")
        #expect(try code(#"{"do":"power","percent":101}"#) == "bad-request")
        #expect(try code(#"{"do":"boost"}"#) == "bad-request")
        #expect(try code(#"{"do":"boost","clear":true,"seconds":5}"#) == "bad-request")
        #expect(
            try code(
                #"{"do":"boost","seconds":3601,"resolution":{"priority":"high","interval_ms":1,"displacement":0}}"#)
                == "bad-request")
        #expect(try code(#"{"do":"fly"}"#) == "unknown-verb")
        #expect(try ask(#"{"id":4,"do":"refresh"}"#)["ok"] as? Bool == true)
        let engine = try #require(try ask(#"{"do":"engine"}"#)["engine"] as? [String: Any])
        #expect(engine["mode"] as? String == "dynamic")
        for number in 0..<200 {
            #expect(try code("{\"do\":\"subscriber\",\"add\":\"\(number)\",\"trackable\":\"load\"}") == nil)
        }
        #expect(try code(#"{"do":"subscriber","add":"one more","trackable":"load"}"#) == "too-many-subscribers")
        #expect(try code(#"{"do":"subscriber","add":"7","trackable":"load"}"#) == nil)
        let motion = try #require(try rig.status().report["motion"] as? [String: Any])
        #expect(motion["subscribers_refused"] as? Int == 1)
    }
}
