import Foundation
import TestSupport
import Testing

/// The built daemon on a simulated drive, into the built collector.
@Suite(.waiting) struct MainJobTests {
    private let drive = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/demo-city-drive.nmea").path

    @Test func everyKeptLocationArrivesOnceAndInOrder() throws {
        let (received, expected) = try MainJob.run(drive)
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.latitude) == expected.map(\.latitude))
        #expect(received.map(\.longitude) == expected.map(\.longitude))
        #expect(received.map(\.seq) == Array(1...expected.count))
    }

    /// What arrives is what replay says of the same log, in every field that both have.
    @Test(arguments: ["demo-city-drive", "two-second-epochs-over-midnight", "simulated-parked-drift"])
    func whatArrivesIsWhatReplaySays(_ log: String) throws {
        let path = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(log).nmea").path
        let (received, expected) = try MainJob.run(path)
        #expect(received.count == expected.count && !received.isEmpty)
        let names = ["accuracy", "speed", "bearing", "altitude", "odometer", "moving"]
        for (mine, replayed) in zip(received, expected) {
            #expect(
                mine.timeMs == replayed.timeMs && mine.latitude == replayed.latitude
                    && mine.longitude == replayed.longitude)
            #expect(mine.event ?? "none" == replayed.event)
            for name in names {
                let pair = (mine.members[name] as? NSNumber, replayed.members[name] as? NSNumber)
                #expect(pair.0 == pair.1, "\(name) at \(mine.timeMs)")
            }
        }
    }

    @Test func aTripIsSummedUpToTheEndpoint() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = \"max\"",
            more: "[tracking]\ntrip_summary = true\nstop_timeout = \"2m\"")
        let daemon = try rig.startDaemon()
        #expect(try daemon.exitStatus(within: 60) == 0)
        let received = try rig.received()
        let stops = received.indices.filter { received[$0].event == "motionchange" && !received[$0].moving }.dropFirst()
        try #require(!stops.isEmpty)
        for index in stops {
            let (stop, trip) = (received[index], received[index + 1])
            #expect(trip.event == "trip" && trip.timeMs == stop.timeMs && trip.reason == stop.reason)
            #expect(trip.latitude == stop.latitude && trip.longitude == stop.longitude)
            func number(_ name: String) throws -> Double {
                try #require((trip.members[name] as? NSNumber)?.doubleValue, "\(name)")
            }
            let departure = try #require(received[..<index].last { $0.event == "motionchange" && $0.moving })
            #expect(try number("trip_start_ms") == Double(departure.timeMs))
            #expect(try number("trip_start_lat") == departure.latitude)
            #expect(try number("trip_start_lon") == departure.longitude)
            let (start, end) = (try number("trip_start_ms"), try number("trip_end_ms"))
            #expect(end > start && end < Double(stop.timeMs))
            #expect(abs(try number("trip_duration") - (end - start) / 1000) < 0.1)
            let driven =
                try #require(stop.members["odometer"] as? Double) - #require(departure.members["odometer"] as? Double)
            #expect(abs(try number("trip_distance") - driven) < 0.2)
            #expect(try (0...number("trip_duration")).contains(number("trip_idle")))
            #expect(try (3...40).contains(number("trip_max_speed")))
        }
        #expect(received.filter { $0.event != "trip" }.allSatisfy { $0.members["trip_start_ms"] == nil })
    }

    @Test(arguments: [
        ["--answer", "500", "--every", "3"], ["--answer", "429", "--retry-after", "1", "--first", "2"],
        ["--close", "--every", "4"], ["--close-after-store", "--every", "3"], ["--answer", "500", "--for", "2s"],
    ])
    func arrivesOnceAndInOrderAtACollectorThatMisbehaves(_ faults: [String]) throws {
        let (received, expected) = try MainJob.run(drive, collector: faults, endpoint: "batch_size = 100")
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.seq) == Array(1...expected.count))
    }

    @Test func losesNothingStoredWhenKilledAgainAndAgain() throws {
        let seed = testSeed(1)
        let survival = try MainJob.runKilling(drive, times: 8, seed: seed)
        #expect(survival.kills == 8)
        #expect(survival.lost.isEmpty, "seed \(seed)")
        let received = survival.received
        #expect(isRising(received.map(\.seq)), "seed \(seed)")
        // Sampling begins again at each start, so that other fixes are kept, but nowhere fewer than the interval asks.
        #expect(MainJob.firstHole(received, survival.expected, milliseconds: 11_000) == nil, "seed \(seed)")
    }

    @Test func goesOnWhereItStoppedAfterTheReceivingEndWasAway() throws {
        let rig = try Rig()
        // The port is found, then no server listens there.
        try rig.startCollector()
        try rig.stopCollector()
        try rig.configure(source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = \"max\"")
        let without = try rig.startDaemon(["--linger", "1"])
        #expect(try without.exitStatus(within: 30) == 0)
        #expect(without.text.contains("upload to main"))
        #expect(try rig.received().isEmpty)
        try rig.startCollector()
        let with = try rig.startDaemon()
        #expect(try with.exitStatus(within: 60) == 0)
        #expect(try rig.received().map(\.timeMs) == rig.replayed(drive).map(\.timeMs))
    }

    @Test func aFileThatWasReadIsNotReadAgainUnlessAsked() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = \"max\"")
        for arguments in [[], [], ["--from-start"]] {
            let daemon = try rig.startDaemon(arguments)
            #expect(try daemon.exitStatus(within: 60) == 0)
        }
        let once = try rig.replayed(drive).map(\.timeMs)
        #expect(try rig.received().map(\.timeMs) == once + once)
        // Numbers leap at each start.
        #expect(isRising(try rig.received().map(\.seq)))
    }

    @Test func commitsAndUploadsWhatItHasOnSIGTERM() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = 60.0")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("moving since")
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        #expect(daemon.text.contains("stopping: SIGTERM"))
        #expect(try !rig.received().isEmpty)
        let queue = try rig.waypost(["queue", "--config", rig.path("waypost.toml")])
        #expect(try queue.exitStatus(within: 10) == 0)
        #expect(queue.text.contains("empty"))
    }

    @Test func paceForcesATripAndItsEnd() throws {
        let rig = try Rig()
        try rig.startCollector()
        // Its first minute, in which it stands, takes a minute: as long as the orders take on a busy machine.
        try rig.configure(source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = 1.0")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since")
        for (state, motion) in [
            ("moving", "moving"), ("moving", "moving"), ("auto", "moving"), ("stationary", "stationary"),
        ] {
            let pace = try rig.waypost(["pace", state, "--socket", rig.path("control.sock")])
            #expect(try pace.exitStatus(within: 10) == 0)
            #expect(pace.text == motion + "\n")
        }
        // The end waits for one upload, and the first may be under way yet.
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 10) == 0)
        let changes = try rig.received().filter { $0.event == "motionchange" }
        #expect(changes.map(\.moving) == [false, true, false])
        #expect(changes.map(\.reason) == ["start", "pace", "pace"])
    }

    @Test func theLastFixOfAFileIsKeptWithATrackErrorToo() throws {
        // The log ends in full motion: what waits for the next fix to be judged by is kept all the same.
        let text = try String(contentsOfFile: drive, encoding: .utf8)
        let end = try #require(text.range(of: "$GNRMC,070431"))
        let rig = try Rig()
        try text[..<end.lowerBound].write(toFile: rig.path("moving.nmea"), atomically: true, encoding: .utf8)
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(rig.path("moving.nmea"))\"\nplayback = \"max\"",
            more: "[sampling]\nrule = \"track-error\"")
        let daemon = try rig.startDaemon(["--linger", "0"])
        #expect(try daemon.exitStatus(within: 30) == 0)
        let newest = try #require(try rig.newestRow())
        #expect(newest.time == "2026-03-02T07:04:30.000Z")
        // Ninety seconds on straight roads, where the default rule keeps every one.
        #expect((4...25).contains(newest.seq))
    }

    @Test func theOdometerIsSetForGood() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(source: "kind = \"file\"\npath = \"\(drive)\"\nplayback = 20.0")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("moving since")
        let set = try rig.waypost(["odometer", "set", "123456789", "--socket", rig.path("control.sock")])
        #expect(try set.exitStatus(within: 10) == 0)
        #expect(set.text.hasPrefix("odometer 1234567"))
        // At once on disk: nothing that dies here takes it back.
        try rig.waitFor("queue", "commits") { ($0 as? Int ?? 0) > 1 }
        daemon.kill(SIGKILL)
        let again = try rig.startDaemon()
        try rig.waitFor("motion", "odometer") { ($0 as? Double ?? 0) >= 123_456_000 }
        again.kill(SIGTERM)
        #expect(try again.exitStatus(within: 10) == 0)
        for metres in ["-1", "nan", "1e12", "far"] {
            let wrong = try rig.waypost(["odometer", "set", metres, "--socket", rig.path("control.sock")])
            #expect(try wrong.exitStatus(within: 10) == 64, "\(metres)")
        }
    }

    @Test func aFileThatGivesMoreThanMemoryHoldsDoesNotWaitForTheCommitWindow() throws {
        // No server listens, so that no batch makes a commit either.
        let rig = try Rig()
        var log = ""
        for second in 0..<12_000 {
            let clock = second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60
            // 0.012 minutes of latitude a second are 22 m/s.
            let (degrees, minutes) = (50 + second * 12 / 60_000, second * 12 % 60_000)
            let digits = String(100_000 + minutes).dropFirst(1)
            let place = "\(degrees)\(digits.prefix(2)).\(digits.suffix(3))"
            let body = "GPRMC,\(String(1_000_000 + clock).dropFirst(1)),A,\(place),N,01300.000,E,43.2,0.0,020326,,,A"
            let sum = Int(body.utf8.reduce(0) { $0 ^ $1 })
            let checksum = String(0x100 + sum, radix: 16, uppercase: true).dropFirst(1)
            // As many bytes as a usual cycle has: a piece of the file then holds some 450 fixes.
            log += "$\(body)*\(checksum)\r\n# \(String(repeating: "-", count: 70))\r\n"
        }
        try log.write(toFile: rig.path("long.nmea"), atomically: true, encoding: .utf8)
        try rig.configure(
            source: "kind = \"file\"\npath = \"\(rig.path("long.nmea"))\"\nplayback = \"max\"",
            outbox: "commit_window = \"1h\"", more: "[sampling]\npreset = \"active\"")
        let daemon = try rig.startDaemon(["--linger", "0"])
        #expect(try daemon.exitStatus(within: 60) == 0)
        #expect(try rig.newestRow()?.seq ?? 0 > 10_000)
    }
}
