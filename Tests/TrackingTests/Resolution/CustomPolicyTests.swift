import Testing
import WaypostCore
import WaypostTracking

/// A policy of the user's own, written against what the library makes public.
private struct ChessClock: ResolutionPolicy {
    /// Every second network resolution of a watched trackable is fine.
    var isFine = false
    var added: [String] = []

    func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
        guard case .custom(let values)? = request.trackable.constraints, case .number(let ms)? = values["interval"]
        else {
            return request.defaultResolution
        }
        var resolution = request.defaultResolution
        resolution.intervalMs = Int64(ms)
        if isFine { resolution.priority = .maximum }
        if request.near { resolution.displacement = .nan }
        return resolution
    }

    func engineResolution(of networkResolutions: [Resolution], default: Resolution) -> Resolution {
        Resolution(priority: .low, intervalMs: -5, displacement: Double(networkResolutions.count))
    }

    func accepts(_ constraints: ResolutionConstraints) -> Bool {
        if case .custom(let values) = constraints { values["interval"] != nil } else { false }
    }

    mutating func trackableAdded(_ trackable: Trackable) -> [PolicyEffect] {
        added.append(trackable.id)
        return [.watchProximity(trackable: trackable.id, Proximity(spatial: 400)), .recomputeAll]
    }

    mutating func subscriberAdded(_ member: String, to trackable: Trackable) -> [PolicyEffect] {
        isFine.toggle()
        return [.recompute(trackables: [trackable.id, "unheard of"])]
    }

    /// The level of the battery does not matter to it.
    mutating func batteryChanged(percent: Double?) -> [PolicyEffect] { [] }
}

@Suite struct CustomPolicyTests {
    private func settings(_ trackables: [Trackable]) -> Tracker.Settings {
        var settings = Tracker.Settings(trackables: trackables)
        settings.motion.heartbeat = .zero
        settings.policy = ChessClock()
        return settings
    }

    private func load(_ id: String, _ interval: Double, destination: Coordinate? = nil) -> Trackable {
        Trackable(id: id, destination: destination, constraints: .custom(["interval": .number(interval)]))
    }

    private func watch(_ member: String, _ trackable: String) -> TrackerEvent {
        .subscriberChanged(SubscriberChange(trackable: trackable, member: member, action: .add(nil)))
    }

    @Test func decidesInsteadOfTheDefaultPolicy() {
        var script = Script()
        script.happen(watch("x", "a"))
        script.happen(watch("y", "b"))
        script.happen(.batteryChanged(percent: 3, charging: nil))
        let course = Course(script, settings([load("a", 7000), load("b", 8000)]))
        #expect(course.announced.map(\.trackable) == ["a", "b", "a"])
        #expect(course.announced.map(\.resolution.priority) == [.balanced, .balanced, .maximum])
        // What cannot be obeyed is put right.
        #expect(course.engine == [Resolution(priority: .low, intervalMs: 0, displacement: 2)])
    }

    @Test func isAskedAgainOnlyForWhatItNames() {
        var script = Script()
        script.happen(watch("x", "a"))
        script.happen(watch("y", "unheard of"))
        script.happen(watch("x", "a"))
        let course = Course(script, settings([load("a", 7000), load("b", 8000)]))
        // b would be fine too, if it were asked for; an update of a present subscriber does not change the policy.
        #expect(course.tracker.snapshot.trackables.map(\.resolution.priority) == [.maximum, .balanced])
        script.happen(.refreshRequested)
        #expect(
            Course(script, settings([load("a", 7000), load("b", 8000)])).tracker.snapshot.trackables
                .map(\.resolution.priority) == [.maximum, .maximum])
    }

    @Test func watchesNearnessWithAThresholdOfItsOwn() {
        let course = Course(
            Script.driving(100, after: 100), settings([load("a", 7000, destination: Script.place(north: 1000))]))
        #expect(course.announced.map(\.resolution.displacement) == [10, 0])
    }

    @Test func outlivesAReload() {
        var script = Script()
        script.happen(watch("x", "a"))
        var reloaded = Tracker.Settings(trackables: [load("a", 7000), load("c", 9000)])
        reloaded.motion.heartbeat = .zero
        script.happen(.settingsReloaded(reloaded))
        let course = Course(script, settings([load("a", 7000), load("b", 8000)]))
        #expect(course.tracker.snapshot.trackables.map(\.resolution.intervalMs) == [7000, 9000])
        #expect(course.tracker.snapshot.trackables.map(\.resolution.priority) == [.maximum, .maximum])
    }

    @Test func aPolicyThatSaysNothingMoreIsAskedAtEveryChange() {
        struct Bare: ResolutionPolicy {
            func networkResolution(for request: TrackableResolutionRequest) -> Resolution {
                var resolution = request.defaultResolution
                resolution.intervalMs = Int64(request.circumstances.batteryPercent ?? 0)
                return resolution
            }
        }
        var settings = Tracker.Settings.car
        settings.policy = Bare()
        settings.motion.heartbeat = .zero
        var script = Script()
        for percent in [70, 69, 69, nil] { script.happen(.batteryChanged(percent: percent, charging: nil)) }
        #expect(Course(script, settings).intervals() == [0, 70, 69, 0])
    }

    @Test func constraintsThatAPolicyCannotReadAreRefused() {
        #expect(settings([load("a", 1)]).problems == [])
        #expect(settings([Trackable(id: "a", constraints: .custom(["colour": .text("red")]))]).problems.count == 1)
        #expect(settings([Trackable(id: "a", constraints: .default(.init()))]).problems.count == 1)
        // Ours take no others than ours, with and without rules.
        var ours = Tracker.Settings(trackables: [load("a", 1), Trackable(id: "b", constraints: .default(.init()))])
        #expect(ours.problems == ["trackable a has constraints that the resolution policy cannot read"])
        ours.resolution.rules = [ResolutionRule()]
        #expect(ours.problems.count == 1)
    }
}
