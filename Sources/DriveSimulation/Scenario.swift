import Positioning

/// A named kind of drive. Its script is drawn anew for each seed, so that no threshold is tuned on one drive.
public struct Scenario: Sendable {
    /// As on the command line: `walk-drive-walk`.
    public let name: String
    /// One line for a list.
    public let summary: String
    /// Writes the script.
    public let legs: @Sendable (inout SplitMix64) -> [Leg]

    public init(name: String, summary: String, legs: @escaping @Sendable (inout SplitMix64) -> [Leg]) {
        self.name = name
        self.summary = summary
        self.legs = legs
    }

    /// nil when there is no scenario of that name.
    public static func named(_ name: String) -> Scenario? { (all + onTheWay).first { $0.name == name } }
}
