import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct TripBookTests {
    private func time(_ seconds: Double) -> UTCTime { Script.start + .seconds(seconds) }
    private func at(_ seconds: Double) -> EventTime { .zero + .seconds(seconds) }

    private func onTrip(withoutPower: Bool = false) -> TripBook {
        var book = TripBook(restored: nil)
        book.departed(time(0), at: at(0), from: Script.origin, withoutPower: withoutPower)
        return book
    }

    @Test func aStopGivesTheTripOnce() throws {
        var book = onTrip()
        book.observe(speed: 20, max: 70)
        book.observe(speed: 99, max: 70)
        let ended = book.stopped(standstill: time(90), decided: time(390))
        let trip = try #require(ended)
        #expect(trip.start == time(0) && trip.end == time(90) && trip.maxSpeed == 20)
        let again = book.stopped(standstill: nil, decided: time(400))
        #expect(again == nil)
    }

    @Test func aHaltThatGoesOnCountsItsIdleTimeOnce() throws {
        var book = onTrip()
        let halt = MotionDetector.Moment(at: at(100), time: time(100))
        book.halted(since: halt, noise: 0)
        let fix = Fix(time: time(130), timeOfDay: 0, at: at(130), coordinate: Script.origin)
        book.resumed(from: FixRing.Entry(fix, time: time(130), at: at(130)), place: Script.origin, since: halt)
        #expect(book.halt == nil)
        book.movementWasNoise(since: halt)
        #expect(book.halt == halt)
        let ended = book.stopped(standstill: time(100), decided: time(400))
        let trip = try #require(ended)
        #expect(trip.idle == 0)
    }

    @Test func aTripWithoutPowerIsDueAsTowingUntilPowerComes() {
        #expect(onTrip().towDue == nil)
        var book = onTrip(withoutPower: true)
        #expect(book.towDue == at(120))
        book.towingSettled()
        #expect(book.towDue == nil)
    }

    @Test func aStepOfTheClockMovesTheDeparture() throws {
        var book = onTrip()
        book.fixReceived(time(3610), at: at(10), afterGap: false, clockStep: 3_600_000, isMoving: true)
        let ended = book.stopped(standstill: nil, decided: time(3700))
        let trip = try #require(ended)
        #expect(trip.start == time(3600))
    }
}

@Suite struct OdometerTests {
    /// Metres that an odometer counts of places and speeds, metres north and m/s, so many seconds apart.
    private func counted(_ places: [PlanePoint], speed: Double? = nil, interval: Double = 1) -> Double {
        var odometer = Odometer(metres: 0, gapMetres: 0)
        for (index, place) in places.enumerated() {
            let seconds = Double(index) * interval
            let (time, at) = (Script.start + .seconds(seconds), EventTime.zero + .seconds(seconds))
            let before = odometer.metres
            odometer.advance(
                to: Fix(
                    time: time, timeOfDay: time.timeOfDay, at: at, coordinate: Script.plane.coordinate(place),
                    speed: speed), time: time, at: at, speedMax: 70)
            #expect(odometer.metres >= before)
        }
        return odometer.metres
    }

    private func north(_ metres: [Double]) -> [PlanePoint] { metres.map { PlanePoint(east: 0, north: $0) } }

    @Test func withoutSpeedsNoiseMakesTheWayNoLonger() {
        var generator = SeededGenerator(seed: 7)
        var drifts = [Drift](repeating: Drift(sigma: 5, timeConstant: 8), count: 2)
        // 2 km at 5 m/s with a bend of 90 degrees in the middle.
        let places = (0..<400).map { second in
            for index in drifts.indices { drifts[index].step(1, &generator) }
            let metres = Double(second) * 5
            return PlanePoint(
                east: max(0, metres - 1000) + drifts[0].value, north: min(1000, metres) + drifts[1].value)
        }
        #expect((1900...2150).contains(counted(places)), "\(counted(places))")
    }

    /// Thrown aside and back within a drive, and by 80 m.
    @Test func aJumpCountsNothing() {
        let drive = (0..<200).map { Double($0) * 10 }
        var thrown = drive
        for index in 90..<110 { thrown[index] += 80 }
        let (clean, jumped) = (counted(north(drive)), counted(north(thrown)))
        #expect(abs(clean - 1990) < 1 && abs(jumped - clean) < 25, "\(clean) \(jumped)")
    }

    /// A motorway, seen each five seconds from its middle on: no step of it is a jump.
    @Test func aFastBeginningIsNoJump() {
        let drive = (0..<60).map { Double($0) * 150 }
        #expect(abs(counted(north(drive), interval: 5) - drive[59]) < 1)
    }

    /// The receiver reports 14 m/s, and the same place or one that trembles.
    @Test(arguments: [0.0, 2]) func aSpeedWithoutAWayCountsNothing(noise: Double) {
        let places = north((0..<300).map { noise * Double($0 % 2) })
        #expect(counted(places, speed: 14) < 20)
    }

    /// What was counted of noise is paid by the next metres, also by those of a gap.
    @Test(.bug(id: 16)) func whatWasNotSeenIsPartOfTheOdometer() {
        var odometer = Odometer(metres: 0, gapMetres: 0)
        odometer.deduct(30)
        odometer.addGap(100)
        #expect(odometer.metres == 70 && odometer.gapMetres == 70)
        odometer.add(50)
        #expect(odometer.metres == 120 && odometer.gapMetres == 70)
        odometer.set(100)
        #expect(odometer.metres == 100 && odometer.gapMetres == 0)
    }
}
