import Protocols
import WaypostCore

// Messages to a broker.
extension RequestRenderer {
    /// The request that only has to be connected; nil for endpoints of HTTP.
    package func connectRequest() -> UplinkRequest? {
        let context = BatchContext(settings, render, Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil))
        return brokerRequest(context)
    }

    /// Where the profile wants to be told whether something is wrong; nil = nowhere.
    package var statusTopic: String? {
        let batch = Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil)
        return BatchContext(settings, render, batch).statusTopic
    }

    /// Topics of plain locations of a trackable, of the will, of births and of the status; empty for endpoints of HTTP.
    ///
    /// - Parameter trackable: nil = of the device.
    package func topics(trackable: String?) -> [String] {
        let batch = Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil)
        return settings.profile.compiled.parts.broker.map {
            BatchContext(settings, render, batch).topics($0, trackable: trackable).map(\.name)
        } ?? []
    }

    /// As many rows in each message as the profile has in one.
    func brokerRequest(_ context: BatchContext) -> UplinkRequest? {
        let compiled = settings.profile.compiled
        guard let broker = compiled.parts.broker else { return nil }
        let rows = broker.rowsPerMessage
        let messages = BrokerMessages(count: (context.batch.rows.count + rows - 1) / rows) { place in
            var part = context.batch
            part.rows = Array(part.rows.dropFirst(place * rows).prefix(rows))
            return BatchContext(context.settings, context.render, part).message(broker, compiled)
        }
        var request = UplinkRequest(method: "PUBLISH", url: settings.baseURL, body: [], timeout: settings.timeout)
        request.broker = BrokerRequest(
            session: context.session(broker), messages: messages, rate: settings.publishRate)
        request.broker?.sender = settings.name
        request.broker?.subscriber = settings.needsSubscriber ? .required : .optional
        return request
    }
}

extension BatchContext {
    fileprivate func message(_ broker: CompiledProfile.Broker, _ compiled: CompiledProfile) -> MQTTMessage {
        let first = batch.rows.first ?? .placeholder
        let variant = compiled.variant(for: first)
        var message = MQTTMessage(
            topic: text(variant?.url, first, .topic) ?? "", payload: body(variant, compiled.parts), qos: broker.qos,
            isRetained: broker.isRetained && compiled.choice(for: first.location.event) == .variant(0))
        message.contentType = compiled.parts.contentType
        return message
    }

    fileprivate func session(_ broker: CompiledProfile.Broker) -> BrokerSession {
        var session = BrokerSession(
            clientID: settings.clientID ?? text(broker.clientID, .placeholder, .none) ?? "waypost-\(settings.device)")
        session.user = text(broker.user, .placeholder, .none)
        session.keepAlive = settings.keepAlive
        session.learnsKeepAlive = settings.learnsKeepAlive
        session.will = broker.will.map(announcement)
        session.births = broker.births.map(announcement)
        session.formerTopics = formerTopics(broker)
        session.subscriptions = settings.subscriptions.map { topic in
            var subscription = MQTTSubscription(topic)
            // A message that the broker keeps comes again with each connection.
            subscription.keepsRetainFlag = true
            return subscription
        }
        return session
    }

    fileprivate var statusTopic: String? {
        text(settings.profile.compiled.parts.broker?.status, .placeholder, .topic)
    }

    fileprivate func topics(
        _ broker: CompiledProfile.Broker, trackable: String?
    ) -> [(name: String, isRetained: Bool)] {
        var row = QueuedLocation.placeholder
        row.location.trackable = trackable
        let plain = settings.profile.compiled.variant(for: row)
        let announcements = broker.births + [broker.will].compactMap { $0 }
        let own = [(plain?.url, broker.isRetained), (broker.status, true)]
        return (own + announcements.map { ($0.topic, $0.isRetained) }).compactMap { template, isRetained in
            text(template, row, .topic).map { ($0, isRetained) }
        }
    }

    /// Those with an id that other names had too, before a name without letters and digits of ASCII became a hash.
    private func formerTopics(_ broker: CompiledProfile.Broker) -> [String] {
        let (id, former) = (settings.device.slug, settings.device.formerSlug)
        guard id != former else { return [] }
        var names: [String] = []
        for topic in topics(broker, trackable: nil) where topic.isRetained {
            let name = topic.name.replacing(id, with: former)
            if name != topic.name, !names.contains(name) { names.append(name) }
        }
        return names
    }

    private func announcement(_ announcement: CompiledProfile.Announcement) -> MQTTMessage {
        var payload: [UInt8] = []
        switch announcement.payload {
        case .text(let template): payload = Array((text(template, .placeholder, .none) ?? "").utf8)
        case .json(let template):
            var writer = JSONWriter()
            template.write(.placeholder, in: self, to: &writer)
            payload = writer.bytes
        }
        return MQTTMessage(
            topic: text(announcement.topic, .placeholder, .topic) ?? "", payload: payload,
            isRetained: announcement.isRetained)
    }

    private func text(
        _ template: TextTemplate?, _ row: QueuedLocation, _ escape: TextTemplate.Escape
    ) -> String? {
        var bytes: [UInt8] = []
        guard let template, template.write(row, in: self, escaping: escape, to: &bytes) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}
