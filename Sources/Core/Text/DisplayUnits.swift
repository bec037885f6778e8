/// In what people read speeds, and with them long ways. Programs get metres per second and metres.
public enum DisplayUnits: String, Hashable, Sendable, CaseIterable {
    case metric = "km/h"
    case imperial = "mph"
    case nautical = "knots"

    /// Metres of a long way.
    package var metres: Double {
        switch self {
        case .metric: 1000
        case .imperial: 1609.344
        case .nautical: 1852
        }
    }

    /// `km`
    package var way: String {
        switch self {
        case .metric: "km"
        case .imperial: "mi"
        case .nautical: "nmi"
        }
    }

    /// A speed in m/s in these units.
    package func speed(_ metresPerSecond: Double) -> Double { metresPerSecond * 3600 / metres }
}
