import Foundation
import TestSupport
import Testing

/// The built daemon on a simulated drive, into the built collector.
@Suite(.waiting) struct MainJobTests {
    private let drive = DemoDrive.path

    /// What arrives, once and in order, is what replay says of the same log, in every field that both have.
    @Test(arguments: ["demo-city-drive", "two-second-epochs-over-midnight", "simulated-parked-drift"])
    func whatArrivesIsWhatReplaySays(_ log: String) throws {
        let path = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(log).nmea").path
        let (received, expected) = try MainJob.run(path)
        #expect(received.map(\.seq) == Array(1...expected.count))
        let names = ["accuracy", "speed", "bearing", "altitude", "odometer", "moving"]
        func line(_ time: Int, _ event: String, _ place: (Double, Double), _ members: [String: Any]) -> String {
            let values = names.map { name in (members[name] as? NSNumber)?.stringValue ?? "none" }
            return "\(time) \(event) \(place) \(values)"
        }
        let mine = received.map { line($0.timeMs, $0.event ?? "none", ($0.latitude, $0.longitude), $0.members) }
        let replayed = expected.map { line($0.timeMs, $0.event, ($0.latitude, $0.longitude), $0.members) }
        #expect(mine == replayed, "\(names)")
    }

    @Test func aTripIsSummedUpToTheEndpoint() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(
            source: Rig.log(drive),
            more: "[tracking]\ntrip_summary = true\nstop_timeout = \"2m\"")
        try rig.runDaemon()
        let received = try rig.received()
        let stops = received.indices.filter { received[$0].event == "motionchange" && !received[$0].moving }.dropFirst()
        try #require(!stops.isEmpty)
        for index in stops {
            let (stop, trip) = (received[index], received[index + 1])
            #expect(trip.event == "trip" && trip.timeMs == stop.timeMs && trip.reason == stop.reason)
            #expect(trip.latitude == stop.latitude && trip.longitude == stop.longitude)
            func number(_ name: String, of row: Rig.Received = trip) throws -> Double {
                try #require((row.members[name] as? NSNumber)?.doubleValue, "\(name)")
            }
            let departure = try #require(received[..<index].last { $0.event == "motionchange" && $0.moving })
            let start = try [number("trip_start_ms"), number("trip_start_lat"), number("trip_start_lon")]
            #expect(start == [Double(departure.timeMs), departure.latitude, departure.longitude])
            let (end, duration) = try (number("trip_end_ms"), number("trip_duration"))
            #expect(end > start[0] && end < Double(stop.timeMs))
            #expect(abs(duration - (end - start[0]) / 1000) < 0.1)
            let driven = try number("odometer", of: stop) - number("odometer", of: departure)
            let (distance, idle, fastest) = try (number("trip_distance"), number("trip_idle"), number("trip_max_speed"))
            #expect(abs(distance - driven) < 0.2)
            #expect((0...duration).contains(idle) && (3...40).contains(fastest), "\(idle) s, \(fastest) m/s")
        }
        #expect(received.filter { $0.event != "trip" }.allSatisfy { $0.members["trip_start_ms"] == nil })
    }

    static let faults: [[String]] = [
        ["--answer", "500", "--every", "3"], ["--answer", "429", "--retry-after", "1", "--first", "2"],
        ["--close", "--every", "4"], ["--close-after-store", "--every", "3"], ["--answer", "500", "--for", "2s"],
    ]

    @Test(arguments: faults) func arrivesOnceAndInOrderAtACollectorThatMisbehaves(_ faults: [String]) throws {
        let (received, expected) = try MainJob.run(
            DemoDrive.lastTrip, collector: faults, endpoint: "batch_size = 30\nbatch_window = \"200ms\"")
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
        let log = try rig.write(DemoDrive.lastTrip)
        try rig.configure(source: Rig.log(log))
        let without = try rig.startDaemon(["--linger", "1"])
        #expect(try without.exitStatus(within: 30) == 0)
        #expect(without.text.contains("upload to main"))
        #expect(try rig.received().isEmpty)
        try rig.startCollector()
        try rig.runDaemon()
        #expect(try rig.received().map(\.timeMs) == rig.replayed(log).map(\.timeMs))
    }

    @Test func aFileThatWasReadIsNotReadAgainUnlessAsked() throws {
        let rig = try Rig()
        try rig.startCollector()
        let log = try rig.write(DemoDrive.lastTrip)
        try rig.configure(source: Rig.log(log))
        for arguments in [[], [], ["--from-start"]] {
            try rig.runDaemon(arguments)
        }
        let once = try rig.replayed(log).map(\.timeMs)
        let received = try rig.received()
        #expect(received.map(\.timeMs) == once + once)
        // Numbers leap at each start.
        #expect(isRising(received.map(\.seq)))
    }

    @Test func commitsAndUploadsWhatItHasOnSIGTERM() throws {
        let rig = try Rig()
        try rig.startCollector()
        try rig.configure(source: Rig.log(rig.write(DemoDrive.lastTrip), playback: "60.0"))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("moving since")
        try daemon.stop()
        #expect(daemon.text.contains("stopping: SIGTERM"))
        #expect(try !rig.received().isEmpty)
        #expect(try rig.says("queue", "--config", rig.path("waypost.toml")).contains("nothing on disk"))
    }

    @Test func paceForcesATripAndItsEnd() throws {
        let rig = try Rig()
        try rig.startCollector()
        // The first minute, in which it stands, and nothing more.
        try rig.configure(source: Rig.log(rig.write(DemoDrive.Part(0..<60)), follow: true))
        let daemon = try rig.startDaemon()
        try daemon.waitFor("stationary since")
        let orders: [(state: String, motion: String)] = [
            ("moving", "moving"), ("moving", "moving"), ("auto", "moving"), ("stationary", "stationary"),
        ]
        for (state, motion) in orders {
            let pace = try rig.command("pace \(state)")
            #expect(pace == (0, motion + "\n"), "\(state)")
        }
        // The end waits for one upload, and the first may be under way yet.
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        try daemon.stop()
        let changes = try rig.received().filter { $0.event == "motionchange" }
        #expect(changes.map(\.moving) == [false, true, false])
        #expect(changes.map(\.reason) == ["start", "pace", "pace"])
    }

    @Test func theLastFixOfAFileIsKeptWithATrackErrorToo() throws {
        // The log ends in full motion: what waits for the next fix to be judged by is kept all the same.
        let rig = try Rig()
        let log = try rig.write(DemoDrive.Part(0..<271))
        try rig.configure(source: Rig.log(log), more: "[sampling]\nrule = \"track-error\"")
        try rig.runDaemon(["--linger", "0"])
        let newest = try #require(try rig.newestRow())
        #expect(newest.time == "2026-03-02T07:04:30.000Z")
        // Ninety seconds on straight roads, where the default rule keeps every one.
        #expect((4...25).contains(newest.seq))
    }

    @Test func theOdometerIsSetForGood() throws {
        let rig = try Rig()
        try rig.configure(
            source: Rig.log(rig.write(DemoDrive.lastTrip), follow: true), outbox: "commit_window = \"1h\"",
            endpoint: "batch_window = \"1h\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { $0 as? Int == 124 }
        #expect(try rig.command("flush --commit").status == 0)
        let commits = try #require(rig.status().int("queue.commits"))
        let set = try rig.command("odometer set 123456789")
        #expect(set.status == 0 && set.text.hasPrefix("odometer 1234567"), "\(set.text)")
        // At once on disk: nothing that dies here takes it back.
        try rig.waitFor("queue", "commits") { ($0 as? Int ?? 0) > commits }
        daemon.kill(SIGKILL)
        let again = try rig.startDaemon()
        try rig.waitFor("motion", "odometer") { ($0 as? Double ?? 0) >= 123_456_000 }
        try again.stop()
    }

    @Test func aFileThatGivesMoreThanMemoryHoldsDoesNotWaitForTheCommitWindow() throws {
        // No server listens, so that no batch makes a commit either.
        let rig = try Rig()
        let filler = String(repeating: "-", count: 70)
        var log = ""
        for second in 0..<12_000 {
            let clock = 1_000_000 + second / 3600 * 10_000 + second / 60 % 60 * 100 + second % 60
            // 0.012 minutes of latitude a second are 22 m/s.
            let (degrees, minutes) = (50 + second * 12 / 60_000, second * 12 % 60_000)
            let digits = String(100_000 + minutes).dropFirst(1)
            let place = "\(degrees)\(digits.prefix(2)).\(digits.suffix(3))"
            let body = "GPRMC,\(String(clock).dropFirst(1)),A,\(place),N,01300.000,E,43.2,0.0,020326,,,A"
            var sum: UInt8 = 0
            for byte in body.utf8 { sum ^= byte }
            let checksum = String(0x100 + Int(sum), radix: 16, uppercase: true).dropFirst(1)
            // As many bytes as a usual cycle has: a piece of the file then holds some 450 fixes.
            log += "$\(body)*\(checksum)\r\n# \(filler)\r\n"
        }
        try log.write(toFile: rig.path("long.nmea"), atomically: true, encoding: .utf8)
        try rig.configure(
            source: Rig.log(rig.path("long.nmea")), outbox: "commit_window = \"1h\"",
            more: "[sampling]\npreset = \"active\"")
        try rig.runDaemon(["--linger", "0"])
        #expect(try rig.newestRow()?.seq ?? 0 > 10_000)
    }
}
