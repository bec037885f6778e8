import DriveSimulation
import Testing
import WaypostCore
import WaypostTracking

@Suite("Tutorial: Write your own resolution policy") struct TutorialTests {
    @Test func theVanIsFollowedCloselyOnlyNearTheCustomer() throws {
        let scenario = try #require(Scenario.named("demo"))
        var drive = SimulatedDrive(scenario, settings: .init(seed: 1, preset: .open))
        let end = try #require(drive.truth.samples.last).place
        let customer = LocalPlane(origin: drive.settings.origin).coordinate(end)
        let locations = publishedLocations(of: drive.allBytes(), customer: customer)
        let track = locations.filter { $0.event == .none }
        let near = track.count { $0.coordinate.distance(to: customer) < 400 }
        #expect(near > 20)
        #expect(track.count - near < 30)
    }

    @Test func aLowBatteryDoublesTheInterval() {
        var policy = VanPolicy()
        let request = TrackableResolutionRequest(trackable: Trackable(id: "van-7"))
        #expect(policy.networkResolution(for: request).intervalMs == 60_000)
        let effects = [policy.batteryChanged(percent: 19), policy.batteryChanged(percent: 18)]
        #expect(effects == [[.recomputeAll], []])
        #expect(policy.networkResolution(for: request).intervalMs == 120_000)
    }

    @Test func constraintsWithoutTheDistanceAreRefused() {
        #expect(!VanPolicy().accepts(.custom(["far": .number(1)])))
    }
}
