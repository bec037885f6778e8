import Positioning
import Testing

@testable import Tracking

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
