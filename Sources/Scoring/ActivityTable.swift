import WaypostCore

/// A confusion table: the truth in rows, answers in columns, shares of time.
package struct ActivityTable: Sendable {
    /// The share of time that must be right, of all rows together.
    package static let target = 0.95

    package let score: ActivityScore

    package init(_ score: ActivityScore) { self.score = score }

    package var isMet: Bool { Double(score.totalRight) >= Self.target * Double(score.total) }

    package var text: String {
        let answers: [Activity.Kind?] = Activity.Kind.allCases + [nil]
        var rows = [["truth", "hours"] + answers.map { $0?.rawValue ?? "unknown" } + ["right"]]
        for truth in ActivityScore.Truth.allCases {
            guard let counts = score.counts[truth] else { continue }
            let total = counts.values.reduce(0, +)
            let cells = answers.map { answer in counts[answer].map { Self.percent($0, of: total) } ?? "" }
            rows.append(
                [truth.rawValue, MotionTable.decimal(Double(total) / 3_600_000, 1)] + cells
                    + [Self.percent(score.right[truth] ?? 0, of: total)])
        }
        rows.append(
            ["together", MotionTable.decimal(Double(score.total) / 3_600_000, 1)] + answers.map { _ in "" }
                + [Self.percent(score.totalRight, of: score.total)])
        return MotionTable.aligned(rows)
    }

    private static func percent(_ part: Int, of whole: Int) -> String {
        MotionTable.decimal(100 * Double(part) / Double(max(1, whole)), 1) + " %"
    }
}
