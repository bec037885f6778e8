import WaypostCore

/// A named kind of drive. Its script is drawn anew for each seed, so that no threshold is tuned on one drive.
package struct Scenario: Sendable {
    /// As on the command line: `walk-drive-walk`.
    package let name: String
    /// One line for a list.
    package let summary: String
    /// Writes the script.
    package let legs: @Sendable (inout SplitMix64) -> [Leg]

    package init(name: String, summary: String, legs: @escaping @Sendable (inout SplitMix64) -> [Leg]) {
        self.name = name
        self.summary = summary
        self.legs = legs
    }

    /// nil when there is no scenario of that name.
    package static func named(_ name: String) -> Scenario? { (all + onTheWay).first { $0.name == name } }
}
