import ArgumentParser
import DriveSimulation
import Scoring

struct MotionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "motion",
        abstract: "Scores starts, stops and the odometer on simulated drives.",
        discussion: """
            Each drive goes as NMEA bytes through decoding and tracking at default settings; what is announced and stored \
            is held against the truth of the drive. The column "plain" is a 10 m distance filter with a 200 m fence and \
            a stop timeout of 5 min, on the same fixes. The exit status is 1 when a target is missed.

              waypost-score motion --seeds 20
              waypost-score motion --seed 7 --scenario jam --preset canyon --list-misses
            """)

    @Option(help: "So many seeds, drawn now and printed.")
    var seeds: Int?

    @Option(help: "A seed; may be repeated.")
    var seed: [UInt64] = []

    @Option(help: "Kind of drive; may be repeated. The default is all except demo; waypost-simulate --list shows them.")
    var scenario: [String] = []

    @Option(help: "open, street or canyon; may be repeated. The default is all three.")
    var preset: [String] = []

    @Option(help: "Milliseconds between epochs: a divisor of 1000 that is a multiple of 10, or whole seconds.")
    var period = 1000

    @Flag(help: "Also a table for each scenario.")
    var byScenario = false

    @Flag(help: "Names each thing that went wrong with the command that shows the drive.")
    var listMisses = false

    @Flag(help: "The exit status heeds only targets that a few drives can judge: no rate and no quantile.")
    var robust = false

    func run() async throws {
        let scenarios = try chosenScenarios()
        let presets = try chosenPresets()
        guard period >= 10, period % 10 == 0, period <= 1000 ? 1000 % period == 0 : period % 1000 == 0 else {
            throw ValidationError("--period: found \(period), expected 100, 200, 500, 1000, 2000, 5000 or the like.")
        }
        let seeds = chosenSeeds()
        print("seeds:", seeds.map { "--seed \($0)" }.joined(separator: " "))

        let jobs = seeds.flatMap { seed in scenarios.map { (seed, $0) } }
        let clock = ContinuousClock()
        let start = clock.now
        let results = await scored(jobs, presets)
        let seconds = (clock.now - start) / .seconds(1)

        print()
        print(Self.table(results).text, terminator: "")
        if byScenario {
            for scenario in scenarios {
                print("\n\(scenario.name): \(scenario.summary)")
                print(Self.table(results.filter { $0.scenario == scenario.name }).text, terminator: "")
            }
        }
        if listMisses { printMisses(results) }

        let sentences = results.reduce(0) { $0 + $1.sentences }
        print("\n\(jobs.count * presets.count) drives, \(sentences) sentences, \(Int(seconds.rounded())) s")
        let missed = Self.table(results).missed(robust: robust)
        guard missed.isEmpty else {
            print("missed:", missed.joined(separator: "; "))
            throw ExitCode(1)
        }
        print(robust ? "every target that so few drives can judge is met" : "every target is met")
    }

    // MARK: Arguments

    private func chosenScenarios() throws -> [Scenario] {
        if scenario.isEmpty { return Scenario.all.filter { $0.name != "demo" } }
        return try scenario.map { name in
            guard let scenario = Scenario.named(name) else {
                throw ValidationError("--scenario: there is no '\(name)'; waypost-simulate --list shows them.")
            }
            return scenario
        }
    }

    private func chosenPresets() throws -> [NoisePreset] {
        if preset.isEmpty { return NoisePreset.all }
        return try preset.map { name in
            guard let preset = NoisePreset.named(name) else {
                throw ValidationError("--preset: there is no '\(name)'; expected open, street or canyon.")
            }
            return preset
        }
    }

    private func chosenSeeds() -> [UInt64] {
        if let seeds {
            // Short enough to be typed again.
            return seed + (0..<max(0, seeds)).map { _ in UInt64.random(in: 1...999_999) }
        }
        return seed.isEmpty ? [1] : seed
    }

    // MARK: Drives

    private struct Result: Sendable {
        var seed: UInt64
        var scenario: String
        var preset: String
        var tracker: MotionScore
        var baseline: MotionScore
        var sentences: Int
    }

    /// All cores, and the same order whichever finishes first.
    private func scored(_ jobs: [(UInt64, Scenario)], _ presets: [NoisePreset]) async -> [Result] {
        let period = period
        return await withTaskGroup(of: (Int, [Result]).self) { group in
            for (index, job) in jobs.enumerated() {
                group.addTask { (index, Self.score(job.0, job.1, presets, period: period)) }
            }
            var results = [[Result]](repeating: [], count: jobs.count)
            for await (index, own) in group { results[index] = own }
            return results.flatMap { $0 }
        }
    }

    private static func score(
        _ seed: UInt64, _ scenario: Scenario, _ presets: [NoisePreset], period: Int
    ) -> [Result] {
        // The simulator goes down to 1 Hz; a slower receiver tells every so many of these.
        var settings = SimulatedDrive.Settings(seed: seed, period: min(1000, period))
        let truth = SimulatedDrive.truth(of: scenario, settings: settings)
        return presets.map { preset in
            settings.preset = preset
            let run = SimulatedRun(SimulatedDrive(along: truth, settings: settings), thinning: max(1, period / 1000))
            return Result(
                seed: seed, scenario: scenario.name, preset: preset.name,
                tracker: MotionScore(of: run.tracker, against: truth),
                baseline: MotionScore(of: run.baseline, against: truth), sentences: run.sentences)
        }
    }

    // MARK: Output

    private static func table(_ results: [Result]) -> MotionTable {
        var table = MotionTable(tracker: [:], baseline: [:])
        for result in results {
            let column = ScoreColumn(preset: result.preset)
            table.tracker[column, default: ColumnScore()].add(result.tracker, scenario: result.scenario)
            table.baseline[column, default: ColumnScore()].add(result.baseline, scenario: result.scenario)
        }
        return table
    }

    private func printMisses(_ results: [Result]) {
        for result in results where !result.tracker.violations.isEmpty {
            print(
                "\nwaypost-simulate --scenario \(result.scenario) --preset \(result.preset) --seed \(result.seed)"
                    + (period < 1000 ? " --rate \(1000 / period)" : ""))
            for violation in result.tracker.violations {
                let seconds = violation.at / 1000
                print("    at \(seconds) s: \(violation.what)")
            }
        }
    }
}
