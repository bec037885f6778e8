import DriveSimulation
import Scoring
import Testing
import WaypostCore

/// A scorer that never complains is worth nothing: each fault that is planted must show in its metric, and in no other.
@Suite struct MotionScoreTests {
    /// Two trips of a kilometre with ten minutes of parking around them.
    private static let truth = DriveTruth(
        following: [
            .park(seconds: 600), .drive(metres: 1000, limit: 10), .park(seconds: 600),
            .drive(metres: 1000, limit: 10), .park(seconds: 600),
        ], from: SimulatedDrive.Settings.defaultOrigin, heading: 0, period: 1000)
    private let truth = MotionScoreTests.truth

    private func decision(_ moving: Bool, at: Int, since: Int, _ reason: String) -> DriveRecord.Decision {
        DriveRecord.Decision(moving: moving, at: at, since: since, reason: reason)
    }

    /// Starts 5 s after the departure, stops on the second.
    private var perfect: DriveRecord {
        var record = DriveRecord()
        record.decisions.append(decision(false, at: 30_000, since: 30_000, "start"))
        for trip in truth.trips {
            record.decisions.append(decision(true, at: trip.departure + 5_000, since: trip.departure, "speed"))
            record.decisions.append(
                decision(false, at: trip.standstill + 300_000, since: trip.standstill, "stop-timeout"))
        }
        record.odometer = 2000
        return record
    }

    private func score(_ change: (inout DriveRecord) -> Void) -> MotionScore {
        var record = perfect
        change(&record)
        return MotionScore(of: record, against: truth)
    }

    /// With another decision in one place.
    private func score(_ index: Int, _ moving: Bool, at: Int, since: Int, _ reason: String) -> MotionScore {
        score { $0.decisions[index] = decision(moving, at: at, since: since, reason) }
    }

    private func plantFalseTrip(_ record: inout DriveRecord) {
        record.decisions.insert(decision(true, at: 100_000, since: 95_000, "speed"), at: 1)
        record.decisions.insert(decision(false, at: 450_000, since: 100_000, "stop-timeout"), at: 2)
    }

    @Test func perfectRecordHasNoFault() {
        let score = score { _ in }
        #expect(score.violations.isEmpty, "\(score.violations)")
        #expect((score.trips, score.trueStops, score.stopF1) == (2, 3, 1))
        #expect([score.startSeconds, score.departedErrors, score.stopDelays] == [[5, 5], [0, 0], [0, 0]])
        #expect(score.startMetres.allSatisfy { (15...30).contains($0) }, "\(score.startMetres)")
        #expect(abs(score.odometerError ?? 1) < 1e-6 && abs(score.parkedSeconds - 1800) < 1)
    }

    @Test func falseTripIsOneThatNoDepartureFollows() {
        let false100 = score(plantFalseTrip)
        #expect(false100.falseTrips == 1 && false100.merged == 0 && false100.falseStops == 0)
        #expect(false100.stopF1 < 1)
        let foreseen = score(1, true, at: truth.trips[0].departure - 50_000, since: 550_000, "speed")
        #expect(foreseen.falseTrips == 0 && foreseen.startMetres[0] == 0 && foreseen.departedEarly[0] == 50)
    }

    @Test func missedTrip() {
        let score = score { $0.decisions.removeSubrange(3...4) }
        #expect(score.missed == 1 && score.merged == 0 && score.startMetres.count == 1)
    }

    @Test func mergedTripIsAStopNotSeenToo() {
        let score = score { $0.decisions.removeSubrange(2...3) }
        #expect(score.merged == 1 && score.unseenStops == 1 && score.missed == 0 && score.stopF1 < 0.9)
    }

    @Test func lateStart() {
        let departure = truth.trips[0].departure
        let late = score(1, true, at: departure + 40_000, since: departure + 10_000, "backup-fence")
        #expect(late.startSeconds[0] == 40 && late.violations.count == 2)
        #expect((300...400).contains(late.startMetres[0]) && (40...100).contains(late.departedErrors[0]))
    }

    @Test func lateAndEarlyStops() {
        let standstill = truth.trips[0].standstill
        let late = score(2, false, at: standstill + 420_000, since: standstill, "no-fix")
        #expect(late.stopDelays[0] == 120 && late.violations.count == 1)
        let early = score(2, false, at: standstill - 20_000, since: standstill - 80_000, "stop-timeout")
        #expect(early.stopDelays[0] == -320 && early.falseStops == 1)
        // An honest gap is no false stop, only an early one.
        #expect(score(2, false, at: standstill - 20_000, since: standstill - 80_000, "gap").falseStops == 0)
    }

    @Test func falseStopWithinATrip() {
        let trip = truth.trips[0]
        let score = score {
            $0.decisions.insert(
                decision(false, at: trip.departure + 40_000, since: trip.departure + 20_000, "stop-timeout"), at: 2)
            $0.decisions.insert(
                decision(true, at: trip.departure + 50_000, since: trip.departure + 45_000, "speed"), at: 3)
        }
        #expect(score.falseStops == 1 && score.falseTrips == 0 && score.stopDelays == [0, 0])
    }

    @Test func phantomMetresBeforeAndAfterTheStop() {
        let stop = truth.trips[0].standstill
        func point(_ seconds: Int, _ north: Double, moving: Bool) -> DriveRecord.Point {
            DriveRecord.Point(
                time: stop + 1000 * seconds, at: stop + 1000 * seconds, place: PlanePoint(east: 0, north: north),
                moving: moving)
        }
        let score = score {
            $0.points = [
                point(-10, 900, moving: true), point(10, 1000, moving: true), point(20, 1003, moving: true),
                point(310, 1003, moving: false), point(400, 1010, moving: false),
                point(610, 1100, moving: true),
            ]
        }
        #expect(score.phantomStopping == 3 && score.phantomParked == 7)
    }

    @Test func phantomsOfAFalseTripAreCountedAsTheTrip() {
        let score = score {
            plantFalseTrip(&$0)
            $0.points = [
                DriveRecord.Point(time: 95_000, at: 100_000, place: .zero, moving: true),
                DriveRecord.Point(time: 120_000, at: 120_000, place: PlanePoint(east: 50, north: 0), moving: true),
            ]
        }
        #expect(score.falseTrips == 1 && score.phantomParked == 0)
    }

    @Test func blindStartAndEndCountFromTheFirstFix() {
        let first = truth.trips[0]
        let blindUntil = first.departure + 60_000
        let start = score {
            $0.blindness = [(first.departure - 20_000)..<blindUntil]
            $0.decisions[1] = decision(true, at: blindUntil + 3_000, since: blindUntil, "fence")
        }
        #expect(start.startSeconds[0] == 3 && start.departedErrors[0] == 0 && start.metres < 1500)

        let stop = first.standstill
        for delay in [0, 30] {
            let end = score {
                $0.blindness = [(stop - 5_000)..<(stop + 500_000)]
                $0.decisions[2] = decision(false, at: stop + 500_000 + 1000 * delay, since: stop - 5_000, "gap")
            }
            #expect(end.stopDelays.count == 1 && end.blindStopDelays == [Double(delay)])
        }
    }

    @Test func odometerIsHeldAgainstTheMetresWithFixes() {
        #expect(abs((score { $0.odometer = 2100 }.odometerError ?? 0) - 0.05) < 1e-6)
        let first = truth.trips[0]
        let half = score {
            $0.blindness = [(first.departure - 1000)..<(first.standstill + 1000)]
            $0.odometer = 1000
        }
        #expect(abs(half.odometerError ?? 1) < 1e-6)
    }
}
