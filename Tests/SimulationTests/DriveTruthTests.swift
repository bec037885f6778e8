import DriveSimulation
import Testing
import WaypostCore

@Suite struct DriveTruthTests {
    private func truth(_ legs: [Leg], period: Int = 1000) -> DriveTruth {
        DriveTruth(following: legs, from: SimulatedDrive.Settings.defaultOrigin, heading: 90, period: period)
    }

    @Test func measuresTheTripBetweenDepartureAndStandstill() throws {
        let truth = truth([.park(seconds: 60), .drive(metres: 1000, limit: 10), .park(seconds: 30)])
        let trip = try #require(truth.trips.first)
        #expect(truth.trips.count == 1)
        #expect(trip.departure == 60_000)
        #expect(abs(trip.metres - 1000) < 1e-6)
        // 1000 m at 10 m/s, plus half the time lost on speeding up (10/1.6 s) and braking (10/2 s): 105.625 s.
        let seconds = Double(trip.standstill - trip.departure) / 1000
        #expect(abs(seconds - 105.625) < 0.5)
        let stops: [[Int?]] = truth.stops.map { [$0.standstill, $0.departure] }
        #expect(stops == [[nil, 60_000], [trip.standstill, nil]])
        #expect(truth.duration == trip.standstill + 30_000)
    }

    @Test func endsWhereTheScriptLeads() throws {
        let truth = truth([.drive(metres: 500, limit: 14), .park(seconds: 5)])
        let place = try #require(truth.samples.last).place
        #expect(abs(place.east - 500) < 0.01 && abs(place.north) < 0.01)
    }

    @Test func staysInTheTripThroughARedLight() {
        let truth = truth([
            .park(seconds: 10), .drive(metres: 200, limit: 14), .halt(seconds: 90), .drive(metres: 200, limit: 14),
            .park(seconds: 10),
        ])
        #expect(truth.trips.count == 1)
        let halted = truth.samples.filter { !$0.isParked && $0.speed == 0 }
        #expect((89...91).contains(halted.count))
    }

    @Test func brakesForTheBendAhead() {
        let truth = truth(
            [.drive(metres: 400, limit: 20), .bend(degrees: 90, radius: 10, limit: 20), .drive(metres: 50, limit: 20)],
            period: 100)
        let inBend = truth.samples.filter { $0.distance > 400.5 && $0.distance < 415 }
        #expect(!inBend.isEmpty)
        #expect(inBend.allSatisfy { $0.speed <= 5.01 })
        let changes: [Double] = zip(truth.samples, truth.samples.dropFirst()).map { $1.speed - $0.speed }
        #expect(changes.allSatisfy { $0 < 0.2 && $0 > -0.25 })
    }

    @Test func backsOutOfABayAgainstItsHeading() throws {
        let truth = truth([.reverse(metres: 12), .halt(seconds: 5), .drive(metres: 50, limit: 5), .park(seconds: 3)])
        let backwards = try #require(truth.samples.first { $0.distance > 6 && $0.distance < 11 })
        #expect(backwards.velocity.east < -1)
        #expect(abs(try #require(truth.samples.last).place.east - 38) < 0.01)
        #expect(truth.trips.count == 1)
    }

    @Test func countsWhatWasDrivenBlind() throws {
        let truth = truth([
            .drive(metres: 300, limit: 20), .drive(metres: 1500, limit: 20).under(.tunnel),
            .drive(metres: 300, limit: 20), .park(seconds: 3),
        ])
        let trip = try #require(truth.trips.first)
        #expect(abs(trip.blindMetres - 1500) < 1e-6)
        #expect(abs(trip.metres - 2100) < 1e-6)
    }

    @Test func parksUntilTheClockTimeButNeverShorterThanTheMinimum() {
        let truth = truth([
            .park(until: 100, minimum: 10), .drive(metres: 1000, limit: 10), .park(until: 120, minimum: 10),
        ])
        #expect(truth.trips[0].departure == 100_000)
        #expect(truth.duration == truth.trips[0].standstill + 10_000)
    }

    @Test(arguments: [1000, 500, 250, 200, 100])
    func samplesAtTheAskedRate(period: Int) {
        let truth = truth([.park(seconds: 5), .drive(metres: 100, limit: 10), .park(seconds: 5)], period: period)
        #expect(truth.samples.map(\.elapsed) == truth.samples.indices.map { $0 * period })
    }

    @Test(arguments: Scenario.all.map(\.name), [1, 2, 3] as [UInt64])
    func leavesNoHaltNearTheStopTimeout(name: String, seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let legs = try #require(Scenario.named(name)).legs(&generator)
        for case .stand(let stand) in legs.map(\.motion) {
            let isParkedAtAnEnd = legs.first?.motion == .stand(stand) || legs.last?.motion == .stand(stand)
            #expect(
                stand.isParking ? stand.seconds >= 400 || isParkedAtAnEnd || name == "power-up" : stand.seconds <= 240,
                "\(name) seed \(seed): \(stand)")
        }
    }

    @Test func dayHasSevenTripsOfAboutFortyEightKilometres() {
        for seed in 1...5 as ClosedRange<UInt64> {
            var generator = SplitMix64(seed: seed)
            let truth = truth(Scenario.named("day")!.legs(&generator))
            #expect(truth.trips.count == 7, "seed \(seed)")
            #expect((40_000...56_000).contains(truth.trips.reduce(0) { $0 + $1.metres }), "seed \(seed)")
            #expect(truth.duration == 86_400_000, "seed \(seed)")
        }
    }
}
