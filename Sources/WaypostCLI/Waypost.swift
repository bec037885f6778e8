import ArgumentParser

/// The one binary.
public struct Waypost: ParsableCommand {
    public static let configuration = CommandConfiguration(commandName: "waypost")

    public init() {}
}
