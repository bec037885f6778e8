import Testing
import WaypostCore
import WaypostTracking

/// What `waypost top` shows of the next decision.
@Suite struct OutlookTests {
    @Test func beforeTheFirstFixThereIsNothingToSee() {
        let look = Tracker(settings: .car, restored: nil).look
        #expect(look.fix == nil && look.fixAt == nil && look.outlook.evidenceNeeded == nil)
    }

    @Test func whileParkedATripNeedsEvidence() throws {
        let script = Script.parked(60)
        let look = Course(script).tracker.look
        #expect(look.outlook.evidenceNeeded == 15 && look.outlook.radius == 25)
        #expect(look.outlook.parksAt == nil && look.outlook.stillSpeed == nil)
        #expect(look.fix?.horizontalAccuracy == 4 && look.fixAt == script.now)
        #expect(look.heldPlace != nil)
    }

    /// Outside the fence by more than the accuracy less is needed.
    @Test func farFromTheFenceLessEvidenceIsNeeded() {
        var script = Script.parked(60)
        script.offset = PlanePoint(east: 0, north: 60)
        script.stand(3)
        let look = Course(script).tracker.look
        #expect(look.evidence.distance > 50 && look.outlook.evidenceNeeded == 8)
    }

    /// The threshold that decided, which may be another than the settings have: fast movement needs less, noise more.
    @Test func aDecisionSaysWithHowMuchEvidence() throws {
        let departure = try #require(Course(Script.driving(60, after: 60)).changes.last)
        #expect(departure.moving && departure.evidence.needed == 8 && departure.evidence.evidence >= 8)

        var atOnce = Script()
        atOnce.driveOff(60)
        let first = try #require(Course(atOnce).changes.first { $0.moving })
        #expect(first.evidence.needed == 15 && first.evidence.evidence >= 15, "\(first)")

        var stop = StopTests.arrived()
        stop.stand(320)
        var course = Course(stop)
        course.runDeadlines(through: stop.now)
        let arrival = try #require(course.changes.last)
        #expect(!arrival.moving && arrival.evidence.needed == 8 && arrival.evidence.evidence < 8)
    }

    @Test func onATripAHaltNeedsALowSpeed() {
        let look = Course(Script.driving(60, after: 60)).tracker.look
        #expect(look.outlook.stillSpeed == 0.5 && look.outlook.evidenceNeeded == nil)
        #expect(look.evidence.speed.map { abs($0 - 12) < 0.1 } == true)
        #expect(look.heldPlace == nil)
    }

    @Test func aHaltCountsDownToTheStopThatComes() throws {
        var script = StopTests.arrived()
        let standstill = script.elapsed
        script.stand(100)
        var course = Course(script)
        let outlook = course.tracker.look.outlook
        #expect(abs(try #require(outlook.standsSince).seconds - standstill) <= 6)
        #expect(outlook.evidenceNeeded == 8 && outlook.parksBecause == .stopTimeout)
        let parksAt = try #require(outlook.parksAt)
        course.runDeadlines(through: parksAt)
        #expect(course.changes.last?.moving == false && course.changes.last?.at == parksAt)
    }

    @Test func aHaltWithoutPowerParksSooner() throws {
        var script = StopTests.arrived()
        script.stand(10)
        script.happen(.externalPowerChanged(true))
        script.stand(10)
        script.happen(.externalPowerChanged(false))
        script.stand(20)
        var course = Course(script)
        let outlook = course.tracker.look.outlook
        #expect(outlook.parksBecause == .power)
        course.runDeadlines(through: try #require(outlook.parksAt))
        #expect(course.changes.last?.reason == .power)
    }

    @Test func withoutStopDetectionOnlySilenceParks() {
        var script = StopTests.arrived()
        script.stand(100)
        let outlook = Course(script, .car { $0.motion.disableStopDetection = true }).tracker.look.outlook
        #expect(outlook.stillSpeed == nil && outlook.parksBecause == .noFix)
    }

    @Test func whatIsPublishedSaysWhy() throws {
        var rule = ResolutionRule()
        rule.motion = [.moving]
        rule.intervalMs = 2000
        let settings = Tracker.Settings.car { $0.resolution.rules = [rule] }
        var script = Script.parked(60)
        var course = Course(script, settings)
        let parked = try #require(course.tracker.look.published.first)
        #expect(parked.id == "car" && parked.rule == nil && parked.isCapped && !parked.isBoosted)
        script = Script.driving(20, after: 60)
        course = Course(script, settings)
        let moving = try #require(course.tracker.look.published.first)
        #expect(moving.rule == 0 && !moving.isCapped && moving.resolution.intervalMs == 2000)
        let boost = Boost(
            resolution: Resolution(priority: .high, intervalMs: 1000, displacement: 1), duration: .seconds(60))
        course.handle(.boostChanged(boost), at: script.now)
        #expect(course.tracker.look.published.first?.isBoosted == true)
    }
}
