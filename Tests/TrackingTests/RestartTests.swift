import Testing
import WaypostCore
import WaypostTracking

@Suite struct RestartTests {
    /// Stops the process at the end of the first script, and starts it with the rest after `pause` seconds of no process.
    private func restarted(
        _ script: Script, after pause: Double, _ rest: (inout Script) -> Void
    ) -> (before: Course, after: Course) {
        let before = Course(script)
        var later = Script()
        (later.north, later.east, later.rate, later.accuracy) = (
            script.north, script.east, script.rate, script.accuracy
        )
        later.clockStep = Int64((script.elapsed + pause) * 1000)
        rest(&later)
        return (before, Course(later, restored: before.tracker.state))
    }

    /// Stopped on the way, and so many metres farther after the pause.
    private func drivenOn(_ metres: Double, after pause: Double) -> (before: Course, after: Course) {
        restarted(Script.driving(100, after: 900), after: pause) {
            $0.north += metres
            $0.speed = 12
            $0.drive(60)
        }
    }

    @Test func parkedBeforeIsParkedAfter() throws {
        let (before, after) = restarted(Script.parked(900), after: 3600) { $0.stand(300) }
        #expect(after.changes.isEmpty)
        #expect(after.records.map(\.event) == [.gap] && after.records.first?.reason == "restart")
        #expect(after.records.first?.time.seconds == 900)
        #expect(after.tracker.state.anchor == before.tracker.state.anchor)
        #expect(after.tracker.state.since == before.tracker.state.since)
    }

    @Test func aCrashLoopWhileParkedWritesOneGapInAHeartbeat() {
        var state = Course(Script.parked(900)).tracker.state
        var gaps = 0
        for round in 0..<30 {
            var script = Script()
            script.clockStep = 900_000 + Int64(round) * 30_000
            script.stand(20)
            let course = Course(script, restored: state)
            gaps += course.records(.gap).count
            state = course.tracker.state
        }
        #expect((1...2).contains(gaps))
    }

    @Test func movedWhileOffItIsParkedElsewhere() {
        let (_, after) = restarted(Script.parked(900), after: 3600) {
            $0.north += 5000
            $0.stand(60)
        }
        #expect(after.story.isEmpty && after.records.last?.reason == "moved")
        #expect(after.tracker.snapshot.odometer < 1)
    }

    @Test func movingBeforeAShortPauseIsMovingAfter() {
        let (before, after) = drivenOn(240, after: 20)
        #expect(after.story.isEmpty && after.tracker.snapshot.motion == .moving)
        #expect(after.records.first?.event == .gap && after.records.first?.moving == true)
        #expect(after.records[1].reason == "gap")
        #expect(after.tracker.state.trip?.start == before.tracker.state.trip?.start)
        #expect(after.tracker.snapshot.odometer > before.tracker.snapshot.odometer + 700)
    }

    /// Whatever the process did meanwhile, the asset drove on.
    @Test(.bug(id: 16), arguments: [5.0, 240]) func theWayOfATripWithoutAProcessCounts(pause: Double) {
        let (before, after) = drivenOn(12 * pause, after: pause)
        let (then, now) = (before.tracker.snapshot, after.tracker.snapshot)
        #expect(abs(now.odometer - then.odometer - 12 * (pause + 60)) < 30)
        #expect(abs(now.gapMetres - (pause > 60 ? 12 * pause : 0)) < 30)
    }

    /// Nothing drives 100 km in four minutes.
    @Test(.bug(id: 16)) func aWayThatCannotBeIsNotCounted() {
        let (before, after) = drivenOn(100_000, after: 240)
        #expect(after.tracker.snapshot.odometer < before.tracker.snapshot.odometer + 800)
    }

    @Test func switchedOffWithTheEngineAndBackTheNextDayIsAStop() throws {
        var script = Script.parked(900)
        script.trip(metres: 2000, stand: 8)
        let (before, after) = restarted(script, after: 50_000) {
            $0.offset.east = 15
            $0.stand(60)
            $0.offset = .zero
            $0.trip(metres: 1000)
        }
        #expect(before.tracker.state.moving)
        #expect(after.story == ["-gap", "+speed"])
        #expect(abs(try #require(after.changes.first?.since).seconds - (script.elapsed - 8)) <= 1)
    }

    @Test func settledNothingBeforeSettlesAgain() {
        let (_, after) = restarted(Script.parked(10), after: 5) { $0.stand(60) }
        #expect(after.story == ["-start"])
        #expect(after.records(.gap).isEmpty)
    }

    @Test func aStateOfAnotherVersionIsAFreshStart() {
        var state = Course(Script.parked(900)).tracker.state
        state.version = 99
        #expect(Course(Script.parked(60), restored: state).story == ["-start"])
    }

    @Test func aStateWithAbsurdNumbersIsAFreshStart() {
        let spoils: [(inout StoredState) -> Void] = [
            { $0.lastGap = UTCTime(milliseconds: .min) }, { $0.lastFix?.time = UTCTime(milliseconds: .max) },
            { $0.odometer = .nan }, { $0.anchor?.coordinate.latitudeE7 = .max },
            { $0.recorded[0].time = UTCTime(milliseconds: .max) },
        ]
        for spoil in spoils {
            var state = Course(Script.parked(900)).tracker.state
            #expect(state.isUsable)
            spoil(&state)
            #expect(!state.isUsable)
            #expect(Course(Script.parked(60), restored: state).story == ["-start"])
        }
    }

    @Test func timeNeverRunsBackWithinATrackable() throws {
        // The last record is a heartbeat without a fix, an hour after the last one.
        var course = Course(Script.parked(900))
        course.runDeadlines(through: .zero + .seconds(4500))
        let recorded = try #require(course.records.last?.time)
        var script = Script()
        script.clockStep = 4_000_000
        script.stand(60)
        let after = Course(script, restored: course.tracker.state)
        #expect(after.records.allSatisfy { $0.time >= recorded })
    }

    @Test func anEarlierLogAfterTheRestartIsNoGapAndMovesNoDeparture() throws {
        var script = Script.parked(900)
        script.clockStep = 86_400_000
        let state = Course(script).tracker.state
        let earlier = Script.driving(60, after: 900)
        let course = Course(earlier, restored: state)
        #expect(course.records(.gap).isEmpty)
        let departure = try #require(course.changes.first { $0.moving })
        let fresh = try #require(Course(earlier).changes.first { $0.moving })
        #expect(departure.since == fresh.since)
    }
}
