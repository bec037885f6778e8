import DriveSimulation
import WaypostCore

/// A fleet in virtual time, in one thread: the same figures for the same settings on every machine.
package struct FleetRun: Sendable {
    package let scenario: FleetScenario
    package let settings: FleetSettings

    package init(_ scenario: FleetScenario, _ settings: FleetSettings) {
        self.scenario = scenario
        self.settings = settings
    }

    /// Seconds in which nothing happens to the fleet: what others are compared with.
    package var calm: Range<Int> {
        let start = Int(FleetSettings.warmUp.seconds)
        let end = Int(settings.end.seconds(since: .zero))
        if scenario == .steady || scenario == .grid { return start..<end }
        return start..<min(end, start + Int((FleetSettings.calm - FleetSettings.outage).seconds))
    }

    /// Seconds in which the server is not there; nil = it always is.
    package var outage: Range<Int>? {
        trouble.map { Int($0.from.seconds(since: .zero))..<Int($0.to.seconds(since: .zero)) }
    }

    /// From what happens, or from the end of the outage, to the end.
    package var after: Range<Int> {
        let end = Int(settings.end.seconds(since: .zero))
        if scenario == .steady || scenario == .grid { return calm }
        return min(end, outage?.upperBound ?? Int(FleetSettings.eventAt.seconds(since: .zero)))..<end
    }

    package func run() -> FleetFigures {
        let end = settings.end
        let last = Int(end.seconds(since: .zero))
        var figures = FleetFigures(counted: min(last, Int(FleetSettings.warmUp.seconds))..<last)
        var server = FleetServer(capacity: settings.capacity, trouble: trouble)
        var devices = makeDevices()
        var dueTimes = DueTimes(devices.map(\.due.nanoseconds))
        while let (device, nanoseconds) = dueTimes.first, nanoseconds < end.nanoseconds {
            devices[device].run(at: EventTime(nanoseconds: nanoseconds), &server, &figures)
            // What is due at once is due a moment later: time passes in any case.
            dueTimes.moveFirst(to: max(devices[device].due.nanoseconds, nanoseconds + 1))
        }
        for device in devices.indices { devices[device].end(&figures) }
        return figures
    }

    private func makeDevices() -> [FleetDevice] {
        var random = SplitMix64(seed: settings.seed)
        let endpoint = settings.endpoint
        return (0..<max(1, settings.devices)).map { _ in
            let plan = DevicePlan(
                interval: scenario == .grid ? 10 : settings.rowInterval, isAligned: scenario == .grid,
                isDriving: settings.isDriving, random: SplitMix64(seed: random.next()))
            let orders = orders(second: random.unit())
            return FleetDevice(endpoint, plan: plan, random: SplitMix64(seed: random.next()), orders: orders)
        }
    }

    /// - Parameter second: 0 ≤ second < 1: when in the second it happens to a device.
    private func orders(second: Double) -> [(at: EventTime, order: FleetDevice.Order)] {
        let event = FleetSettings.eventAt
        switch scenario {
        case .powerOn, .powerOnBacklog:
            return [
                (event - FleetSettings.outage, .powerOff),
                (event.later(second), .powerOn(backlog: scenario == .powerOnBacklog ? 60 : 0)),
            ]
        case .flush: return [(event.later(second), .flush)]
        case .steady, .grid, .refused, .blackHole, .unavailable, .throttled, .restart: return []
        }
    }

    private var trouble: (kind: FleetServer.Trouble, from: EventTime, to: EventTime)? {
        let event = FleetSettings.eventAt
        let end = event + FleetSettings.outage
        switch scenario {
        case .refused: return (.refuses, event, end)
        case .blackHole: return (.silent, event, end)
        case .unavailable: return (.answers(status: 503, after: nil), event, end)
        case .throttled: return (.answers(status: 429, after: .seconds(120)), event, end)
        case .restart: return (.refuses, event, event + .seconds(20))
        case .steady, .grid, .powerOn, .powerOnBacklog, .flush: return nil
        }
    }
}

extension Duration {
    var seconds: Double { Double(nanoseconds) / 1e9 }
}
