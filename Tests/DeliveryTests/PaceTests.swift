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
        schedule.paceChanged(to: settings(5))
        #expect(schedule.next(at: at(2)) == .form(limit: 5))
    }

    @Test func aShorterWindowCountsFromTheOldestRow() {
        var schedule = DeliverySchedule(settings: settings(100), at: at(0))
        schedule.rowsRecorded(1, at: at(1))
        schedule.paceChanged(to: settings(100, window: 10))
        #expect(schedule.next(at: at(2)) == .wait(until: at(11)))
        schedule.paceChanged(to: settings(100, window: 3600))
        #expect(schedule.next(at: at(12)) == .wait(until: at(3601)))
    }

    @Test func whatDecidesWhoseRowsTheseAreStays() {
        var other = settings(7)
        other.baseURL = "https://other.example"
        other.device = "bus"
        other.feed = .engine
        var schedule = DeliverySchedule(settings: settings(100), at: at(0))
        schedule.paceChanged(to: other)
        #expect(schedule.settings == settings(7))
    }
}
