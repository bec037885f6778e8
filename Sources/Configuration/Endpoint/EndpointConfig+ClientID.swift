import Profiles
import Protocols

extension EndpointConfig {
    /// What makes a connection to a broker, but for the client id. Endpoints with equal ones share the connection.
    private struct Connection: Hashable {
        var url: String
        /// Without the client id, and with names instead of secrets.
        var session: BrokerSession
        /// May be the user of the session.
        var device: String
        var auth: EndpointAuth?
        var secrets: [String: Secret.Reference]
        var tls: EndpointTLS?
        /// Each gets tokens of its own, by which it is another session; nil = it gets none.
        var tokenOf: String?
    }

    private struct Client {
        var name: String
        var host: String
        var id: String
        var connection: Connection
    }

    /// Gives each endpoint of a broker with the default client id one that no other session has: the first keeps `waypost-` and
    /// the device, to which rights at the broker may be bound. Endpoints at one host count as endpoints of one broker.
    ///
    /// - Parameter tables: of the same endpoints in the same order.
    static func nameClients(_ endpoints: inout [EndpointConfig], _ tables: [TableReader]) {
        var clients: [Client] = []
        for (index, table) in zip(endpoints.indices, tables) {
            guard var client = endpoints[index].client else { continue }
            let settings = endpoints[index].settings
            let others = clients.filter { $0.host == client.host }
            if settings.clientID == nil, client.id == "waypost-\(settings.device)" {
                if let same = others.first(where: { $0.connection == client.connection }) {
                    client.id = same.id
                } else if others.contains(where: { $0.id == client.id }) {
                    client.id += "-\(settings.name)"
                }
                endpoints[index].settings.clientID = client.id
            }
            if let other = others.first(where: { $0.id == client.id && $0.connection != client.connection }) {
                endpoints[index].settings.clientIDSharedWith = other.name
                table.warn("client_id", EndpointSettings.words(clientIDSharedWith: other.name))
            }
            clients.append(client)
        }
    }

    /// nil where it is none of a broker.
    private var client: Client? {
        guard var session = RequestRenderer(settings).connectRequest()?.broker?.session,
            let url = try? BaseURL.parse(settings.baseURL).get()
        else { return nil }
        let id = session.clientID
        session.clientID = ""
        let hasToken =
            switch auth {
            case .tokenCommand, .oauth2: true
            case .basic, .bearer, .header, nil: false
            }
        return Client(
            name: settings.name, host: url.host, id: id,
            connection: Connection(
                url: settings.baseURL, session: session, device: settings.device, auth: auth, secrets: secrets,
                tls: tls, tokenOf: hasToken ? settings.name : nil))
    }
}
