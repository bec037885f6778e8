import Configuration
import Delivery
import Network
import Profiles
import Protocols
import Queue
import WaypostCore
import WaypostHost

/// The configured endpoints: a delivery for each one with a cursor of its own, and the credentials of all.
final class Endpoints {
    let deliveries: [EndpointDelivery]
    /// In the order of the configuration.
    private var credentials: [EndpointCredentials]
    private let loop: EventLoop
    private let makeCredentials: (EndpointConfig) -> EndpointCredentials

    /// - Parameters:
    ///   - depths: of the cursors, as the outbox was opened.
    ///   - inFlight: batches of all endpoints that an earlier process formed.
    ///   - outbox: the uuid of the queue.
    init(
        _ configs: [EndpointConfig], depths: [EndpointDepth], inFlight: [Batch], outbox: [UInt8], recorder: Recorder,
        uplink: any Uplink, log: AgentLog, loop: EventLoop, notes: ContactNotes = ContactNotes(.none),
        makeCredentials: @escaping (EndpointConfig) -> EndpointCredentials
    ) {
        self.loop = loop
        self.makeCredentials = makeCredentials
        let credentials = configs.map(makeCredentials)
        self.credentials = credentials
        let routes = Self.routes(configs, credentials)
        deliveries = routes.filter { $0.settings.backupFor == nil }.map { primary in
            let spares = routes.filter { $0.settings.backupFor == primary.settings.name }
            return EndpointDelivery(
                routes: [primary] + spares, depth: depths.first { $0.endpoint == primary.settings.name },
                batches: inFlight, outbox: outbox, uplink: uplink, recorder: recorder, log: log, loop: loop,
                share: FleetShare.of(outbox: outbox, endpoint: primary.settings.name), notes: notes,
                jitter: { loop.host.jitter })
        }
        for (index, delivery) in deliveries.enumerated() {
            delivery.willForm = { [unowned self] now, sendsAt in
                for (other, joining) in deliveries.enumerated() where other != index {
                    if let sendsAt { joining.commitComes(joining: sendsAt, at: now) } else { joining.mayJoin(at: now) }
                }
            }
        }
    }

    private static func routes(
        _ configs: [EndpointConfig], _ credentials: [EndpointCredentials]
    ) -> [EndpointDelivery.Route] {
        zip(configs, credentials).map { EndpointDelivery.Route(settings: $0.settings, credentials: $1) }
    }

    /// - Parameters:
    ///   - configs: of the same endpoints in the same order.
    ///   - renewed: names of those whose credentials are others now.
    func reload(_ configs: [EndpointConfig], renewed: Set<String>, at now: EventTime) {
        for (index, endpoint) in configs.enumerated() where renewed.contains(endpoint.settings.name) {
            credentials[index] = makeCredentials(endpoint)
        }
        let routes = Self.routes(configs, credentials)
        for delivery in deliveries {
            delivery.reload(
                delivery.routes.map { old in routes.first { $0.settings.name == old.settings.name } ?? old }, at: now)
        }
    }

    /// Reads secrets again that are in files.
    func rereadSecrets(at now: EventTime) {
        let changed = credentials.filter { $0.reread() }
        func isChanged(_ way: EndpointDelivery.Route) -> Bool { changed.contains { $0 === way.credentials } }
        for delivery in deliveries where delivery.routes.contains(where: isChanged) {
            delivery.secretsChanged(at: now)
        }
    }

    /// - Parameter sinceBoot: the host has just started, perhaps with a whole fleet: each device sends at a time of its own.
    func start(sinceBoot: Bool, at now: EventTime) {
        for delivery in deliveries {
            if sinceBoot { delivery.startedWithHost(at: now) }
            delivery.linksChanged(at: now)
            delivery.connect()
            delivery.startContact(sinceBoot: sinceBoot, at: now)
        }
    }

    /// Links, addresses or routes of this host may have changed.
    func linksChanged(at now: EventTime) { for delivery in deliveries { delivery.linksChanged(at: now) } }
}
