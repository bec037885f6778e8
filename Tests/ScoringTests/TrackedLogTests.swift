import DriveSimulation
import Scoring
import Testing
import WaypostTracking

@Suite struct TrackedLogTests {
    @Test func demoDriveIsTwoTrips() throws {
        let scenario = try #require(Scenario.named("demo"))
        var drive = SimulatedDrive(scenario, settings: .init(seed: 7, preset: .open))
        let tracked = TrackedLog(
            drive.allBytes(), settings: Tracker.Settings(trackables: [Trackable(id: "asset")]))
        #expect(tracked.motionChanges.map(\.moving) == [false, true, false, true, false])
        #expect(tracked.locations.last?.odometer == tracked.tracker.state.odometer)
    }
}
