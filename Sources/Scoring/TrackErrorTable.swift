import DriveSimulation

/// Which simulated drives count as car drives; a jam and a walk are shown, not judged.
package struct TrackErrorScenario: Sendable {
    package let scenario: Scenario
    package let isCar: Bool

    package static let all: [TrackErrorScenario] = Scenario.all.filter { $0.name != "parked-day" && $0.name != "day" }
        .map { TrackErrorScenario(scenario: $0, isCar: !["jam", "walk-drive-walk"].contains($0.name)) }
}

/// Scores of many drives against the targets.
package struct TrackErrorTable: Sendable {
    private struct Row {
        var name: String
        var isCar: Bool
        /// By bound, then by delay.
        var scores: [TrackErrorScore]
    }

    /// Metres and seconds.
    package static let bounds = [5.0, 10, 20]
    package static let delays = [30, 120]

    /// What the points of all car drives together may come to, at the first bound.
    private static let targets: [(delay: Int, overLeast: Double, overBaseline: Double)] = [
        (30, 1.10, 0.65), (120, 1.25, 0.60),
    ]

    private var rows: [Row] = []

    package init() {}

    package mutating func add(_ name: String, _ bytes: [UInt8], isCar: Bool) {
        let scores = Self.bounds.flatMap { bound in
            Self.delays.map { TrackErrorScore(bytes, bound: bound, maxDelay: $0) }
        }
        rows.append(Row(name: name, isCar: isCar, scores: scores))
    }

    /// What is not as it should be; empty = all targets are met.
    package var missed: [String] { verdicts.filter { !$0.met }.map(\.text) }

    private var verdicts: [(met: Bool, text: String)] {
        let all = rows.flatMap { row in row.scores.map { (row.name, $0) } }
        var verdicts: [(met: Bool, text: String)] = []
        for bound in Self.bounds {
            let worst = all.filter { $0.1.bound == bound }.max { $0.1.worst < $1.1.worst }
            guard let worst else { continue }
            verdicts.append(
                (
                    worst.1.worst <= bound + TrackErrorScore.tolerance,
                    "bound \(Int(bound)) m: largest verified error \(fixed(worst.1.worst, 3)) m (\(worst.0), "
                        + "\(worst.1.worstTime?.iso8601 ?? "–"))"
                ))
        }
        let uncovered = all.reduce(0) { $0 + $1.1.uncovered }
        verdicts.append((uncovered == 0, "fixes that no two records have between them: \(uncovered)"))
        for target in Self.targets {
            let sum = Sum(rows.filter(\.isCar).map { $0.scores }, bound: Self.bounds[0], delay: target.delay)
            guard sum.least > 0, sum.baseline > 0 else { continue }
            verdicts.append(
                (
                    sum.overLeast <= target.overLeast,
                    "5 m, \(target.delay) s, car drives: \(fixed(sum.overLeast, 3)) × the least possible, at most "
                        + fixed(target.overLeast, 2)
                ))
            verdicts.append(
                (
                    sum.overBaseline <= target.overBaseline,
                    "5 m, \(target.delay) s, car drives: \(fixed(sum.overBaseline, 3)) × the plain triggers, at most "
                        + fixed(target.overBaseline, 2)
                ))
        }
        return verdicts
    }

    private struct Sum {
        var kept = 0
        var least = 0
        var baseline = 0
        var worst = 0.0
        var wait = 0.0
        var metres = 0.0

        init(_ rows: [[TrackErrorScore]], bound: Double, delay: Int) {
            for score in rows.joined() where score.bound == bound && score.maxDelay == delay {
                kept += score.kept
                least += score.least
                baseline += score.baseline
                worst = max(worst, score.worst)
                wait = max(wait, score.longestWait)
                metres += score.metres
            }
        }

        var overLeast: Double { Double(kept) / Double(max(1, least)) }
        var overBaseline: Double { Double(kept) / Double(max(1, baseline)) }

        var cells: String {
            let perKilometre = metres >= 1 ? fixed(Double(kept) / metres * 1000, 1) : "–"
            return [
                left(String(kept), 7), left(perKilometre, 6), least > 0 ? left(fixed(overLeast, 3), 7) : left("–", 7),
                baseline > 0 ? left(fixed(overBaseline, 3), 7) : left("–", 7), left(fixed(worst, 2), 7),
                left(fixed(wait, 1), 6),
            ].joined(separator: " ")
        }
    }

    package var text: String {
        var lines: [String] = []
        for delay in Self.delays {
            for bound in Self.bounds {
                lines.append("bound \(Int(bound)) m, delay \(delay) s")
                lines.append(right("", 36) + "   kept    /km × least × plain  SED m  wait s")
                if bound == Self.bounds[0] {
                    for row in rows {
                        let sum = Sum([row.scores], bound: bound, delay: delay)
                        lines.append(right(row.name + (row.isCar ? "" : " *"), 36) + sum.cells)
                    }
                }
                let cars = Sum(rows.filter(\.isCar).map(\.scores), bound: bound, delay: delay)
                lines.append(right("car drives together", 36) + cars.cells)
                lines.append("")
            }
        }
        if rows.contains(where: { !$0.isCar }) { lines.append("* shown, not judged by its number of points\n") }
        lines += verdicts.map { ($0.met ? "PASS  " : "MISS  ") + $0.text }
        return lines.joined(separator: "\n")
    }
}

private func fixed(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite, abs(value) < 1e12 else { return "–" }
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    let whole = Int((value * scale).rounded())
    let digits = String(abs(whole))
    let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
    return (whole < 0 ? "-" : "") + padded.dropLast(decimals) + "." + padded.suffix(decimals)
}

private func left(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
}

private func right(_ text: String, _ width: Int) -> String {
    String(text.prefix(width)) + String(repeating: " ", count: max(0, width - text.count))
}
