import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

@Suite struct PaceTests {
    private func settings(_ size: Int, window: Int64 = 60) -> EndpointSettings {
        EndpointSettings(
            baseURL: "https://fleet.example", device: "van", batchSize: size, batchWindow: .seconds(window))
    }

    @Test func aSmallerBatchIsDueAtOnce() {
        var schedule = DeliverySchedule(settings: settings(100), at: at(0))
        schedule.rowsRecorded(5, at: at(1))
        #expect(schedule.next(at: at(2)) == .wait(until: at(61)))
        schedule.reloaded(settings(5), at: at(2))
        #expect(schedule.next(at: at(2)) == .form(limit: 5))
    }

    @Test func aShorterWindowCountsFromTheOldestRow() {
        var schedule = DeliverySchedule(settings: settings(100), at: at(0))
        schedule.rowsRecorded(1, at: at(1))
        schedule.reloaded(settings(100, window: 10), at: at(2))
        #expect(schedule.next(at: at(2)) == .wait(until: at(11)))
        schedule.reloaded(settings(100, window: 3600), at: at(12))
        #expect(schedule.next(at: at(12)) == .wait(until: at(3601)))
    }

    @Test func whatDecidesWhoseRowsTheseAreStays() {
        var other = settings(7)
        other.baseURL = "https://other.example"
        other.device = "bus"
        other.feed = .engine
        var schedule = DeliverySchedule(settings: settings(100), at: at(0))
        schedule.reloaded(other, at: at(1))
        #expect(schedule.settings == settings(7))
    }

    /// delivery.md 9 and 10: until the configuration is read again.
    @Test func whatWasLearntOfTheServerCountsUntilAReload() {
        var schedule = DeliverySchedule(settings: settings(100), inFlight: [.init(id: "a", rows: 100)], at: at(0))
        schedule.tries("a", .encodingRefused(), .init(wasCompressed: true), at: at(1))
        #expect(!schedule.compresses("a", at: at(1)))
        schedule.tries("a", .tooLarge(status: 413, after: nil), at: at(2))
        #expect(schedule.limit == 50)
        schedule.reloaded(settings(100), at: at(3))
        #expect(schedule.compresses("a", at: at(3)) && schedule.limit == 100)
    }

    /// What the server asked for stays.
    @Test(arguments: [nil, 600]) func aReloadEndsTheOwnBackOff(asked: Int64?) {
        var schedule = DeliverySchedule(settings: settings(100), inFlight: [.init(id: "a", rows: 3)], at: at(0))
        let failed = Verdict.retry(.status(503), after: asked.map { Duration.seconds($0) })
        for second in [1, 3001, 6001, 9001] as [Double] { schedule.tries("a", failed, jitter: 0.9, at: at(second)) }
        let waits = schedule.next(at: at(9002))
        #expect(waits != .send(batch: "a"))
        schedule.reloaded(settings(100), at: at(9002))
        #expect(schedule.next(at: at(9002)) == (asked == nil ? .send(batch: "a") : waits))
    }
}
