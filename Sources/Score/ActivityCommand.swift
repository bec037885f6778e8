import ArgumentParser
import DriveSimulation
import Scoring
import WaypostCore

struct ActivityCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activity",
        abstract: "Scores what the asset is said to do: still, on foot, running, on a bicycle, in a vehicle.",
        discussion: """
            Each way goes as NMEA bytes through decoding and tracking at default settings; the answer at each fix is held \
            against the truth, but for the first half minute of each phase. The exit status is 1 when less than 95 % of \
            the time is right.

              waypost-score activity --seeds 5
              waypost-score activity --seed 7 --scenario ride --preset canyon
            """)

    @Option(help: "So many seeds, drawn now and printed.")
    var seeds: Int?

    @Option(help: "A seed; may be repeated.")
    var seed: [UInt64] = []

    @Option(help: "Kind of way; may be repeated. The default is walks, runs, rides, drives, jams and what mixes them.")
    var scenario: [String] = []

    @Option(help: "open, street or canyon; may be repeated. The default is all three.")
    var preset: [String] = []

    @Option(help: "Milliseconds between epochs: a divisor of 1000 that is a multiple of 10, or whole seconds.")
    var period = 1000

    @Option(help: "The folder of the recorded logs; without it only simulated ways are scored.")
    var corpus: String?

    @Flag(help: "Also a table for each kind of way.")
    var byScenario = false

    /// Drives that are not among `Scenario.onTheWay`.
    private static let drives = ["city", "jam", "motorway", "walk-drive-walk", "reversing", "deliveries"]

    func run() async throws {
        let names = scenario.isEmpty ? Scenario.onTheWay.map(\.name) + Self.drives : scenario
        let scenarios = try names.map { name in
            guard let scenario = Scenario.named(name) else {
                throw ValidationError("--scenario: there is no '\(name)'; waypost-simulate --list shows them.")
            }
            return scenario
        }
        let presets = preset.isEmpty ? NoisePreset.all : preset.compactMap(NoisePreset.named)
        let drawn = (0..<max(0, seeds ?? 0)).map { _ in UInt64.random(in: 1...999_999) }
        let seeds = seed.isEmpty && drawn.isEmpty ? [1] : seed + drawn
        print("seeds:", seeds.map { "--seed \($0)" }.joined(separator: " "))

        var all = ActivityScore()
        for scenario in scenarios {
            let jobs = seeds.flatMap { seed in presets.map { (seed, $0) } }
            let score = await scored(jobs, scenario)
            all.add(score)
            guard byScenario else { continue }
            print("\n\(scenario.name): \(scenario.summary); \(score.flaps) changes of the answer within a phase")
            print(ActivityTable(score).text, terminator: "")
        }
        print("\n" + ActivityTable(all).text, terminator: "")
        print("changes of the answer within a phase: \(all.flaps)")
        var isMet = ActivityTable(all).isMet
        if let corpus {
            for log in Self.recorded {
                let score = ActivityScore(of: try LogFile.bytes(of: "\(corpus)/\(log.name)"), travelling: log.activity)
                print("\n\(log.name)\(log.isJudged ? "" : ", not judged")")
                print(ActivityTable(score).text, terminator: "")
                if log.isJudged { isMet = isMet && ActivityTable(score).isMet }
            }
        }
        guard isMet else { throw ExitCode(1) }
    }

    /// Whose way of travelling is known. There is no word for a boat.
    private static let recorded: [(name: String, activity: Activity.Kind, isJudged: Bool)] = [
        ("drive_mtv_f9k_ublox.nmea", .inVehicle, true), ("drive_z205_switzerland_sirf.nmea", .inVehicle, true),
        ("static_signalk_gps.nmea", .still, true), ("kayak_tomales.nmea", .inVehicle, false),
        ("sail_kernevel_latrinite_9h.nmea", .inVehicle, false),
    ]

    private func scored(_ jobs: [(UInt64, NoisePreset)], _ scenario: Scenario) async -> ActivityScore {
        let period = period
        return await withTaskGroup(of: ActivityScore.self) { group in
            for (seed, preset) in jobs {
                group.addTask {
                    let settings = SimulatedDrive.Settings(seed: seed, preset: preset, period: min(1000, period))
                    return ActivityScore(
                        of: SimulatedDrive(scenario, settings: settings), thinning: max(1, period / 1000))
                }
            }
            var score = ActivityScore()
            for await own in group { score.add(own) }
            return score
        }
    }
}
