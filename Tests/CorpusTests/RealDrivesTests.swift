import Scoring
import Testing
import WaypostCore
import WaypostTracking

/// What recorded drives come to at default settings: the stops that are stops, and no others.
@Suite struct RealDrivesTests {
    struct Change: CustomStringConvertible {
        var moving: Bool
        var reason: MotionReason
        /// Departure or standstill.
        var since: UTCTime
        var decided: UTCTime

        var description: String {
            "\(moving ? "moving" : "stationary") by \(reason.rawValue) since \(since.iso8601), "
                + "decided \(decided.iso8601)"
        }
    }

    struct Replayed {
        var changes: [Change] = []
        var locations: [Location] = []
        var moving = false
    }

    private func replay(_ log: String) throws -> Replayed {
        let tracked = TrackedLog(
            try Corpus.bytes(of: log), settings: Tracker.Settings(trackables: [Trackable(id: "asset")]))
        return Replayed(
            changes: try tracked.motionChanges.map { change in
                Change(
                    moving: change.moving, reason: change.reason, since: try #require(change.since),
                    decided: try #require(change.decided))
            }, locations: tracked.locations, moving: tracked.motionChanges.last?.moving ?? false)
    }

    /// Within 15 s before the first and after the second time of that day.
    private func lies(_ time: UTCTime, from first: String, to last: String? = nil) -> Bool {
        let tolerance = 15_000
        return time.timeOfDay >= milliseconds(first) - tolerance
            && time.timeOfDay <= milliseconds(last ?? first) + tolerance
    }

    private func milliseconds(_ clock: String) -> Int {
        1000 * clock.split(separator: ":").compactMap { Int($0) }.reduce(0) { $0 * 60 + $1 }
    }

    @Test func mooredReceiverNeverMoves() throws {
        let replayed = try replay("static_signalk_gps.nmea")
        #expect(replayed.changes.map(\.reason) == [.start])
        #expect(replayed.locations.allSatisfy { !$0.moving && $0.odometer == 0 })
        #expect(Set(replayed.locations.map(\.coordinate)).count == 1)
    }

    @Test func cityDriveIsOneTripThroughTwoHalts() throws {
        let replayed = try replay("drive_mtv_f9k_ublox.nmea")
        #expect(replayed.changes.map(\.moving) == [false, true], "\(replayed.changes)")
        #expect(lies(replayed.changes[1].since, from: "02:16:17", to: "02:16:19"), "\(replayed.changes)")
        // 8.6 km by the survey-grade truth of the same drive.
        let odometer = try #require(replayed.locations.last?.odometer)
        #expect(abs(odometer - 8600) < 0.015 * 8600)
    }

    @Test func swissDriveStopsOnceAcrossAGap() throws {
        let replayed = try replay("drive_z205_switzerland_sirf.nmea")
        let stops = replayed.changes.filter { !$0.moving && $0.reason != .start }
        #expect(stops.count == 1, "\(replayed.changes)")
        #expect(lies(stops[0].since, from: "13:13:03"), "\(replayed.changes)")
        #expect(lies(stops[0].decided, from: "13:18:03"), "\(replayed.changes)")
        let after = replayed.changes.filter { $0.moving && $0.decided > stops[0].decided }
        #expect(after.count == 1 && lies(after[0].since, from: "13:20:41"), "\(replayed.changes)")
    }

    @Test func nineHourSailDriftsWithoutStopping() throws {
        let replayed = try replay("sail_kernevel_latrinite_9h.nmea")
        #expect(replayed.changes.map(\.moving) == [false, true, false], "\(replayed.changes)")
        #expect(lies(replayed.changes[1].since, from: "06:05:30"), "\(replayed.changes)")
        #expect(lies(replayed.changes[2].since, from: "14:26:24", to: "14:27:30"), "\(replayed.changes)")
        #expect(replayed.locations.allSatisfy { $0.horizontalAccuracy == nil })
    }

    @Test func kayakEndsOnTheBeach() throws {
        let replayed = try replay("kayak_tomales.nmea")
        #expect(!replayed.moving, "\(replayed.changes)")
        // The receiver's clock steps 3 s back once.
        let times = replayed.locations.map(\.time)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
    }

    @Test(arguments: Corpus.logs)
    func deadlinesPassAndEventTimeNeverRunsBack(log: String) throws {
        let locations = try replay(log).locations
        #expect(zip(locations, locations.dropFirst()).allSatisfy { $0.at <= $1.at })
    }
}
