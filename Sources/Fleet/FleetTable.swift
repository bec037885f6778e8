/// Figures of several runs as a table in Markdown.
package struct FleetTable {
    private var lines = [
        "| scenario | mean per s | peak 60 s: during; after | peak 1 s: during; after | connections | handshakes, peak per s | GB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]

    package init() {}

    package var text: String { lines.joined(separator: "\n") }

    package mutating func add(_ run: FleetRun, _ figures: FleetFigures) {
        let mean = figures.rate(run.calm)
        func peaks(_ window: Int) -> String {
            let after = Self.ratio(figures.peak(window: window, run.after), mean)
            return run.outage.map { "\(Self.ratio(figures.peak(window: window, $0), mean)); \(after)" } ?? after
        }
        let cells = [
            run.scenario.rawValue, Self.decimal(mean), peaks(60), peaks(1), "\(figures.connectionPeak)",
            "\(figures.handshakes()), \(Int(figures.handshakePeak(window: 1)))",
            Self.decimal(Double(figures.bytes) / 1e9),
        ]
        lines.append("| " + cells.joined(separator: " | ") + " |")
    }

    private static func ratio(_ value: Double, _ mean: Double) -> String { mean > 0 ? decimal(value / mean) : "–" }

    /// With two digits after the point.
    package static func decimal(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }
}
