import ArgumentParser

@main
struct Score: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-score",
        abstract: "Scores the decisions of tracking: on simulated drives against their truth, and on logs.",
        subcommands: [
            MotionCommand.self, ActivityCommand.self, TrackErrorCommand.self, FenceCost.self,
        ])
}
