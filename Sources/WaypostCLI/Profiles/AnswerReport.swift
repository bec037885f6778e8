import Configuration
import Profiles
import Protocols

/// What the answers of each server mean to its endpoint, as its profile changes the rules of HTTP.
package struct AnswerReport: CustomStringConvertible {
    private let endpoints: [EndpointSettings]

    package init(_ config: AgentConfig) { endpoints = config.endpoints.map(\.settings) }

    /// Comments of TOML, so that they may follow a configuration.
    package var description: String {
        endpoints.map { endpoint in
            let profile = endpoint.profile
            let table =
                profile.isForBroker ? Self.lines(ofBroker: endpoint) : Self.lines(AnswerTable(profile.response).rows)
            let lines = table.map { "#   \($0)\n" }
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
        return aligned(rows)
    }

    /// What the reason codes of MQTT mean.
    private static func lines(ofBroker endpoint: EndpointSettings) -> [String] {
        let rows = MQTTMeaning.allCases.map { meaning in
            let codes = MQTTReason.all(meaning: meaning).map(\.code).joined(separator: ", ")
            let what =
                switch meaning {
                case .accepted: "settled"
                case .notConfirmed: noSubscriber(endpoint)
                case .retry: "sent again"
                case .slowDown: "sent again later, and less of it"
                case .auth: "the credential is read again, then the endpoint pauses"
                case .misconfigured: "the endpoint pauses"
                case .bisect: "the others are sent; a row refused alone again and again is quarantined"
                case .taken:
                    "another client has this client id: nothing is sent (a pause before any acceptance)"
                case .version: "again with MQTT 3.1.1, then the endpoint pauses"
                }
            return (meaning.rawValue, "\(codes): \(what)")
        }
        return aligned(rows + [("no answer", "the connection ended: what is not answered is sent again, one by one")])
    }

    private static func noSubscriber(_ endpoint: EndpointSettings) -> String {
        switch (endpoint.delivery, endpoint.noSubscriber) {
        case (.latest, _): "settled, since only the newest counts"
        case (.all, .accept): "settled, since no_subscriber = \"accept\""
        case (.all, .hold): "not stored: only the oldest is sent again"
        }
    }

    private static func aligned(_ rows: [(String, String)]) -> [String] {
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { $0 + String(repeating: " ", count: width - $0.count + 2) + $1 }
    }
}
