import ArgumentParser

@main
struct Score: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-score",
        abstract: "Scores the decisions of tracking: on simulated drives against their truth, and on logs.",
        subcommands: [
            FenceCost.self
        ])
}
