import ArgumentParser
import DriveSimulation
import WaypostCore

@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-simulate",
        abstract: "Writes the NMEA log of a simulated drive, and the truth it was made from.",
        discussion: """
            The same scenario and seed give the same drive under every noise preset, byte for byte on every machine.

              waypost-simulate --scenario city --preset street --seed 7 --output drive.nmea --truth drive.truth.tsv
              waypost-simulate --scenario day | waypost replay - --format text

            The truth file has a row per trip, per stop and per instant; the first column says which.
            """)

    @Flag(help: "List the scenarios and presets.")
    var list = false

    @Option(help: "Kind of drive; see --list.")
    var scenario = "city"

    @Option(help: "How well the receiver sees: open, street or canyon.")
    var preset = "street"

    @Option(help: "Draws the drive and, unless --noise-seed is given, the noise.")
    var seed: UInt64 = 1

    @Option(help: "Draws the noise alone.")
    var noiseSeed: UInt64?

    @Option(help: "UTC of the first epoch, yyyy-mm-ddThh:mm:ssZ.")
    var start = "2026-03-02T07:00:00Z"

    @Option(help: "Place of the first epoch, latitude,longitude in degrees (--origin=-33.9,18.4 in the south).")
    var origin = "52.52,13.405"

    @Option(help: "Epochs per second: 1, 2, 4, 5 or 10.")
    var rate = 1

    @Option(help: "End the log after this many seconds; the truth file stays whole.")
    var seconds: Int?

    @Option(help: "Sentences of an epoch, of rmc, gga, gsa and gst.")
    var sentences = "rmc,gga,gsa"

    @Option(help: "Comment line to put first, without the leading '# '; may be repeated.")
    var header: [String] = []

    @Option(name: .shortAndLong, help: "Log to write; standard output when absent.")
    var output: String?

    @Option(help: "Truth file to write.")
    var truth: String?

    func run() throws {
        if list {
            print(Self.catalogue, terminator: "")
            return
        }
        guard let scenario = Scenario.named(scenario) else {
            throw ValidationError("--scenario: there is no '\(scenario)'; --list shows them.")
        }
        var drive = SimulatedDrive(scenario, settings: try settings())

        let log = try OutputFile(path: output)
        for line in header { try log.write(Array("# \(line)\n".utf8)) }
        var epochsLeft = seconds.map { max(0, min($0, 1_000_000_000)) * rate } ?? .max
        while epochsLeft > 0, let epoch = drive.nextEpoch() {
            try log.write(epoch)
            epochsLeft -= 1
        }
        try log.close()

        guard let path = truth else { return }
        let table = TruthTable(drive)
        let file = try OutputFile(path: path)
        try file.write(Array(table.intervals.utf8))
        for sample in drive.truth.samples { try file.write(Array(table.row(sample).utf8)) }
        try file.close()
    }

    private func settings() throws -> SimulatedDrive.Settings {
        guard let preset = NoisePreset.named(preset) else {
            throw ValidationError("--preset: there is no '\(preset)'; expected open, street or canyon.")
        }
        guard [1, 2, 4, 5, 10].contains(rate) else {
            throw ValidationError("--rate: found \(rate), expected 1, 2, 4, 5 or 10.")
        }
        guard let start = UTCTime(argument: start) else {
            throw ValidationError("--start: found '\(start)', expected a UTC time like 2026-03-02T07:00:00Z.")
        }
        guard let origin = Coordinate(argument: origin) else {
            throw ValidationError("--origin: found '\(origin)', expected latitude,longitude in degrees.")
        }
        return SimulatedDrive.Settings(
            seed: seed, noiseSeed: noiseSeed, preset: preset, start: start, origin: origin, period: 1000 / rate,
            sentences: try chosenSentences())
    }

    private func chosenSentences() throws -> NMEAWriter.Sentences {
        let known: [Substring: NMEAWriter.Sentences] = ["rmc": .rmc, "gga": .gga, "gsa": .gsa, "gst": .gst]
        var chosen: NMEAWriter.Sentences = []
        for name in sentences.split(separator: ",") {
            guard let sentence = known[name] else {
                throw ValidationError("--sentences: there is no '\(name)'; expected some of rmc,gga,gsa,gst.")
            }
            chosen.insert(sentence)
        }
        guard !chosen.isEmpty else {
            throw ValidationError("--sentences: the list is empty; expected some of rmc,gga,gsa,gst.")
        }
        return chosen
    }

    private static var catalogue: String {
        let scenarios = Scenario.all + Scenario.onTheWay
        let width = scenarios.map(\.name.count).max() ?? 0
        var text = "scenarios\n"
        for scenario in scenarios {
            let gap = String(repeating: " ", count: width - scenario.name.count + 2)
            text += "  \(scenario.name)\(gap)\(scenario.summary)\n"
        }
        return text + "presets\n  " + NoisePreset.all.map(\.name).joined(separator: ", ") + "\n"
    }
}
