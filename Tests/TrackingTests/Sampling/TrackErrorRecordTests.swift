import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

/// What the rule `track-error` records: a fix may be kept later than it came, and still everything stays in order.
@Suite struct TrackErrorRecordTests {
    private static func settings(
        _ change: (inout Tracker.Settings) -> Void = { _ in }
    ) -> Tracker.Settings {
        var settings = Tracker.Settings.car
        settings.sampling.rule = .trackError
        change(&settings)
        return settings
    }

    private static var fewest: Tracker.Settings {
        var settings = settings()
        settings.ruleReason = .nothingAsks
        return settings
    }

    /// Half an hour of parking, driving, halting and turning.
    private static func drive() -> Script {
        var script = Script.driving(45, after: 60)
        script.stop(50)
        script.pullAway()
        for _ in 0..<60 {
            script.east += 6
            script.drive(1)
        }
        script.drive(80, to: 20)
        script.stop(400)
        return script
    }

    private func traced(_ script: Script, _ settings: Tracker.Settings) -> (course: Course, fed: [SamplingTrace.Entry])
    {
        var course = Course(settings)
        course.tracker.samplingTrace = SamplingTrace()
        course.run(script)
        return (course, course.tracker.samplingTrace?.entries ?? [])
    }

    /// Metres: the worst fix between two records that were kept under one rule `track-error`.
    private func worstByTrackError(_ effects: [Effect], _ fed: [SamplingTrace.Entry]) -> Double {
        var spans: [[Location]] = [[]]
        var isTrackError = true
        for effect in effects {
            switch effect {
            case .announceRule(let rule, _):
                isTrackError = rule == .trackError
                spans.append([])
            case .record(let location) where location.published && isTrackError:
                spans[spans.count - 1].append(location)
            default: break
            }
        }
        return spans.map { worst($0, fed) }.max() ?? 0
    }

    /// Metres: the worst fix between two records.
    private func worst(_ records: [Location], _ fed: [SamplingTrace.Entry]) -> Double {
        var worst = 0.0
        for (begin, end) in zip(records, records.dropFirst()) {
            let a = TrackErrorTests.Fed(time: begin.time, coordinate: begin.coordinate)
            let b = TrackErrorTests.Fed(time: end.time, coordinate: end.coordinate)
            for fix in fed where fix.time > begin.time && fix.time < end.time {
                let fix = TrackErrorTests.Fed(time: fix.time, coordinate: fix.coordinate)
                worst = max(worst, TrackErrorTests.distance(fix, from: a, to: b))
            }
        }
        return worst
    }

    private func isOrdered(_ records: [Location]) -> Bool {
        zip(records, records.dropFirst()).allSatisfy { $0.time <= $1.time && $0.at <= $1.at }
    }

    @Test func keepsFewPointsAndEveryFixWithinTheBound() {
        let script = Self.drive()
        let (course, fed) = traced(script, Self.settings())
        #expect(course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(fed.count > 250)
        #expect(isOrdered(course.records) && worst(course.records, fed) <= 5.05)
        #expect(course.records.count < Course(script).records.count / 3)
        // Full records, as of their fix.
        let odometers = course.records.map(\.odometer)
        #expect(odometers == odometers.sorted() && Set(odometers).count > 10)
        #expect(course.records(.none).allSatisfy { $0.mode == .threeD && $0.trackable == "car" && $0.reason != nil })
    }

    @Test func theFixBeforeASilenceIsKeptByDeadline() {
        let script = Script.driving(40, after: 60)
        let last = script.elapsed
        var course = Course(script, Self.settings { $0.motion.gapAfter = .seconds(300) })
        let before = course.records.last?.time.seconds ?? 0
        #expect(before < last)
        course.runDeadlines(through: script.now + .seconds(31))
        let kept = course.records.last
        #expect(kept?.time.seconds == last && kept?.reason == "max-delay")
        #expect(kept.map { $0.at.seconds <= before + 1 + 30 } == true)
    }

    @Test func aGapReplacesThePendingFix() {
        var script = Script.driving(40, after: 60)
        let last = script.elapsed
        script.wait(200)
        script.north += 2400
        script.drive(60)
        let (course, fed) = traced(script, Self.settings { $0.sampling.maxDelay = .seconds(600) })
        let around = course.records.filter { abs($0.time.seconds - last) < 0.5 }
        #expect(around.map(\.event) == [.gap])
        #expect(course.records.first { $0.time.seconds > last }?.reason == "gap")
        #expect(isOrdered(course.records) && worst(course.records, fed) <= 5.05)
    }

    @Test func eventsAreInOrderBetweenThePoints() {
        var script = Script.parked(60)
        script.happen(.externalPowerChanged(true))
        script.pullAway()
        for number in 0..<40 {
            script.east += Double(number % 5) * 4
            script.drive(3)
            script.wait(0.4)
            if number % 4 == 1 { script.happen(.panicRequested) }
            if number % 10 == 3 { script.happen(.externalPowerChanged(number % 20 == 3 ? false : true)) }
            script.wait(0.6)
        }
        let (course, fed) = traced(script, Self.settings())
        #expect(course.records(.panic).count == 10 && course.records(.power).count == 4)
        #expect(isOrdered(course.records) && worst(course.records, fed) <= 5.05)
    }

    /// A crossing is certain some seconds after it happened.
    @Test func aCrossingThatIsDatedBackKeepsItsPlaceInTheTrack() throws {
        var script = Script.driving(after: 60)
        for second in 0..<40 {
            script.east += second > 20 ? 9 : 0
            script.drive(1)
            guard second == 20 || second == 30 else { continue }
            script.happen(.noFix(.void))
        }
        script.happen(.shutdown)
        var recorder = TrackRecorder(settings: Self.settings(), restored: nil)
        recorder.setResolution(.standard, at: 0)
        recorder.trace = SamplingTrace()
        var effects: [Effect] = []
        for (at, event) in script.events {
            let present = Present(at: at, odometer: 0)
            switch event {
            case .fixReceived(let fix):
                let time = try #require(fix.time)
                let context = RecordContext(
                    present: present, moving: true, odometer: 0, held: nil, power: PowerState(), activity: nil)
                recorder.fixReceived(time, at: at)
                #expect(recorder.sample(fix, time: time, late: false, opening: nil, context, &effects))
            case .noFix:
                let fed = try #require(recorder.trace?.entries)
                let crossed = fed[fed.count - 4]
                let location = Location(
                    trackable: nil, time: crossed.time, at: at, coordinate: crossed.coordinate, moving: true,
                    event: .geofence, reason: "exit")
                recorder.record(location, present, &effects)
            default:
                recorder.closeSegments(present, &effects)
            }
        }
        let records = effects.compactMap { if case .record(let location) = $0 { location } else { nil } }
        let crossings = records.filter { $0.event == .geofence }
        #expect(crossings.map { $0.at.seconds - $0.time.seconds } == [3, 3])
        #expect(isOrdered(records) && worst(records, recorder.trace?.entries ?? []) <= 5.05)
    }

    @Test(arguments: [TrackerEvent.shutdown, .flushRequested])
    func whatEndsOrMayEndKeepsTheLastFix(event: TrackerEvent) {
        var script = Script.driving(50, after: 60)
        let last = script.elapsed
        script.happen(event)
        script.happen(event)
        let course = Course(script, Self.settings())
        #expect(course.records.filter { $0.time.seconds == last }.map(\.reason) == ["state-change"])
    }

    /// What is recorded then by the old clock must not hold up what follows by the new one.
    @Test func aClockThatIsSetBackWhileAFixIsPendingEndsNoTrack() {
        var script = Self.drive()
        script.driveOff(45)
        let step = script.elapsed
        script.clockStep = -3_600_000
        script.drive(200)
        let course = Course(script, Self.settings())
        let after = course.records.filter { $0.at.seconds > step + 15 }
        #expect(course.records.contains { $0.time.seconds <= step && $0.at.seconds > step })
        #expect(course.tracker.counters.clockSteps == 1)
        #expect(after.count >= 5 && isOrdered(after))
    }

    @Test func otherSettingsBeginWithAPoint() {
        var script = Script.driving(50, after: 60)
        let changed = script.elapsed
        script.happen(.settingsReloaded(Self.settings { $0.sampling.bound = 50 }))
        script.drive(20)
        script.happen(.settingsReloaded(.car))
        script.drive(20)
        script.happen(.settingsReloaded(Self.settings()))
        script.drive(20)
        let (course, fed) = traced(script, Self.settings())
        #expect(course.records.contains { $0.time.seconds == changed && $0.reason == "state-change" })
        #expect(course.records.contains { $0.time.seconds == changed + 20 && $0.reason == "state-change" })
        // The rule before it kept no more than some: the first fix is a point.
        #expect(course.records.contains { $0.time.seconds == changed + 41 && $0.reason == "first" })
        #expect(isOrdered(course.records) && worst(course.records, fed) <= 50.05)
    }

    @Test func aHaltNeedsOnePointAndItsEndIsWhereItWas() {
        var script = Script.driving(30, after: 60)
        script.brake()
        let halt = script.elapsed
        script.stand(120)
        let away = script.elapsed
        script.driveOff(30)
        let (course, fed) = traced(script, Self.settings())
        #expect(course.story == ["-start", "+speed"])
        let within = course.records.filter { $0.time.seconds > halt + 8 && $0.time.seconds < away - 1 }
        #expect(within.count <= 1, "\(within.map(\.time.seconds))")
        #expect(course.records.count { (halt - 5...away + 5).contains($0.time.seconds) } <= 5)
        // A viewer sees it stand after the delay.
        #expect(course.records.contains { $0.time.seconds > halt - 3 && $0.at.seconds < halt + 40 })
        #expect(isOrdered(course.records) && worst(course.records, fed) <= 5.05)
        // What was taken for standing while it moved off already is not in the track.
        #expect(zip(fed, fed.dropFirst()).allSatisfy { $0.time < $1.time })
        #expect(fed.filter { $0.time.seconds > away + 2 }.allSatisfy { !$0.isHeld })
    }

    @Test func everyFixIsRecordedOnceWhereAllAreWanted() {
        var script = Self.drive()
        script.happen(.shutdown)
        let (course, fed) = traced(script, Self.settings { $0.keepEngineFixes = true })
        let recorded = course.records.filter { $0.event == .none }
        #expect(recorded.map(\.time) == recorded.map(\.time).sorted())
        #expect(Set(recorded.map(\.time)).count == recorded.count)
        #expect(recorded.contains { $0.published } && recorded.contains { !$0.published })
        // Records for themselves stand for their fix.
        let all = Set(course.records.map(\.time))
        #expect(fed.filter { !$0.isHeld && !all.contains($0.time) }.map(\.time.seconds) == [])
        let published = course.records.filter(\.published)
        #expect(worst(published, fed) <= 5.05)
        #expect(Course(script, Self.settings()).records == published)
    }

    @Test func severalTrackablesKeepTheirOwn() {
        let settings = Self.settings { $0.trackables = [Trackable(id: "car"), Trackable(id: "load")] }
        let course = Course(Self.drive(), settings)
        let car = course.records.filter { $0.trackable == "car" }
        let load = course.records.filter { $0.trackable == "load" }
        #expect(car.map(\.time) == load.map(\.time) && !car.isEmpty)
    }

    @Test func aRestartBeginsASegment() throws {
        var script = Script.driving(50, after: 60)
        let course = Course(script, Self.settings())
        let restart = script.elapsed + 20
        script = Script()
        (script.elapsed, script.north, script.speed) = (restart, 900, 12)
        script.drive(40)
        let again = Course(script, Self.settings(), restored: course.tracker.state)
        let reasons = again.records.prefix(2).map { "\($0.event.rawValue) \($0.reason ?? "")" }
        #expect(reasons == ["gap restart", "none gap"])
        #expect(again.records[1].time.seconds == restart + 1)
    }

    /// Drives of chance: noise, leaps, halts, gaps, power, panic, and whatever changes the rule, at several rates.
    @Test(arguments: [0.2, 1, 5])
    func anyDriveIsInOrderAndWithinTheBound(rate: Double) {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        var changes = 0
        for round in 0..<12 {
            var script = Script(rate: rate)
            script.stand(60)
            for _ in 0..<25 {
                script.offset = PlanePoint(
                    east: Double.random(in: -3...3, using: &random), north: Double.random(in: -3...3, using: &random))
                switch Int.random(in: 0..<18, using: &random) {
                case 0: script.brake()
                case 1: script.stand(Double.random(in: 5...90, using: &random))
                case 2: script.wait(Double.random(in: 1...100, using: &random))
                case 3: script.happen(.panicRequested)
                case 4: script.happen(.externalPowerChanged(Bool.random(using: &random)))
                case 5: script.east += 45
                case 6: script.happen(.paceRequested(.stationary))
                case 7: script.happen(.settingsReloaded(Self.fewest))
                case 8, 9:
                    let action: SubscriberChange.Action = Bool.random(using: &random) ? .add(nil) : .remove
                    script.happen(
                        .subscriberChanged(SubscriberChange(trackable: "car", member: "ada", action: action)))
                case 10:
                    script.happen(.boostChanged(Boost(resolution: .standard, duration: .seconds(20))))
                case 11: script.happen(.engineSet(Bool.random(using: &random) ? .standard : nil))
                case 12: script.happen(.flushRequested)
                default:
                    let speed = Double.random(in: 3...25, using: &random)
                    for _ in 0..<Int.random(in: 3...12, using: &random) {
                        script.east += Double.random(in: -4...4, using: &random)
                        script.drive(max(1, 1 / rate), to: speed)
                    }
                }
            }
            script.stand(30)
            script.happen(.shutdown)
            for beside in [false, true] {
                var settings = Self.fewest
                settings.keepEngineFixes = beside
                let (course, fed) = traced(script, settings)
                #expect(isOrdered(course.records.filter(\.published)), "seed \(seed), round \(round)")
                #expect(worstByTrackError(course.effects, fed) <= 5.05, "seed \(seed), round \(round)")
                changes += course.effects.count { if case .announceRule = $0 { true } else { false } }
            }
        }
        #expect(changes > 24)
    }
}
