import ArgumentParser
import Fleet
import Glibc

@main
struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-fleet",
        abstract: "What a fleet of devices does to one server, simulated with the schedule of the daemon.",
        discussion: """
            Two hours after a warm-up of 20 minutes; what a scenario does happens after half an hour. Peaks are in windows of \
            60 s and of 1 s, over the mean of the time before.

              waypost-fleet --devices 10000
              waypost-fleet --scenario refused --scenario flush --window 300
            """)

    @Option(help: "A scenario; may be repeated. The default is all: \(Self.names).")
    var scenario: [String] = []

    @Option(help: "Devices of the fleet.")
    var devices = 10_000

    @Option(help: "Of trips, latencies and jitter.")
    var seed: UInt64 = 1

    @Option(help: "batch_window in seconds.")
    var window = 60

    @Option(help: "batch_size.")
    var batchSize = 100

    @Option(help: "min_batch.")
    var minBatch = 1

    @Option(help: "Longest wait after failures in seconds; that of waypost is 300.")
    var backoffMax = 300

    @Option(help: "About so many seconds from row to row of a moving device: half to one and a half of it.")
    var rowInterval = 5

    @Flag(help: "All devices are in one long trip; without it, three quarters are in trips at any time.")
    var driving = false

    @Option(help: "Requests per second that the server can answer; without it, any number.")
    var capacity: Double?

    private static let broker = "broker"
    private static var names: String {
        (FleetScenario.allCases.map(\.rawValue) + [broker]).joined(separator: ", ")
    }

    func validate() throws {
        for name in scenario where name != Self.broker && FleetScenario(rawValue: name) == nil {
            throw ValidationError("no scenario \"\(name)\"; there are \(Self.names)")
        }
        for (name, value, range) in [
            ("--devices", devices, 1...1_000_000), ("--window", window, 1...86_400),
            ("--batch-size", batchSize, 1...10_000), ("--min-batch", minBatch, 1...10_000),
            ("--backoff-max", backoffMax, 1...86_400), ("--row-interval", rowInterval, 1...3600),
        ] where !range.contains(value) {
            throw ValidationError("\(name) is \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        if let capacity, !(capacity > 0) { throw ValidationError("--capacity is above 0, not \(capacity)") }
    }

    func run() throws {
        let runs = FleetScenario.allCases.filter { scenario.isEmpty || scenario.contains($0.rawValue) }
        var table = FleetTable()
        for scenario in runs {
            let run = FleetRun(scenario, settings)
            table.add(run, run.run())
        }
        if !runs.isEmpty { print(table.text) }
        if scenario.isEmpty || scenario.contains(Self.broker) { restartBroker() }
    }

    private var settings: FleetSettings {
        var settings = FleetSettings()
        settings.devices = devices
        settings.seed = seed
        settings.window = .seconds(window)
        settings.batchSize = batchSize
        settings.minBatch = minBatch
        settings.backoff.cap = .seconds(backoffMax)
        settings.rowInterval = rowInterval
        settings.isDriving = driving
        settings.capacity = capacity
        return settings
    }

    /// As many connections as devices; it takes 100 s to accept them all.
    private func restartBroker() {
        let restart = BrokerRestart(connections: devices, accepts: devices / 100, seed: seed)
        print(
            "broker: \(devices) connections, \(restart.accepts) accepted per s: at most \(restart.peak) attempts per s, "
                + "\(FleetTable.decimal(Double(restart.peak) / Double(restart.accepts))) × what it accepts; "
                + "all connected after \(restart.lasts) s and \(restart.total) attempts")
    }
}
