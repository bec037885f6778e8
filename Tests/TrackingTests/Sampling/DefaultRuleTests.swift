import Positioning
import Testing

@testable import Tracking

/// As few points as needed, until a subscriber is there.
@Suite struct DefaultRuleTests {
    private static var fewest: Tracker.Settings {
        var settings = Tracker.Settings.car
        settings.keepFewest()
        return settings
    }

    private static let viewer = SubscriberChange(trackable: "car", member: "ada", action: .add(nil))

    /// Two minutes straight on; a subscriber is there in the second half of the first, and then not.
    private static func drive(_ change: (inout Script) -> Void = { _ in }) -> Script {
        var script = Script()
        script.stand(60)
        script.pullAway(to: 24)
        script.drive(30)
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

    @Test func aSubscriberIsFollowedByIntervalAndDisplacementAsLongAsItIsThere() {
        let course = Course(Self.drive(), Self.fewest)
        #expect(rules(course) == ["either: a subscriber watches", "track-error: nothing asks for a resolution"])
        let kept = course.records.map(\.time.seconds)
        let without = kept.filter { (80..<106).contains($0) }
        let with = kept.filter { (108..<136).contains($0) }
        let after = kept.filter { (140..<190).contains($0) }
        // 24 m in each second.
        #expect(without.count <= 2 && with.count == 28 && after.count <= 3)
        #expect(course.tracker.snapshot.rule == .trackError && course.tracker.snapshot.ruleReason == .nothingAsks)
    }

    @Test func theFixThatWaitsIsKeptWhenTheRuleChanges() throws {
        let course = Course(Self.drive(), Self.fewest)
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
            }, Self.fewest)
        #expect(rules(course).count == 2)
    }

    @Test func aRuleThatWasChosenIsNotChanged() {
        var settings = Self.fewest
        settings.ruleReason = .chosen
        let course = Course(Self.drive(), settings)
        #expect(rules(course).isEmpty && course.tracker.snapshot.rule == .trackError)
    }

    @Test func aBoostComesBeforeASubscriber() {
        var script = Script()
        script.stand(60)
        script.pullAway()
        script.happen(.boostChanged(Boost(resolution: .standard, duration: .seconds(20))))
        script.happen(.subscriberChanged(Self.viewer))
        script.drive(10)
        var course = Course(script, Self.fewest)
        #expect(course.tracker.snapshot.ruleReason == .boost)
        var more = Script()
        more.elapsed = script.elapsed
        more.drive(30)
        course.run(more)
        #expect(course.tracker.snapshot.ruleReason == .subscriber && course.tracker.snapshot.rule == .either)
        #expect(rules(course) == ["either: a boost"])
    }

    @Test func aBoostEndsWhileNothingAsks() {
        var script = Script()
        script.stand(60)
        script.pullAway(to: 24)
        script.drive(30)
        script.happen(.boostChanged(Boost(resolution: .standard, duration: .seconds(20))))
        script.drive(80)
        let course = Course(script, Self.fewest)
        #expect(rules(course) == ["either: a boost", "track-error: nothing asks for a resolution"])
        let kept = course.records.map(\.time.seconds)
        #expect(kept.filter { (108..<126).contains($0) }.count == 18)
        #expect(kept.filter { (130..<180).contains($0) }.count <= 3)
    }

    @Test func aConstantEngineAsksAsLongAsItIsSet() {
        var script = Script()
        script.stand(60)
        script.pullAway(to: 24)
        script.happen(.engineSet(.standard))
        script.drive(30)
        script.happen(.engineSet(nil))
        script.drive(60)
        let course = Course(script, Self.fewest)
        #expect(
            rules(course) == ["either: an engine resolution is set", "track-error: nothing asks for a resolution"])
    }

    @Test func aReloadIsAnnouncedOnceAndOnlyWithAnotherRule() {
        var script = Script()
        script.stand(60)
        script.pullAway()
        for reason in [LocationSampler.RuleReason.asked(by: "a"), .asked(by: "b"), .chosen] {
            var settings = Tracker.Settings.car
            settings.ruleReason = reason
            script.happen(.settingsReloaded(settings))
            script.drive(20)
        }
        script.happen(.subscriberChanged(Self.viewer))
        script.happen(.settingsReloaded(Self.fewest))
        script.drive(20)
        let course = Course(script, Self.fewest)
        #expect(rules(course) == ["either: a resolution is asked for by a"])
        #expect(course.tracker.snapshot.ruleReason == .subscriber)
    }

    /// The state knows of no rule: what comes after a restart is kept by that of the settings.
    @Test(arguments: [true, false]) func aRestartUnderTheOtherRuleIsNoChange(isFirstFewest: Bool) throws {
        let settings = isFirstFewest ? (Self.fewest, Tracker.Settings.car) : (.car, Self.fewest)
        var script = Script()
        script.stand(60)
        script.pullAway(to: 24)
        script.drive(45)
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
        #expect(zip(course.records, course.records.dropFirst()).allSatisfy { $0.time <= $1.time })
    }

    /// A crossing is certain some seconds after it happened, and the fixes of that time wait for it.
    @Test(arguments: [1, 2, 3]) func aCrossingIsDatedAsItWouldBeWithoutAChange(seconds: Double) throws {
        func course(changing moment: Double?) -> Course {
            var settings = Self.fewest
            settings.geofences.fences = [.circle("depot", north: 600, radius: 100)]
            var script = Script()
            script.stand(60)
            script.pullAway()
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
        #expect(zip(changed.records, changed.records.dropFirst()).allSatisfy { $0.time <= $1.time })
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
