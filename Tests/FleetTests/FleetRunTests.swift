import Testing
import WaypostCore

@testable import Fleet

@Suite struct FleetRunTests {
    private static let devices = 20

    private static let steady = run(.steady)
    private static let refused = run(.refused)

    private static func run(_ scenario: FleetScenario, seed: UInt64 = 1) -> (FleetRun, FleetFigures) {
        var settings = FleetSettings()
        settings.devices = devices
        settings.measured = .seconds(3600)
        settings.seed = seed
        let run = FleetRun(scenario, settings)
        return (run, run.run())
    }

    @Test func givesTheSameFiguresForTheSameSeed() {
        #expect(Self.run(.steady).1.requests() == Self.steady.1.requests())
        #expect(Self.run(.steady, seed: 2).1.requests() != Self.steady.1.requests())
    }

    /// A moving device sends once per window and the row that opens the next one, a parked one with each heartbeat.
    @Test func sendsOncePerWindow() {
        let (run, figures) = Self.steady
        let perDevice = figures.rate(run.calm) / Double(Self.devices)
        #expect(perDevice > 1.0 / 120 && perDevice < 1.0 / 60, "\(perDevice)")
    }

    /// What cannot be sent meanwhile is sent afterwards.
    @Test(arguments: [FleetScenario.refused, .blackHole, .unavailable, .throttled, .restart])
    func outageCostsNoRow(_ scenario: FleetScenario) {
        let steady = Self.steady.1.rowsAccepted
        let accepted = (scenario == .refused ? Self.refused : Self.run(scenario)).1.rowsAccepted
        // At the end some rows still wait for their window, which is five times as long after a 429.
        #expect(abs(accepted - steady) < steady / (scenario == .throttled ? 25 : 100), "\(accepted) of \(steady)")
    }

    @Test func refusalClosesConnections() {
        let (run, figures) = Self.refused
        #expect(figures.handshakes() > Self.steady.1.handshakes() + Self.devices / 3)
        #expect(figures.handshakes(run.outage) == 0)
    }

    @Test func serverWithoutPowerOrLinkSeesNothing() {
        let (_, figures) = Self.run(.powerOn)
        let event = Int(FleetSettings.eventAt.seconds(since: .zero))
        #expect(figures.requests(event - 590..<event) == 0)
        #expect(figures.requests(event..<event + 200) > Self.devices * 9 / 10)
    }

    /// Each device has rows of its own, so that at most one request is in flight for it: nothing that is due is lost.
    @Test func allFlushWithinAMoment() {
        let (_, figures) = Self.run(.flush)
        let event = Int(FleetSettings.eventAt.seconds(since: .zero))
        #expect(figures.requests(event..<event + 70) >= Self.devices)
    }

    @Test func busyServerIsLeftAloneForAWhile() {
        var settings = FleetSettings()
        settings.devices = 50
        settings.measured = .seconds(1200)
        settings.capacity = 0.5
        let run = FleetRun(.steady, settings)
        let figures = run.run()
        #expect(figures.rate(run.calm) > 0.5 && figures.rowsAccepted > 0)
    }
}

@Suite struct FleetServerTests {
    private let start = EventTime.zero

    @Test func answersInTurn() {
        var server = FleetServer(capacity: 10)
        let first = server.answer(latency: 0.1, timeout: .seconds(60), at: start)
        let second = server.answer(latency: 0.1, timeout: .seconds(60), at: start)
        #expect(first.at == start + .milliseconds(200))
        #expect(second.at == start + .milliseconds(300))
        #expect(second.verdict == .accepted)
    }

    @Test func refusesWhatWouldWaitTooLong() {
        var server = FleetServer(capacity: 10)
        for _ in 0..<101 { _ = server.answer(latency: 0.1, timeout: .seconds(60), at: start) }
        let last = server.answer(latency: 0.1, timeout: .seconds(60), at: start)
        #expect(last.verdict == .retry(.status(503), after: nil))
    }

    @Test func silenceLastsUntilTheDeviceGivesUp() {
        var server = FleetServer(capacity: nil, trouble: (.silent, start, start + .seconds(10)))
        #expect(!server.listens(at: start))
        #expect(server.answer(latency: 0.1, timeout: .seconds(60), at: start).at == start + .seconds(60))
        #expect(server.listens(at: start + .seconds(10)))
        #expect(server.answer(latency: 0.1, timeout: .seconds(60), at: start + .seconds(10)).verdict == .accepted)
    }
}

@Suite struct DevicePlanTests {
    @Test func rowsAreOfWholeSecondsAndInOrder() {
        var plan = DevicePlan(interval: 5, random: .init(seed: 3))
        var last = EventTime.zero
        var (events, wrong) = (0, 0)
        let end = EventTime.zero + .seconds(86_400)
        while plan.next.at < end {
            let row = plan.next
            if row.at <= last || row.at.nanoseconds % 1_000_000_000 >= 300_000_000 { wrong += 1 }
            last = row.at
            if row.isEvent { events += 1 }
            plan.advance()
        }
        #expect(wrong == 0 && (30...100).contains(events), "\(events) trips and stops in a day")
    }

    @Test func aLongTripHasNoEvents() {
        var plan = DevicePlan(interval: 5, isDriving: true, random: .init(seed: 6))
        var events = 0
        for _ in 0..<10_000 {
            if plan.next.isEvent { events += 1 }
            plan.advance()
        }
        #expect(events == 0)
        #expect(abs(plan.next.at.seconds(since: .zero) - 45_000) < 1000)
    }

    @Test func alignedRowsShareTheirSeconds() {
        var plan = DevicePlan(interval: 10, isAligned: true, random: .init(seed: 4))
        var aligned = 0
        var others = 0
        for _ in 0..<2000 {
            plan.advance()
            if plan.next.at.nanoseconds / 1_000_000_000 % 10 == 0 { aligned += 1 } else { others += 1 }
        }
        #expect(aligned > 9 * others)
    }

    @Test func sleepsThroughTrips() {
        var plan = DevicePlan(interval: 5, random: .init(seed: 5))
        plan.sleep(until: .zero + .seconds(50_000))
        #expect(plan.next.at >= .zero + .seconds(50_000))
        #expect(plan.next.at < .zero + .seconds(50_002))
        #expect(plan.eventAt > .zero + .seconds(50_000))
    }
}

@Suite struct DueTimesTests {
    @Test func firstIsTheEarliest() {
        var random = 12345
        func draw() -> Int64 {
            random = (random &* 1_103_515_245 &+ 12345) & 0x7fff_ffff
            return Int64(random % 1000)
        }
        var times = (0..<50).map { _ in draw() }
        var due = DueTimes(times)
        for _ in 0..<2000 {
            guard let (device, time) = due.first, time == times.min(), times[device] == time else {
                return _ = Issue.record("\(String(describing: due.first)) of \(times)")
            }
            times[device] = time + draw()
            due.moveFirst(to: times[device])
        }
    }

    @Test func noDeviceIsNeverDue() { #expect(DueTimes([]).first == nil) }
}

@Suite struct FleetFiguresTests {
    @Test func peaksAndSums() {
        var figures = FleetFigures(counted: 2..<10)
        for second in [0, 3, 3, 3, 4, 9] { figures.requested(rows: 1, at: .zero + .seconds(second)) }
        #expect(figures.requests() == 5 && figures.rate() == 0.625)
        #expect([1, 2, 20].map { figures.peak(window: $0) } == [3, 2, 0])
        #expect(figures.peak(window: 2, 5..<10) == 0.5)
    }

    @Test func countsConnectionsThatAreOpenAtOnce() {
        var figures = FleetFigures(counted: 0..<10)
        figures.connected(from: .zero, to: .zero + .seconds(4))
        figures.connected(from: .zero + .seconds(3), to: .zero + .seconds(50))
        figures.connected(from: .zero + .seconds(5), to: .zero + .seconds(6))
        #expect(figures.connectionPeak == 2)
    }
}

@Suite struct BrokerRestartTests {
    @Test func allComeBack() {
        let restart = BrokerRestart(connections: 1000, accepts: 10, seed: 1)
        #expect(restart.total >= 1000 && restart.lasts >= 100)
        #expect(restart.attempts.count { $0 > 0 } >= 100)
    }

    @Test func nothingToDoWithoutConnections() {
        #expect(BrokerRestart(connections: 0, accepts: 10, seed: 1).lasts == 0)
    }
}
