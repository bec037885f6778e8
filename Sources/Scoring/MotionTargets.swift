/// A column of the table of targets: presets that share them.
package enum ScoreColumn: String, CaseIterable, Sendable {
    case openStreet = "open, street"
    case canyon

    package init(preset: String) { self = preset == "canyon" ? .canyon : .openStreet }
}

/// What was scored under one column. Queues are apart, since creeping for half an hour is a case of its own.
package struct ColumnScore: Sendable {
    package var drives = MotionScore()
    package var jam = MotionScore()

    package init() {}

    package mutating func add(_ score: MotionScore, scenario: String) {
        if scenario == "jam" { jam += score } else { drives += score }
    }

    var all: MotionScore {
        var all = drives
        all += jam
        return all
    }
}

/// One row of the table: a metric, its targets, and whether a few drives are enough to judge it.
package struct MotionTarget: Sendable {
    package enum Unit: Sendable {
        case number
        case decimal
        case metres
        case seconds
        case percent
    }

    package let name: String
    package let unit: Unit
    /// What must hold, in words, and the test of it.
    let limits: [ScoreColumn: Limit]
    /// Where it must hold on few drives too: no quantile, and nothing that may happen now and then.
    package let robustIn: Set<ScoreColumn>
    let value: @Sendable (ColumnScore) -> Double?
    /// A second metric that is enough by itself, and its unit.
    let alternative: (@Sendable (ColumnScore) -> Double?)?

    struct Limit: Sendable {
        var range: ClosedRange<Double>
        var alternativeMax: Double?
        var text: String
    }

    package func text(in column: ScoreColumn) -> String { limits[column]?.text ?? "" }

    package func value(of score: ColumnScore) -> Double? { value(score) }

    /// nil where nothing was measured, or nothing is asked.
    package func isMet(by score: ColumnScore, in column: ScoreColumn) -> Bool? {
        guard let limit = limits[column], let value = value(score) else { return nil }
        if limit.range.contains(value) { return true }
        guard let most = limit.alternativeMax, let other = alternative?(score) else { return false }
        return other <= most
    }
}

extension MotionTarget {
    private static func row(
        _ name: String, _ unit: Unit, open: Limit?, canyon: Limit?, robustIn: Set<ScoreColumn> = [],
        alternative: (@Sendable (ColumnScore) -> Double?)? = nil, _ value: @escaping @Sendable (ColumnScore) -> Double?
    ) -> MotionTarget {
        var limits: [ScoreColumn: Limit] = [:]
        limits[.openStreet] = open
        limits[.canyon] = canyon
        return MotionTarget(
            name: name, unit: unit, limits: limits, robustIn: robustIn, value: value, alternative: alternative)
    }

    private static func upTo(_ most: Double, _ text: String) -> Limit {
        Limit(range: -.infinity...most, alternativeMax: nil, text: text)
    }

    private static func within(_ range: Double, _ text: String) -> Limit {
        Limit(range: -range...range, alternativeMax: nil, text: text)
    }

    private static let none = Limit(range: -.infinity...0, alternativeMax: nil, text: "0")

    private static func quantile(
        _ share: Double, _ part: KeyPath<ColumnScore, MotionScore> & Sendable,
        _ values: KeyPath<MotionScore, [Double]> & Sendable
    ) -> @Sendable (ColumnScore) -> Double? {
        { MotionScore.quantile(share, of: $0[keyPath: part][keyPath: values]) }
    }

    /// The one farthest from zero.
    private static func extreme(
        _ part: KeyPath<ColumnScore, MotionScore> & Sendable, _ values: KeyPath<MotionScore, [Double]> & Sendable
    ) -> @Sendable (ColumnScore) -> Double? {
        { $0[keyPath: part][keyPath: values].max { abs($0) < abs($1) } }
    }

    private static func perDay(_ amount: Double, _ score: MotionScore) -> Double? {
        score.parkedDays > 0 ? amount / score.parkedDays : nil
    }

    /// The gate, in the order of the table.
    package static let all: [MotionTarget] = [
        row("false trips / parked day", .decimal, open: none, canyon: upTo(1, "≤ 1"), robustIn: [.openStreet]) {
            perDay(Double($0.all.falseTrips), $0.all)
        },
        row("phantom / parked day after the stop", .metres, open: upTo(0.05, "0"), canyon: upTo(0.05, "0")) {
            perDay($0.all.phantomParked, $0.all)
        },
        row("phantom / stop while stopping", .metres, open: upTo(1, "≤ 1"), canyon: upTo(10, "≤ 10")) {
            let score = $0.all
            return score.trips > 0 ? score.phantomStopping / Double(score.trips) : nil
        },
        row("missed trips ≥ 300 m", .number, open: none, canyon: none, robustIn: [.openStreet, .canyon]) {
            Double($0.all.missed)
        },
        row("merged trips", .number, open: none, canyon: none, robustIn: [.openStreet]) {
            Double($0.all.merged)
        },
        row("stops not seen", .number, open: none, canyon: none, robustIn: [.openStreet]) {
            Double($0.all.unseenStops)
        },
        row(
            "start latency, median", .metres,
            open: Limit(range: 0...40, alternativeMax: 10, text: "≤ 40 m or 10 s"),
            canyon: Limit(range: 0...40, alternativeMax: 10, text: "≤ 40 m or 10 s"),
            alternative: quantile(0.5, \.all, \.startSeconds), quantile(0.5, \.all, \.startMetres)),
        row("  the same in time", .seconds, open: nil, canyon: nil, quantile(0.5, \.all, \.startSeconds)),
        row(
            "start latency, p95", .metres,
            open: Limit(range: 0...80, alternativeMax: 20, text: "≤ 80 m or 20 s"),
            canyon: Limit(range: 0...80, alternativeMax: 20, text: "≤ 80 m or 20 s"),
            alternative: quantile(0.95, \.all, \.startSeconds), quantile(0.95, \.all, \.startMetres)),
        row("  the same in time", .seconds, open: nil, canyon: nil, quantile(0.95, \.all, \.startSeconds)),
        row(
            "departed error, p95", .metres, open: upTo(15, "≤ 15"), canyon: upTo(25, "≤ 25"),
            quantile(0.95, \.drives, \.departedErrors)),
        row(
            "  in a jam", .metres, open: upTo(20, "≤ 20"), canyon: upTo(25, "≤ 25"),
            quantile(0.95, \.jam, \.departedErrors)),
        row("  dated too early, p95", .seconds, open: nil, canyon: nil, quantile(0.95, \.all, \.departedEarly)),
        row(
            "stop delay, median", .seconds, open: within(2, "±2"), canyon: within(5, "≤ 5"),
            quantile(0.5, \.all, \.stopDelays)),
        row(
            "stop delay, farthest", .seconds, open: within(2, "±2"), canyon: within(300, "≤ 300"),
            extreme(\.drives, \.stopDelays)),
        row(
            "  in a jam", .seconds, open: within(150, "≤ 150"), canyon: within(300, "≤ 300"),
            extreme(\.jam, \.stopDelays)),
        row(
            "  of a blind end, after it could be known", .seconds, open: within(2, "±2"), canyon: within(2, "±2"),
            extreme(\.all, \.blindStopDelays)),
        row("false stops", .number, open: none, canyon: none, robustIn: [.openStreet]) {
            Double($0.all.falseStops)
        },
        row(
            "stop F1", .decimal, open: Limit(range: 0.98...1, alternativeMax: nil, text: "≥ 0.98"),
            canyon: Limit(range: 0.95...1, alternativeMax: nil, text: "≥ 0.95")
        ) { $0.all.stopF1 },
        row("odometer", .percent, open: within(0.015, "±1.5 %"), canyon: within(0.02, "±2 %")) {
            $0.drives.odometerError
        },
        row("  in a jam", .percent, open: within(0.03, "±3 %"), canyon: within(0.03, "±3 %")) { $0.jam.odometerError },
        row("moving fix from the kept line, farthest", .metres, open: nil, canyon: nil) { $0.drives.line.worst },
        row("  in a jam", .metres, open: nil, canyon: upTo(25, "≤ 25")) { $0.jam.line.worst },
        row("  beyond bound and accuracy", .metres, open: upTo(5, "≤ 5"), canyon: nil) { $0.all.line.excess },
        row("  of those that a reflection put elsewhere", .metres, open: nil, canyon: nil) { $0.all.reflections.worst },
        row("locations kept per km", .decimal, open: nil, canyon: nil) {
            $0.drives.metres > 0 ? Double($0.drives.kept) / $0.drives.metres * 1000 : nil
        },
    ]
}
