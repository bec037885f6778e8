import ArgumentParser
import CSimDisk
import Glibc
import Simworld

@main
struct SimworldCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-simworld", abstract: "Runs the whole daemon in worlds that seeds make up, and judges it.")

    @Option(help: "One seed.")
    var seed: UInt64?

    @Option(help: ArgumentHelp("A range of seeds.", valueName: "first-last"))
    var seeds: String?

    @Flag(help: "Of the range, only the worlds that may have live endpoints: MQTT brokers or a live channel.")
    var live = false

    @Option(help: "Processes that share the range.")
    var jobs = 1

    @Flag(help: "Print each event of the one seed.")
    var trace = false

    @Flag(help: "Leave out faults of the one seed while it still fails.")
    var shrink = false

    @Option(help: ArgumentHelp("Of these faults none happens, by their places.", valueName: "n,n"))
    var without: String?

    @Option(help: "End after this many seeds that fail.")
    var failures = 20

    @Option(help: .hidden)
    var stride = 1

    func run() throws {
        simdisk_be_default()
        OwnLogic.watch()
        if let seed { return try one(seed) }
        guard let bounds = seeds?.split(separator: "-").compactMap({ UInt64($0) }), bounds.count == 2,
            bounds[0] <= bounds[1]
        else { throw ValidationError("--seed N or --seeds A-B") }
        try many(bounds[0], bounds[1])
    }

    private var leftOut: Set<Int> { Set((without ?? "").split(separator: ",").compactMap { Int($0) }) }

    private func one(_ seed: UInt64) throws {
        if shrink { return try shorten(seed) }
        let world = World(seed: seed, leftOut: leftOut, prints: trace)
        if trace {
            print(world.configurationText)
            for (place, words) in world.faultWords.enumerated() { print("fault \(place): \(words)") }
        }
        let report = world.run()
        print(report.summary)
        for violation in report.violations { print("  \(violation)") }
        if !report.violations.isEmpty { throw ExitCode(1) }
    }

    /// Halves first, then one by one.
    private func shorten(_ seed: UInt64) throws {
        let full = World(seed: seed).run()
        guard let wanted = full.violations.first?.invariant else { return print("seed \(seed) does not fail") }
        let count = World(seed: seed).faultCount
        var kept = Array(0..<count)
        func fails(_ kept: [Int]) -> Bool {
            World(seed: seed, leftOut: Set(0..<count).subtracting(kept)).run().violations.contains {
                $0.invariant == wanted
            }
        }
        var size = max(1, count / 2)
        while size >= 1 {
            var start = 0
            while start < kept.count {
                let rest = Array(kept[..<start] + kept[min(start + size, kept.count)...])
                if fails(rest) { kept = rest } else { start += size }
            }
            size = size == 1 ? 0 : size / 2
        }
        let left = Set(0..<count).subtracting(kept).sorted()
        print("seed \(seed) fails with \(kept.count) of \(count) faults:")
        let words = World(seed: seed).faultWords
        for place in kept { print("  fault \(place): \(words[place])") }
        print("  --seed \(seed) --trace --without \(left.map(String.init).joined(separator: ","))")
        for violation in World(seed: seed, leftOut: Set(left)).run().violations { print("  \(violation)") }
    }

    /// The first seed from here on that is wanted, after some that others take.
    private func wanted(from first: UInt64, after others: Int) -> UInt64 {
        var seed = first
        var others = others
        while true {
            if !live || World.isLive(seed) {
                if others == 0 { return seed }
                others -= 1
            }
            seed += 1
        }
    }

    private func many(_ first: UInt64, _ last: UInt64) throws {
        var children: [pid_t] = []
        var mine = wanted(from: first, after: 0)
        let step = max(jobs, stride)
        if jobs > 1 {
            for job in 1..<jobs {
                let start = wanted(from: first, after: job)
                guard start <= last else { break }
                let arguments =
                    [
                        CommandLine.arguments[0], "--seeds", "\(start)-\(last)", "--stride", "\(jobs)", "--failures",
                        "\(failures)",
                    ] + (live ? ["--live"] : [])
                var pointers = arguments.map { strdup($0) } + [nil]
                var child = pid_t()
                if posix_spawn(&child, "/proc/self/exe", nil, nil, &pointers, environ) == 0 { children.append(child) }
            }
        }
        var sum = Tally()
        var failed = 0
        while mine <= last, failed < failures {
            let report = World(seed: mine).run()
            sum.add(report)
            if !report.violations.isEmpty {
                failed += 1
                print("seed \(mine) FAILED: \(report.violations[0])")
                fflush(nil)
            }
            mine = wanted(from: mine, after: step)
        }
        print(sum.text)
        for child in children {
            var status: Int32 = 0
            waitpid(child, &status, 0)
            if status != 0 { failed += 1 }
        }
        if failed > 0 { throw ExitCode(1) }
    }

    /// The order of a dictionary must not differ from one process to the next: the daemon is run once more with that setting.
    static func main() {
        if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
            setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
            var pointers = CommandLine.arguments.map { strdup($0) } + [nil]
            execv("/proc/self/exe", &pointers)
        }
        main(nil)
    }
}

extension WorldReport {
    var summary: String {
        "seed \(seed): \(violations.isEmpty ? "good" : "FAILED"), \(Int(simulated)) s, \(faults.values.reduce(0, +)) faults, "
            + "\(processes) processes, \(recorded) rows kept, \(accepted) accepted, \(duplicates) repeated, \(events) events, "
            + "\(diskFaults) faults of the disk"
    }
}

/// What many seeds came to.
struct Tally {
    private var seeds = 0
    private var simulated: [Double] = []
    private var faults: [String: Int] = [:]
    private var answers: [String: Int] = [:]
    private var rows = 0
    private var remote = (changes: 0, commands: 0)
    private let began = clock()

    mutating func add(_ report: WorldReport) {
        seeds += 1
        simulated.append(report.simulated)
        rows += report.recorded
        remote.changes += report.remoteChanges
        remote.commands += report.remoteCommands
        faults.merge(report.faults, uniquingKeysWith: +)
        answers.merge(report.answers, uniquingKeysWith: +)
    }

    var text: String {
        let cpu = Double(clock() - began) / Double(CLOCKS_PER_SEC)
        let lengths = simulated.sorted()
        func share(_ part: Double) -> Int {
            lengths.isEmpty ? 0 : Int(lengths[min(lengths.count - 1, Int(Double(lengths.count) * part))])
        }
        func list(_ counts: [String: Int]) -> String {
            counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key) \($0.value)" }.joined(
                separator: ", ")
        }
        let total = simulated.reduce(0, +)
        return """
            \(seeds) seeds in \(cpu) s of CPU: \(Int(Double(seeds) / max(cpu, 0.001))) seeds/s, \(Int(total / max(cpu, 0.001))) x real time
            asset life: 10 % \(share(0.1)) s, half \(share(0.5)) s, 90 % \(share(0.9)) s, longest \(share(1)) s; \(rows) rows
            faults: \(list(faults)); per seed \(faults.values.reduce(0, +) / max(1, seeds))
            answers: \(list(answers))
            from afar: settings in force \(remote.changes), commands carried out \(remote.commands)
            """
    }
}
