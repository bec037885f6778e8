import WaypostCore

/// All metrics as text that Prometheus reads.
public enum Exposition: Sendable {
    /// The text format 0.0.4, without timestamps.
    case prometheus
    /// OpenMetrics 1.0.
    case openMetrics

    public var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// - Parameter fleeting: whether those are in it whose value passes with the time. In a file that is not written again
    ///   they would be wrong.
    public func text(_ status: Status, fleeting: Bool = true) -> String {
        var text = ""
        for metric in Metric.all where fleeting || !metric.isFleeting {
            let samples = metric.samples(status)
            if !samples.isEmpty { add(metric, samples, to: &text) }
        }
        return self == .openMetrics ? text + "# EOF\n" : text
    }

    private func add(_ metric: Metric, _ samples: [Metric.Sample], to text: inout String) {
        let family = self == .openMetrics ? metric.stem : metric.name
        text += "# HELP \(family) \(Self.escaped(metric.help))\n# TYPE \(family) \(metric.kind.rawValue)\n"
        if self == .openMetrics, let unit = metric.unit { text += "# UNIT \(family) \(unit)\n" }
        for sample in samples {
            let labels = sample.labels.map { "\($0.name)=\"\(Self.escaped($0.value, quote: true))\"" }
            let place = labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}"
            text += "\(metric.name)\(place) \(Self.number(sample.value))\n"
        }
    }

    private static func number(_ value: Double) -> String {
        if let integer = Int64(exactly: value) { return String(integer) }
        return value.isNaN ? "NaN" : value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
    }

    /// Bytes of a label, some of which a server has worded.
    private static let labelMax = 512

    /// The formats have escapes for a backslash, a line end and a quote alone. What else could control the terminal that the text
    /// is printed to is written out first.
    private static func escaped(_ text: String, quote: Bool = false) -> String {
        var escaped = ""
        for scalar in text.visible(bytesMax: labelMax, keepingLineFeeds: true).unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quote: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
