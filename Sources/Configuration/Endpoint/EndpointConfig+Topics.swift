import Profiles

extension EndpointConfig {
    /// A name that is nobody's, to see whether a topic depends on a name.
    private static let nobody = "waypost-nobody"

    /// Warns of different names that become one id in the topics of a broker, where viewers take both for the same asset.
    ///
    /// - Parameters:
    ///   - tables: of the same endpoints in the same order.
    ///   - trackables: their ids.
    static func warnOfEqualTopics(
        _ endpoints: [EndpointConfig], _ tables: [TableReader], trackables: [String]
    ) {
        for (index, table) in zip(endpoints.indices, tables) where endpoints[index].settings.profile.isForBroker {
            let endpoint = endpoints[index]
            let (own, host) = (endpoint.settings, endpoint.host)
            for other in endpoints[..<index] where other.settings.device != own.device && other.host == host {
                let both = Set(endpoint.topicsOfDevice).intersection(other.topicsOfDevice)
                guard let topic = both.min() else { continue }
                table.warn(
                    "device",
                    "found \(own.device.asTOML), which has the topic \(topic.asTOML) as \(other.settings.device.asTOML) of "
                        + "endpoint \"\(other.settings.name)\" has: set device to a name with other letters or digits of ASCII"
                )
            }
            let renderer = RequestRenderer(own)
            let ofNobody = renderer.topics(trackable: nobody).first
            var ids: [String: String] = [:]
            for id in trackables {
                guard let topic = renderer.topics(trackable: id).first, topic != ofNobody else { continue }
                guard let other = ids.updateValue(id, forKey: topic) else { continue }
                table.warn(
                    "profile",
                    "the trackables \(other.asTOML) and \(id.asTOML) have the same topic \(topic.asTOML): set the id of one of them "
                        + "in [[trackable]] to a name with other letters or digits of ASCII")
            }
        }
    }

    private var host: String? { (try? BaseURL.parse(settings.baseURL).get())?.host }

    /// Topics that depend on the name of the device.
    private var topicsOfDevice: [String] {
        var renamed = settings
        renamed.device = Self.nobody
        let fixed = Set(RequestRenderer(renamed).topics(trackable: Self.nobody))
        return RequestRenderer(settings).topics(trackable: settings.device).filter { !fixed.contains($0) }
    }
}
