/// The targets and what was measured, as text for people.
package struct MotionTable: Sendable {
    package var tracker: [ScoreColumn: ColumnScore]
    package var baseline: [ScoreColumn: ColumnScore]

    package init(tracker: [ScoreColumn: ColumnScore], baseline: [ScoreColumn: ColumnScore]) {
        self.tracker = tracker
        self.baseline = baseline
    }

    /// - Parameter robust: only the targets that few drives can judge.
    /// - Returns: the names of the targets that were missed, with their column.
    package func missed(robust: Bool = false) -> [String] {
        MotionTarget.all.flatMap { target in
            ScoreColumn.allCases.compactMap { column in
                guard !robust || target.robustIn.contains(column), let score = tracker[column],
                    target.isMet(by: score, in: column) == false
                else { return nil }
                return "\(target.name.drop { $0 == " " }) (\(column.rawValue))"
            }
        }
    }

    package var text: String {
        let columns = ScoreColumn.allCases.filter { tracker[$0] != nil }
        var rows = [["metric"] + columns.flatMap { ["target", $0.rawValue, "", "plain"] }]
        for target in MotionTarget.all {
            var row = [target.name]
            for column in columns {
                let verdict = tracker[column].flatMap { target.isMet(by: $0, in: column) }
                row += [
                    target.text(in: column), Self.text(tracker[column].flatMap(target.value(of:)), target.unit),
                    verdict.map { $0 ? "PASS" : "MISS" } ?? "",
                    Self.text(baseline[column].flatMap(target.value(of:)), target.unit),
                ]
            }
            rows.append(row)
        }
        var amounts = ["scored: trips; parked days; hours of trips"]
        for column in columns {
            let all = tracker[column]?.all ?? MotionScore()
            amounts += [
                "",
                "\(all.trips); \(Self.decimal(all.parkedDays, 1)); \(Self.decimal(all.tripSeconds / 3600, 1))", "", "",
            ]
        }
        return Self.aligned(rows + [amounts])
    }

    static func text(_ value: Double?, _ unit: MotionTarget.Unit) -> String {
        guard let value else { return "–" }
        switch unit {
        case .number: return decimal(value, 0)
        case .decimal: return decimal(value, 3)
        case .metres: return decimal(value, 1) + " m"
        case .seconds: return decimal(value, 1) + " s"
        case .percent: return (value > 0 ? "+" : "") + decimal(100 * value, 2) + " %"
        }
    }

    static func decimal(_ value: Double, _ digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e12 else { return "–" }
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int((value * Double(scale)).rounded())
        let (whole, fraction) = abs(scaled).quotientAndRemainder(dividingBy: scale)
        let sign = scaled < 0 ? "-" : ""
        guard digits > 0 else { return "\(sign)\(whole)" }
        let text = String(fraction)
        return "\(sign)\(whole).\(String(repeating: "0", count: digits - text.count))\(text)"
    }

    static func aligned(_ rows: [[String]]) -> String {
        let widths = (0..<(rows.first?.count ?? 0)).map { index in rows.map { $0[index].count }.max() ?? 0 }
        return rows.map { row in
            let cells = zip(row, widths).enumerated().map { index, cell in
                let gap = String(repeating: " ", count: cell.1 - cell.0.count)
                return index == 0 ? cell.0 + gap : gap + cell.0
            }
            return String(cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed()) + "\n"
        }.joined()
    }
}
