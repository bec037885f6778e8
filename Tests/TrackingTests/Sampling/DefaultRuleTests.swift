import Testing
import WaypostCore

@testable import WaypostTracking

/// As few points as needed, until a subscriber is there.
@Suite struct DefaultRuleTests {
    private static let viewer = SubscriberChange(trackable: "car", member: "ada", action: .add(nil))

    /// Two minutes straight on; a subscriber is there in the second half of the first, and then not.
    private static func drive(_ change: (inout Script) -> Void = { _ in }) -> Script {
        var script = Script.driving(30, after: 60, at: 24)
        script.happen(.subscriberChanged(viewer))
        script.drive(30)
        change(&script)
        script.happen(.subscriberChanged(SubscriberChange(trackable: "car", member: "ada", action: .remove)))
        script.drive(60)
        return script
    }

    private func rules(_ course: Course) -> [String] {
        course.effects.compactMap {
            if case .announceRule(let rule, let reason) = $0 { "\(rule.rawValue): \(reason.words)" } else { nil }
        }
    }

    @Test func aSubscriberIsFollowedByIntervalAndDisplacementAsLongAsItIsThere() throws {
        let course = Course(Self.drive(), .fewest)
        #expect(rules(course) == ["either: a subscriber watches", "track-error: nothing asks for a resolution"])
        let kept = course.records.map(\.time.seconds)
        let without = kept.filter { (80..<106).contains($0) }
        let with = kept.filter { (108..<136).contains($0) }
        let after = kept.filter { (140..<190).contains($0) }
        // 24 m in each second.
        #expect(without.count <= 2 && with.count == 28 && after.count <= 3)
        #expect(course.tracker.snapshot.rule == .trackError && course.tracker.snapshot.ruleReason == .nothingAsks)
        // The fix that waits is kept when the rule changes.
        let change = try #require(course.effects.firstIndex { if case .announceRule = $0 { true } else { false } })
        guard case .record(let before) = course.effects[..<change].last else {
            Issue.record("nothing was kept before the change")
            return
        }
        #expect(before.reason == "state-change" && abs(before.time.seconds - 106) <= 1)
    }

    @Test func oneChangeIsAnnouncedOnceHoweverManySubscribers() {
        let course = Course(
            Self.drive { script in
                for member in ["bob", "cyd"] {
                    let add = SubscriberChange(trackable: "car", member: member, action: .add(.standard))
                    script.happen(.subscriberChanged(add))
                    script.drive(5)
                    let remove = SubscriberChange(trackable: "car", member: member, action: .remove)
                    script.happen(.subscriberChanged(remove))
                }
            }, .fewest)
        #expect(rules(course).count == 2)
    }

    @Test func aRuleThatWasChosenIsNotChanged() {
        var settings = Tracker.Settings.fewest
        settings.ruleReason = .chosen
        let course = Course(Self.drive(), settings)
        #expect(rules(course).isEmpty && course.tracker.snapshot.rule == .trackError)
    }

    @Test func aBoostComesBeforeASubscriber() {
        var script = Script.driving(after: 60)
        script.happen(.boostChanged(Boost(resolution: .standard, duration: .seconds(20))))
        script.happen(.subscriberChanged(Self.viewer))
        script.drive(10)
        var course = Course(script, .fewest)
        #expect(course.tracker.snapshot.ruleReason == .boost)
        var more = Script()
        more.elapsed = script.elapsed
        more.drive(30)
        course.run(more)
        #expect(course.tracker.snapshot.ruleReason == .subscriber && course.tracker.snapshot.rule == .either)
        #expect(rules(course) == ["either: a boost"])
    }

    @Test func aBoostEndsWhileNothingAsks() {
        var script = Script.driving(30, after: 60, at: 24)
        script.happen(.boostChanged(Boost(resolution: .standard, duration: .seconds(20))))
        script.drive(80)
        let course = Course(script, .fewest)
        #expect(rules(course) == ["either: a boost", "track-error: nothing asks for a resolution"])
        let kept = course.records.map(\.time.seconds)
        #expect(kept.filter { (108..<126).contains($0) }.count == 18)
        #expect(kept.filter { (130..<180).contains($0) }.count <= 3)
    }

    @Test func aConstantEngineAsksAsLongAsItIsSet() {
        var script = Script.driving(after: 60, at: 24)
        script.happen(.engineSet(.standard))
        script.drive(30)
        script.happen(.engineSet(nil))
        script.drive(60)
        let course = Course(script, .fewest)
        #expect(
            rules(course) == ["either: an engine resolution is set", "track-error: nothing asks for a resolution"])
    }

    @Test func aReloadIsAnnouncedOnceAndOnlyWithAnotherRule() {
        var script = Script.driving(after: 60)
        for reason in [LocationSampler.RuleReason.asked(by: "a"), .asked(by: "b"), .chosen] {
            let settings = Tracker.Settings.car { $0.ruleReason = reason }
            script.happen(.settingsReloaded(settings))
            script.drive(20)
        }
        script.happen(.subscriberChanged(Self.viewer))
        script.happen(.settingsReloaded(Tracker.Settings.fewest))
        script.drive(20)
        let course = Course(script, .fewest)
        #expect(rules(course) == ["either: a resolution is asked for by a"])
        #expect(course.tracker.snapshot.ruleReason == .subscriber)
    }

    /// The state knows of no rule: what comes after a restart is kept by that of the settings.
    @Test(arguments: [true, false]) func aRestartUnderTheOtherRuleIsNoChange(isFirstFewest: Bool) throws {
        let settings = isFirstFewest ? (Tracker.Settings.fewest, Tracker.Settings.car) : (.car, Tracker.Settings.fewest)
        let script = Script.driving(45, after: 60, at: 24)
        let stored = try #require(StoredState(bytes: Course(script, settings.0).tracker.state.bytes))
        var more = Script()
        (more.north, more.speed, more.elapsed) = (script.north + 24 * 5, 24, script.elapsed + 5)
        let restart = more.elapsed
        more.drive(100)
        let course = Course(more, settings.1, restored: stored)
        #expect(rules(course).isEmpty)
        #expect(course.tracker.snapshot.rule == (isFirstFewest ? .either : .trackError))
        let kept = course.records.filter { $0.time.seconds > restart + 1 }
        #expect(isFirstFewest ? kept.count > 90 : kept.count <= 5, "\(kept.count)")
        #expect(course.recordsAreInOrder)
    }

    /// A crossing is certain some seconds after it happened, and the fixes of that time wait for it.
    @Test(arguments: [1, 2, 3]) func aCrossingIsDatedAsItWouldBeWithoutAChange(seconds: Double) throws {
        func course(changing moment: Double?) -> Course {
            var settings = Tracker.Settings.fewest
            settings.geofences.fences = [.circle("depot", north: 600, radius: 100)]
            var script = Script.driving(after: 60)
            for _ in 0..<60 {
                script.drive(1)
                if script.elapsed == moment { script.happen(.subscriberChanged(Self.viewer)) }
            }
            return Course(script, settings)
        }
        let usual = course(changing: nil).crossings
        let crossing = try #require(usual.first)
        let changed = course(changing: crossing.time.seconds + seconds)
        #expect(rules(changed) == ["either: a subscriber watches"])
        #expect(changed.crossings.map(\.time) == usual.map(\.time))
        #expect(changed.crossings.map(\.coordinate) == usual.map(\.coordinate))
        #expect(changed.recordsAreInOrder)
    }

    @Test func fewestMeansThoseOfAMovingAssetToo() {
        var settings = Tracker.Settings.car
        (settings.moving, settings.stationary) = (settings.profile, settings.profile)
        settings.keepFewest()
        let course = Course(Self.drive(), settings)
        #expect(course.tracker.snapshot.rule == .trackError)
        #expect(settings.stationary?.sampling.rule == .trackError)
    }
}
