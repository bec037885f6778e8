import Configuration
import Delivery

/// What the answers of each server mean to its endpoint, as its profile changes the rules of HTTP.
public struct AnswerReport: CustomStringConvertible {
    private let endpoints: [EndpointSettings]

    public init(_ config: AgentConfig) { endpoints = config.endpoints.map(\.settings) }

    /// Comments of TOML, so that they may follow a configuration.
    public var description: String {
        endpoints.map { endpoint in
            let profile = endpoint.profile
            let lines = Self.lines(AnswerTable(profile.response).rows).map { "#   \($0)\n" }
            return "\n# What an answer means to endpoint \(endpoint.name), profile \(profile.name):\n\(lines.joined())"
        }.joined()
    }

    private static func lines(_ table: [AnswerTable.Row]) -> [String] {
        let rows =
            table.map { row in
                let ranges = row.statuses.map {
                    $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)"
                }
                let parts = [ranges.joined(separator: ", "), row.words]
                return (row.verdict, parts.filter { !$0.isEmpty }.joined(separator: ": "))
            } + [("no answer", "including a cut-off head or only a 1xx: sent again")]
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { $0 + String(repeating: " ", count: width - $0.count + 2) + $1 }
    }
}
