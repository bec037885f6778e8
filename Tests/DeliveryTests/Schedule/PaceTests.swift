import Positioning
import Testing

@testable import Delivery

@Suite struct PaceTests {
    private func settings(_ size: Int, window: Int64 = 60) -> EndpointSettings {
        EndpointSettings(
            baseURL: "https://fleet.example", device: "van", batchSize: size, batchWindow: .seconds(window))
    }

    private func at(_ seconds: Int64) -> EventTime { EventTime.zero + .seconds(seconds) }

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
    @Test func whatWasLearntOfTheServerCountsUntilAReload() throws {
        var schedule = DeliverySchedule(settings: settings(100), inFlight: [.init(id: "a", rows: 100)], at: at(0))
        _ = schedule.attemptStarted("a", at: at(0))
        schedule.compressionUsed(true)
        _ = schedule.attemptFinished(.encodingRefused(), jitter: 0, at: at(1))
        #expect(!schedule.gzip)
        _ = schedule.attemptStarted("a", at: at(1))
        _ = schedule.attemptFinished(.tooLarge(status: 413, after: nil), jitter: 0, at: at(2))
        #expect(schedule.limit == 50)
        schedule.reloaded(settings(100), at: at(3))
        #expect(schedule.gzip && schedule.limit == 100)
    }

    /// What the server asked for stays.
    @Test(arguments: [nil, 600]) func aReloadEndsTheOwnBackOff(asked: Int64?) {
        var schedule = DeliverySchedule(settings: settings(100), inFlight: [.init(id: "a", rows: 3)], at: at(0))
        for second in stride(from: Int64(0), through: 9000, by: 3000) {
            _ = schedule.attemptStarted("a", at: at(second))
            _ = schedule.attemptFinished(
                .retry(.status(503), after: asked.map { .seconds($0) }), jitter: 0.9, at: at(second + 1))
        }
        let waits = schedule.next(at: at(9002))
        #expect(waits != .send(batch: "a"))
        schedule.reloaded(settings(100), at: at(9002))
        #expect(schedule.next(at: at(9002)) == (asked == nil ? .send(batch: "a") : waits))
    }
}
