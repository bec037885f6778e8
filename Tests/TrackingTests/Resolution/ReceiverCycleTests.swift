import Testing
import WaypostCore
import WaypostTracking

@Suite struct ReceiverCycleTests {
    private static var sleeping: Tracker.Settings { .car { $0.receiver.sleep = true } }

    /// Event times at which the receiver was put to sleep (`zzz`, and until when) and woken.
    private struct Turn: Equatable, CustomStringConvertible {
        var at: Double
        var until: Double?
        var wakes: Bool

        var description: String { "\(at): \(wakes ? "wake" : "sleep until \(until.map { "\($0)" } ?? "woken")")" }

        static func sleep(_ at: Double, until: Double?) -> Turn { Turn(at: at, until: until, wakes: false) }
        static func wake(_ at: Double) -> Turn { Turn(at: at, until: nil, wakes: true) }
    }

    /// A receiver that obeys: it reports the fixes of the script only while it is awake, the first after `acquisition`
    /// seconds (nil = none).
    private struct Obedient {
        var course: Course
        var turns: [Turn] = []
        private var awakeSince: Double? = -1000
        private var acquisition: Double?

        init(
            _ script: Script, _ settings: Tracker.Settings, restored: StoredState? = nil, acquisition: Double? = 5
        ) {
            course = Course(settings, restored: restored)
            self.acquisition = acquisition
            run(script)
        }

        private mutating func run(_ script: Script) {
            for (at, event) in script.events {
                while let due = course.tracker.nextDeadline, due < at { happen(.deadlineReached, at: due) }
                if case .fixReceived = event {
                    guard let awakeSince, let acquisition, at.seconds - awakeSince >= acquisition else { continue }
                }
                happen(event, at: at)
            }
        }

        mutating func handle(_ event: TrackerEvent, at seconds: Double) {
            happen(event, at: EventTime(nanoseconds: Int64(seconds * 1e9)))
        }

        mutating func wait(until end: Double) {
            let end = EventTime(nanoseconds: Int64(end * 1e9))
            while let due = course.tracker.nextDeadline, due <= end { happen(.deadlineReached, at: due) }
        }

        private mutating func happen(_ event: TrackerEvent, at: EventTime) {
            for effect in course.handle(event, at: at) {
                switch effect {
                case .sleepReceiver(let until):
                    awakeSince = nil
                    turns.append(.sleep(at.seconds, until: until?.seconds))
                case .wakeReceiver:
                    awakeSince = at.seconds
                    turns.append(.wake(at.seconds))
                default: break
                }
            }
        }
    }

    @Test func wakesForWhoeverAsksWhereItIs() throws {
        var script = Script.parked(400)
        script.happen(.locateRequested)
        script.stand(300)
        let receiver = Obedient(script, Self.sleeping, acquisition: 30)
        #expect(receiver.turns == [.sleep(330, until: 630), .wake(400), .sleep(460, until: 760)])
        let located = try #require(receiver.course.records(.requested).first)
        #expect(located.at.seconds == 430 && located.reason == "located" && !located.moving)
        #expect(receiver.course.records(.requested).count == 1)
        #expect(receiver.course.story == ["-start"])
    }

    @Test func staysAwakeForWhoeverAsks() {
        var script = Script.parked(329)
        script.happen(.locateRequested)
        script.wait(5)
        script.stand(100)
        let receiver = Obedient(script, Self.sleeping)
        #expect(receiver.turns.first?.at == 389)
        #expect(receiver.course.records(.requested).count == 1)
    }

    @Test func nobodyWaitsForAFixForEver() {
        var script = Script.parked(400)
        script.happen(.locateRequested)
        script.stand(300)
        let receiver = Obedient(script, Self.sleeping, acquisition: 70)
        #expect(receiver.course.records(.requested).isEmpty)
        // Outside the hours nobody is told.
        script = Script.parked(50)
        script.happen(.timeWindowChanged(.tracking, open: false))
        script.happen(.locateRequested)
        script.stand(50)
        let outside = Obedient(script, Self.sleeping)
        #expect(outside.course.records(.requested).isEmpty)
    }

    @Test func anIntervalThatIsTooLongIsShortenedUntilThen() {
        let slow = Resolution(priority: .low, intervalMs: 300_000, displacement: 1000)
        var course = Course(Script.parked(50), .car { $0.resolution.default = slow })
        let at = EventTime(nanoseconds: 51_000_000_000)
        func asked(_ effects: [Effect]) -> [Int64] {
            effects.compactMap { if case .setReceiver(let resolution) = $0 { resolution.intervalMs } else { nil } }
        }
        #expect(asked(course.handle(.locateRequested, at: at)) == [1000])
        #expect(asked(course.handle(.locateRequested, at: at)) == [])
        let usual = course.tracker.snapshot.engine.intervalMs
        #expect(asked(course.handle(.deadlineReached, at: at + .seconds(61))) == [usual])
    }

    @Test func sleepsAndProbesWhileParked() {
        let receiver = Obedient(Script.parked(1500), Self.sleeping)
        // Settled at 30 s. A probe ends 30 s after its first fix, which comes 5 s after it began.
        #expect(
            receiver.turns == [
                .sleep(330, until: 630), .wake(630), .sleep(665, until: 965), .wake(965), .sleep(1000, until: 1300),
                .wake(1300), .sleep(1335, until: 1635),
            ])
        #expect(receiver.course.story == ["-start"])
    }

    private static func followed(every seconds: Int64) -> Tracker.Settings {
        .car {
            $0.receiver.sleepMoving = true
            $0.resolution.default = Resolution(priority: .low, intervalMs: seconds * 1000, displacement: 1000)
        }
    }

    private static var longDrive: Script { Script.driving(2400, after: 60) }

    @Test func sleepsBetweenTheFixesOfACoarseTrack() throws {
        let receiver = Obedient(Self.longDrive, Self.followed(every: 300))
        #expect(receiver.course.changes.map(\.moving) == [false, true])
        let departed = try #require(receiver.course.changes.last).at.seconds
        // Settled for 5 min; at first a cold start is expected to take 30 s, then it is known to take 5.
        let sleeps = receiver.turns.filter { !$0.wakes }
        let wakes = receiver.turns.filter(\.wakes)
        #expect(sleeps.first?.at == departed + 300)
        #expect(sleeps.first?.until == departed + 300 + 270)
        #expect(wakes.first?.at == departed + 570)
        // Awake for 30 s from the first fix on, which comes 300 s after the one before.
        let fixes = wakes.map { $0.at + 5 }
        #expect(fixes.count >= 5)
        #expect(zip(fixes, fixes.dropFirst()).dropFirst().allSatisfy { $1 - $0 == 300 })
        #expect(zip(fixes, sleeps.dropFirst()).allSatisfy { $1.at - $0 == 30 })
        // Silence that was ordered is not recorded.
        #expect(receiver.course.records(.gap).isEmpty && receiver.course.tracker.counters.gaps == 0)
        #expect(receiver.course.records.filter { $0.at.seconds > departed + 600 }.count >= 5)
    }

    @Test func staysAwakeWhereTheIntervalIsNotFarAboveTheTimeToAFix() {
        for seconds in [10, 59, 149] as [Int64] {
            let receiver = Obedient(Self.longDrive, Self.followed(every: seconds))
            #expect(receiver.turns.isEmpty, "\(seconds)")
        }
    }

    @Test func aHaltIsWatchedToItsEnd() throws {
        var script = Self.longDrive
        script.stop(900)
        let receiver = Obedient(script, Self.followed(every: 300))
        #expect(receiver.course.changes.map(\.moving) == [false, true, false])
        // Parked it stays awake: that is for another setting to decide.
        let stopped = try #require(receiver.course.changes.last).at.seconds
        #expect(receiver.turns.allSatisfy { $0.at < stopped })
        #expect(receiver.turns.last?.wakes == true)
    }

    @Test func aViewerWakesItAtOnce() throws {
        var receiver = Obedient(Self.longDrive, Self.followed(every: 300))
        while receiver.turns.last?.wakes != false {
            receiver.wait(until: try #require(receiver.course.tracker.nextDeadline).seconds)
        }
        let at = try #require(receiver.turns.last).at + 50
        receiver.handle(
            .boostChanged(
                Boost(
                    resolution: Resolution(priority: .high, intervalMs: 1000, displacement: 0), duration: .seconds(60))),
            at: at)
        #expect(receiver.turns.last == .wake(at))
    }

    @Test func sleepNeverEndsATrip() {
        var receiver = Obedient(Self.longDrive, Self.followed(every: 36_000))
        receiver.wait(until: 4000)
        let naps = receiver.turns.filter { !$0.wakes }
        #expect(!naps.isEmpty && naps.allSatisfy { ($0.until ?? .infinity) - $0.at <= 900 })
    }

    @Test func silenceInSleepIsNoGapAndHeartbeatsDoNotWakeIt() {
        var settings = Self.sleeping
        settings.receiver.probe = .seconds(3600)
        var receiver = Obedient(Script.parked(331), settings)
        receiver.wait(until: 3900)
        let course = receiver.course
        #expect(receiver.turns == [.sleep(330, until: 3930)])
        #expect(course.records(.gap).isEmpty && course.tracker.counters.gaps == 0 && !course.tracker.snapshot.inGap)
        #expect(course.records(.heartbeat).map(\.at.seconds) == [630, 1230, 1830, 2430, 3030, 3630])
        #expect(course.records(.heartbeat).map(\.reason).dropFirst().allSatisfy { $0 == "no-fix" })
        #expect(course.tracker.snapshot.receiverSleep == .until(EventTime(nanoseconds: 3_930_000_000_000)))
    }

    @Test func aProbeWithoutSkyIsGivenUpAndIsAGap() {
        var receiver = Obedient(Script.parked(331), Self.sleeping)
        receiver.wait(until: 1500)
        #expect(
            receiver.turns == [
                .sleep(330, until: 630), .wake(630), .sleep(750, until: 1050), .wake(1050), .sleep(1170, until: 1470),
                .wake(1470),
            ])
        // Silent for a minute of being awake; the next one is within the heartbeat.
        #expect(receiver.course.records(.gap).map(\.at.seconds) == [690])
    }

    @Test func aProbeFindsTheAssetDrivingAndStaysAwake() throws {
        let receiver = Obedient(Script.driving(600, after: 400), Self.sleeping)
        #expect(receiver.course.changes.map(\.moving) == [false, true])
        #expect(receiver.turns == [.sleep(330, until: 630), .wake(630)])
        #expect(try #require(receiver.course.changes.last).at.seconds <= 630 + 5 + 20)
        #expect(receiver.course.tracker.snapshot.receiverSleep == nil)
    }

    @Test func aProbeThatHintsAtADepartureIsProlonged() {
        // Off by 60 m without any speed from 600 s on: outside, but no evidence.
        var script = Script.parked(600)
        script.offset.east = 60
        script.stand(75)
        script.offset = .zero
        script.stand(25)
        let receiver = Obedient(script, Self.sleeping)
        #expect(receiver.turns == [.sleep(330, until: 630), .wake(630), .sleep(695, until: 995)])
        #expect(receiver.course.story == ["-start"])
    }

    @Test func wakesAtOnceOnPowerMovementAndPace() {
        let happenings: [(TrackerEvent, wake: Double?)] = [
            (.movementSourceChanged(source: "gpio", moving: true), 400), (.externalPowerChanged(true), 403),
            (.paceRequested(.moving), 400),
            // A report of no movement, or `pace stationary` while parked, is no reason.
            (.movementSourceChanged(source: "gpio", moving: false), nil), (.paceRequested(.stationary), nil),
        ]
        for (event, wake) in happenings {
            var script = Script()
            script.happen(.externalPowerChanged(false))
            script.stand(400)
            script.happen(event)
            script.stand(100)
            let turns = [.sleep(330, until: 630)] + (wake.map { [Turn.wake($0)] } ?? [])
            #expect(Obedient(script, Self.sleeping).turns == turns, "\(event)")
        }
    }

    @Test func sleepsAgainAfterARousingThatCameToNothing() {
        var script = Script.parked(400)
        script.happen(.movementSourceChanged(source: "gpio", moving: true))
        script.stand(400)
        let receiver = Obedient(script, Self.sleeping)
        #expect(receiver.turns == [.sleep(330, until: 630), .wake(400), .sleep(700, until: 1000)])
    }

    @Test func fixesOfAReceiverThatCannotSleepAreTrackedAsUsual() {
        var script = Script.parked(900)
        script.trip(metres: 3000, stand: 400)
        let restless = Course(script, Self.sleeping)
        let usual = Course(script)
        #expect(restless.records == usual.records && restless.changes == usual.changes)
    }

    @Test func paceMovingFromSleepIsNotTakenBackByTheSilenceBefore() {
        var settings = Self.sleeping
        settings.receiver.probe = .seconds(7200)
        var script = Script.parked(5000)
        script.happen(.paceRequested(.moving))
        script.stand(200)
        script.trip(metres: 2000)
        let receiver = Obedient(script, settings)
        #expect(receiver.course.story == ["-start", "+pace"])
    }

    @Test func paceMovingWithoutASkyLastsForTheNoFixTimeout() {
        var script = Script.parked(100)
        script.void(4000)
        script.happen(.paceRequested(.moving))
        var course = Course(script)
        #expect(course.story == ["-start", "+pace"])
        course.runDeadlines(through: script.now + .seconds(1799))
        #expect(course.story == ["-start", "+pace"])
        course.runDeadlines(through: script.now + .seconds(1800))
        #expect(course.story == ["-start", "+pace", "-no-fix"])
        let changes = course.changes
        #expect(changes[2].since == changes[1].since)
    }

    @Test func aReleasedReceiverIsReleasedAgainOnceItWasFound() {
        var script = StopTests.arrived()
        script.stand(600)
        let asked = script.elapsed
        script.happen(.locateRequested)
        script.stand(600)
        let receiver = Obedient(script, .releasing)
        let stop = receiver.course.changes.last?.at.seconds ?? 0
        #expect(
            receiver.turns == [
                .sleep(stop, until: nil), .wake(asked), .sleep(asked + 35, until: nil),
            ])
        #expect(receiver.course.records(.requested).count == 1)
        #expect(receiver.course.tracker.state.released)
    }

    @Test func stopOnStationaryReleasesTheReceiverUntilPaceMoving() {
        var script = StopTests.arrived()
        script.stand(3600)
        script.happen(.movementSourceChanged(source: "gpio", moving: true))
        script.stand(10)
        let receiver = Obedient(script, .releasing)
        let stop = receiver.course.changes.last?.at.seconds ?? 0
        #expect(receiver.course.story == ["-start", "+speed", "-stop-timeout"])
        #expect(receiver.turns == [.sleep(stop, until: nil)])
        #expect(receiver.course.tracker.snapshot.receiverSleep == .released)
        #expect(receiver.course.tracker.state.released)
        #expect(receiver.course.records(.gap).isEmpty && !receiver.course.records(.heartbeat).isEmpty)

        // A new process leaves it asleep.
        var later = Script()
        later.clockStep = Int64(script.elapsed + 60) * 1000
        later.happen(.sourceStateChanged(.opening))
        later.wait(100)
        later.happen(.paceRequested(.moving))
        later.stand(100)
        let after = Obedient(later, .releasing, restored: receiver.course.tracker.state)
        #expect(after.turns == [.sleep(0, until: nil), .wake(100)])
        #expect(after.course.story == ["+pace"])
        // Unless it is not wanted any more.
        let free = Obedient(later, .car, restored: receiver.course.tracker.state)
        #expect(free.turns.isEmpty)
    }

    @Test func aStopByHandReleasesNothing() {
        var script = StopTests.arrived()
        script.happen(.paceRequested(.stationary))
        script.stand(400)
        let receiver = Obedient(script, .releasing)
        #expect(receiver.course.story == ["-start", "+speed", "-pace"])
        #expect(receiver.turns.isEmpty)
    }

    @Test func reloadEndsAndBeginsTheCycle() {
        var script = Script.parked(400)
        script.happen(.settingsReloaded(.car))
        script.stand(400)
        script.happen(.settingsReloaded(Self.sleeping))
        script.stand(310)
        let receiver = Obedient(script, Self.sleeping)
        #expect(receiver.turns == [.sleep(330, until: 630), .wake(400), .sleep(1100, until: 1400)])
    }
}
