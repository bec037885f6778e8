import ArgumentParser
import DriveSimulation
import Scoring
import WaypostTracking

struct TrackErrorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "track-error",
        abstract: "Scores the sampling rule with a bounded track error.",
        discussion: """
            Each log goes as NMEA bytes through decoding and tracking with the rule track-error. Every fix that the sampler \
            took is held against the straight line between the records around it, at its own time; the number of \
            records against the least possible one with the same delay, and against plain triggers (100 m, 10° at any \
            speed, 300 s) on the same fixes. The ratios are judged over all car drives together. The exit status is 1 \
            when a target is missed.

              waypost-score track-error
              waypost-score track-error drive.nmea
              waypost-score track-error --bench
            """)

    @Argument(help: "Logs, judged as car drives. None given: the recorded logs and simulated drives.")
    var logs: [String] = []

    @Option(help: "The folder of the recorded logs.")
    var corpus = "../shared/corpus/nmea"

    @Option(help: "So many seeds for simulated drives, drawn now and printed.")
    var seeds = 3

    @Option(help: "A seed; may be repeated.")
    var seed: [UInt64] = []

    @Flag(help: "Measures the cost per fix instead, against the rule either in the same run.")
    var bench = false

    func run() throws {
        if bench { return Self.measureCost() }
        var table = TrackErrorTable()
        if logs.isEmpty {
            let drives = try recordedDrives() + simulatedDrives()
            for drive in drives {
                table.add(drive.name, drive.bytes, isCar: drive.isCar)
            }
        } else {
            for log in logs { table.add(Self.lastPart(log), try LogFile.bytes(of: log), isCar: true) }
        }
        print(table.text)
        guard table.missed.isEmpty else { throw ExitCode(1) }
    }

    private typealias Drive = (name: String, bytes: [UInt8], isCar: Bool)

    private func recordedDrives() throws -> [Drive] {
        let cars = ["drive_mtv_f9k_ublox.nmea", "drive_z205_switzerland_sirf.nmea"]
        let others = ["kayak_tomales.nmea", "sail_kernevel_latrinite_9h.nmea", "static_signalk_gps.nmea"]
        return try (cars + others).map { ($0, try LogFile.bytes(of: "\(corpus)/\($0)"), cars.contains($0)) }
    }

    private func simulatedDrives() -> [Drive] {
        let seeds = seed.isEmpty ? (0..<max(0, seeds)).map { _ in UInt64.random(in: 0...9_999_999) } : seed
        print("seeds:", seeds.map { "--seed \($0)" }.joined(separator: " "))
        return seeds.flatMap { seed in
            TrackErrorScenario.all.flatMap { entry in
                NoisePreset.all.map { preset in
                    var drive = SimulatedDrive(entry.scenario, settings: .init(seed: seed, preset: preset))
                    return ("\(entry.scenario.name) \(preset.name) \(seed)", drive.allBytes(), entry.isCar)
                }
            }
        }
    }

    private static func lastPart(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    /// The rules take turns, so that whatever else the machine does falls on both.
    private static func measureCost() {
        let fixes = TrackErrorCost.fixes(count: 200_000)
        let clock = ContinuousClock()
        var best: [LocationSampler.Rule: Double] = [:]
        var kept: [LocationSampler.Rule: Int] = [:]
        for _ in 0..<9 {
            for rule in [LocationSampler.Rule.either, .trackError] {
                let start = clock.now
                kept[rule] = TrackErrorCost.run(fixes, rule: rule)
                let nanoseconds = (clock.now - start) / .nanoseconds(fixes.count)
                best[rule] = min(best[rule] ?? .infinity, nanoseconds)
            }
        }
        for rule in [LocationSampler.Rule.either, .trackError] {
            let cost = Int((best[rule] ?? 0).rounded())
            print("\(rule.rawValue): \(cost) ns per fix, \(kept[rule] ?? 0) of \(fixes.count) kept")
        }
    }
}
