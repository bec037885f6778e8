/// A number of `Status` as Prometheus and OpenMetrics know it.
public struct Metric: Sendable {
    public enum Kind: String, Sendable { case counter, gauge }

    /// The member of `Status` that has it.
    public enum Group: String, Sendable {
        case daemon
        case motion
        case source
        case power
        case queue
        case fenceSource = "fence_source"
        case beaconSource = "beacon_source"
        case endpoint
    }

    /// Where a sample belongs: `endpoint="main"`, `reason="timeout"`.
    public struct Label: Hashable, Sendable {
        public var name: String
        public var value: String
    }

    public struct Sample: Hashable, Sendable {
        public var labels: [Label] = []
        public var value: Double
    }

    public let group: Group
    /// Its name in `waypost status --json` and in the tables of docs/operations.md.
    public let field: String
    /// With prefix and unit, without the `_total` of a counter.
    public let stem: String
    public let kind: Kind
    /// At the end of the stem; nil = a plain number.
    public let unit: String?
    /// As in docs/operations.md.
    public let help: String
    /// Its value passes with the time although nothing happens.
    public let isFleeting: Bool
    /// None where the number is unknown or does not apply.
    public let samples: @Sendable (Status) -> [Sample]

    /// - Parameter words: the name without prefix and unit; nil = the field, without its unit.
    init(
        _ kind: Kind, _ group: Group, _ field: String, as words: String? = nil, unit: String? = nil,
        fleeting: Bool = false, _ help: String, samples: @escaping @Sendable (Status) -> [Sample]
    ) {
        (self.kind, self.group, self.field, self.unit, self.help) = (kind, group, field, unit, help)
        isFleeting = fleeting
        var name = words ?? (field.hasSuffix("_s") ? String(field.dropLast(2)) : field)
        if group != .daemon, !name.hasPrefix("\(group.rawValue)_") { name = "\(group.rawValue)_\(name)" }
        if let unit, !name.hasSuffix("_\(unit)") { name += "_\(unit)" }
        stem = "waypost_\(name)"
        self.samples = samples
    }

    /// With the `_total` of a counter.
    public var name: String { kind == .counter ? "\(stem)_total" : stem }

    /// One number of the daemon.
    static func one(
        _ kind: Kind, _ group: Group, _ field: String, as words: String? = nil, unit: String? = nil,
        fleeting: Bool = false, _ help: String, _ value: @escaping @Sendable (Status) -> (any MetricValue)?
    ) -> Metric {
        Metric(kind, group, field, as: words, unit: unit, fleeting: fleeting, help) { status in
            value(status).map { [Sample(value: $0.metricValue)] } ?? []
        }
    }

    /// One number for each endpoint.
    static func each(
        _ kind: Kind, _ field: String, as words: String? = nil, unit: String? = nil, fleeting: Bool = false,
        _ help: String, _ value: @escaping @Sendable (EndpointStatus) -> (any MetricValue)?
    ) -> Metric {
        Metric(kind, .endpoint, field, as: words, unit: unit, fleeting: fleeting, help) { status in
            status.endpoints.compactMap { endpoint in
                value(endpoint).map { Sample(labels: [.init(endpoint)], value: $0.metricValue) }
            }
        }
    }

    /// One number for each server that lists geofences.
    static func eachFenceSource(
        _ kind: Kind, _ field: String, unit: String? = nil, fleeting: Bool = false, _ help: String,
        _ value: @escaping @Sendable (ListSourceStatus) -> (any MetricValue)?
    ) -> Metric {
        eachListSource(kind, .fenceSource, field, unit, fleeting, help, of: { $0.motion.geofences?.sources }, value)
    }

    /// One number for each server that lists regions of beacons.
    static func eachBeaconSource(
        _ kind: Kind, _ field: String, unit: String? = nil, fleeting: Bool = false, _ help: String,
        _ value: @escaping @Sendable (ListSourceStatus) -> (any MetricValue)?
    ) -> Metric {
        eachListSource(kind, .beaconSource, field, unit, fleeting, help, of: { $0.beacons?.sources }, value)
    }

    private static func eachListSource(
        _ kind: Kind, _ group: Group, _ field: String, _ unit: String?, _ fleeting: Bool, _ help: String,
        of sources: @escaping @Sendable (Status) -> [ListSourceStatus]?,
        _ value: @escaping @Sendable (ListSourceStatus) -> (any MetricValue)?
    ) -> Metric {
        Metric(kind, group, field, unit: unit, fleeting: fleeting, help) { status in
            (sources(status) ?? []).compactMap { source in
                value(source).map {
                    Sample(labels: [Label(name: "source", value: source.name)], value: $0.metricValue)
                }
            }
        }
    }

    /// One number for each endpoint and reason.
    static func byReason(
        _ kind: Kind, _ field: String, by label: String, _ help: String,
        _ values: @escaping @Sendable (EndpointStatus) -> Named<Int>?
    ) -> Metric {
        Metric(kind, .endpoint, field, help) { status in
            status.endpoints.flatMap { endpoint in
                (values(endpoint)?.entries ?? []).map {
                    Sample(
                        labels: [.init(endpoint), Label(name: label, value: $0.name)], value: Double($0.value))
                }
            }
        }
    }

    /// 1 under the state in force, 0 under the others.
    static func states(
        _ group: Group, _ field: String, as words: String? = nil, _ all: [String], _ help: String,
        _ state: @escaping @Sendable (Status) -> String?
    ) -> Metric {
        Metric(.gauge, group, field, as: words, help) { status in
            state(status).map { state in all.map { Sample(state: $0, isOn: $0 == state) } } ?? []
        }
    }
}

extension Metric.Label {
    fileprivate init(_ endpoint: EndpointStatus) { self.init(name: "endpoint", value: endpoint.name) }
}

extension Metric.Sample {
    init(labels: [Metric.Label] = [], state: String, isOn: Bool) {
        self.init(labels: labels + [.init(name: "state", value: state)], value: isOn ? 1 : 0)
    }

    /// Of an endpoint.
    static func states(of endpoint: EndpointStatus, _ all: [String]) -> [Self] {
        all.map { Self(labels: [.init(endpoint)], state: $0, isOn: $0 == endpoint.state) }
    }
}

/// What a status holds as a number; a flag is 1 or 0.
protocol MetricValue: Sendable { var metricValue: Double { get } }

extension Int: MetricValue { var metricValue: Double { Double(self) } }
extension Int64: MetricValue { var metricValue: Double { Double(self) } }
extension Double: MetricValue { var metricValue: Double { self } }
extension Bool: MetricValue { var metricValue: Double { self ? 1 : 0 } }
